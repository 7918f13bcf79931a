//! The frames of a WebSocket (RFC 6455) on which only the server has something to say.

use bytes::{Buf, Bytes, BytesMut};

/// A longer message of a client is an error: it has no reason to send any.
const MAX_MESSAGE: u64 = 1 << 20;
/// The protocol's limit for pings and the like.
const MAX_CONTROL: u64 = 125;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Pong = 10,
}

const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseCode {
    Normal = 1000,
    ProtocolError = 1002,
    TooLarge = 1009,
}

/// What a client has sent, other than data, which is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Ping(Bytes),
    Close,
    /// The connection is at its end.
    End,
    /// The client does not keep to the protocol.
    Wrong(CloseCode),
}

/// The bytes in front of the payload of a whole message.
pub(super) fn head(opcode: Opcode, length: usize) -> Vec<u8> {
    let mut head = vec![0x80 | opcode as u8];
    match u16::try_from(length) {
        Ok(length @ 0..126) => head.push(length as u8),
        Ok(length) => {
            head.push(126);
            head.extend(length.to_be_bytes());
        }
        Err(_) => {
            head.push(127);
            head.extend((length as u64).to_be_bytes());
        }
    }
    head
}

/// Reads frames, and keeps no data.
#[derive(Debug, Default)]
pub(super) struct ClientFrames {
    /// Bytes of data that are still to be skipped.
    ignored: u64,
}

impl ClientFrames {
    /// Takes what is complete; `None` if more bytes are needed.
    pub(super) fn take(&mut self, bytes: &mut BytesMut) -> Option<Received> {
        loop {
            let skipped = usize::try_from(self.ignored).unwrap_or(usize::MAX).min(bytes.len());
            bytes.advance(skipped);
            self.ignored -= skipped as u64;
            let [first, second, ..] = bytes[..] else { return None };
            let opcode = first & 0x0f;
            // No extension is agreed on, and clients must mask what they send.
            if first & 0x70 != 0 || second & 0x80 == 0 || (3..CLOSE).contains(&opcode) || opcode > PONG {
                return Some(Received::Wrong(CloseCode::ProtocolError));
            }
            let (length, head) = match second & 0x7f {
                126 if bytes.len() < 4 => return None,
                126 => (u64::from((&bytes[2..]).get_u16()), 4),
                127 if bytes.len() < 10 => return None,
                127 => ((&bytes[2..]).get_u64(), 10),
                short => (u64::from(short), 2),
            };
            if opcode < CLOSE {
                if length > MAX_MESSAGE {
                    return Some(Received::Wrong(CloseCode::TooLarge));
                }
                bytes.advance(head);
                // Its mask, and what it masks.
                self.ignored = 4 + length;
                continue;
            }
            if length > MAX_CONTROL || first & 0x80 == 0 {
                return Some(Received::Wrong(CloseCode::ProtocolError));
            }
            let length = length as usize;
            if bytes.len() < head + 4 + length {
                return None;
            }
            bytes.advance(head);
            let mask = bytes.split_to(4);
            let mut payload = bytes.split_to(length);
            for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                *byte ^= mask;
            }
            match opcode {
                PING => return Some(Received::Ping(payload.freeze())),
                CLOSE => return Some(Received::Close),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
        }
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    #[test]
    fn what_a_client_sends_is_ignored_but_for_pings_and_its_end() {
        let ping = || Received::Ping(Bytes::from_static(b"?"));
        let wrong = Received::Wrong(CloseCode::ProtocolError);
        let text = frame(0x81, &[b'x'; 5000]);
        for (name, sent, expected) in [
            ("nothing", vec![], vec![]),
            ("data and a ping", [text.clone(), frame(0x89, b"?")].concat(), vec![ping()]),
            (
                "data in parts",
                [frame(0x01, b"a"), frame(0x89, b"?"), frame(0x80, b"b")].concat(),
                vec![ping()],
            ),
            (
                "a pong and a close",
                [frame(0x8a, b""), frame(0x88, &[3, 232])].concat(),
                vec![Received::Close],
            ),
            ("cut off", text[..100].to_vec(), vec![]),
            ("not masked", vec![0x81, 1, b'a'], vec![wrong.clone()]),
            ("an extension", frame(0xc1, b"a"), vec![wrong.clone()]),
            ("an unknown frame", frame(0x83, b"a"), vec![wrong.clone()]),
            ("a long ping", frame(0x89, &[0; 126]), vec![wrong.clone()]),
            ("a ping in parts", frame(0x09, b"a"), vec![wrong]),
            (
                "too long",
                vec![0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0],
                vec![Received::Wrong(CloseCode::TooLarge)],
            ),
        ] {
            for piece in [1, 3, 100_000] {
                let (mut frames, mut bytes, mut found) =
                    (ClientFrames::default(), BytesMut::new(), Vec::new());
                for part in sent.chunks(piece) {
                    bytes.extend_from_slice(part);
                    while let Some(received) = frames.take(&mut bytes) {
                        let is_over = !matches!(received, Received::Ping(_));
                        found.push(received);
                        if is_over {
                            bytes.clear();
                            break;
                        }
                    }
                    if found.last().is_some_and(|it| !matches!(it, Received::Ping(_))) {
                        break;
                    }
                }
                assert_eq!(found, expected, "{name}, in pieces of {piece}");
            }
        }
    }

    #[test]
    fn the_length_of_a_message_takes_as_few_bytes_as_possible() {
        assert_eq!(head(Opcode::Text, 125), [0x81, 125]);
        assert_eq!(head(Opcode::Binary, 126), [0x82, 126, 0, 126]);
        assert_eq!(head(Opcode::Text, 65536), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(head(Opcode::Close, 2), [0x88, 2]);
        assert_eq!(head(Opcode::Pong, 0), [0x8a, 0]);
    }
}
