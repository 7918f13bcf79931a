//! The server's side of a WebSocket (RFC 6455): bytes of an upgraded connection in and out as messages.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The protocol's constant, which makes the answer to a key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A longer message is an error: clients send what they read at once, some 32 KiB. As much again may wait in parts.
const MAX_MESSAGE: usize = 64 << 10;
/// The protocol's limit for pings and the like.
const MAX_CONTROL: usize = 125;
/// So much is read at once.
const READ: usize = 16 << 10;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseCode {
    Normal = 1000,
    ProtocolError = 1002,
    TooLarge = 1009,
}

/// What the client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Data(Bytes),
    /// To be answered with [`WebSocket::pong`].
    Ping(Bytes),
    /// The client has closed the connection, or it broke.
    End,
    /// The client does not keep to the protocol; the code says how.
    Wrong(CloseCode),
}

/// The value of `Sec-WebSocket-Accept` for a key.
pub(super) fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{KEY_SUFFIX}").as_bytes()))
}

/// An upgraded connection.
#[derive(Debug)]
pub(super) struct WebSocket<S> {
    stream: S,
    received: BytesMut,
    /// The parts of a message whose last part has not come yet.
    parts: Option<BytesMut>,
}

impl<S> WebSocket<S> {
    pub(super) fn new(stream: S) -> WebSocket<S> {
        WebSocket { stream, received: BytesMut::new(), parts: None }
    }
}

impl<S: AsyncRead + Unpin> WebSocket<S> {
    /// The next message. To drop this future loses nothing.
    pub(super) async fn next(&mut self) -> Message {
        loop {
            match parse(&mut self.received) {
                Ok(Some(frame)) => {
                    if let Some(message) = self.take(frame) {
                        return message;
                    }
                }
                Ok(None) => {
                    self.received.reserve(READ);
                    match self.stream.read_buf(&mut self.received).await {
                        Ok(0) | Err(_) => return Message::End,
                        Ok(_) => {}
                    }
                }
                Err(code) => return Message::Wrong(code),
            }
        }
    }

    /// The message that a frame completes.
    fn take(&mut self, frame: WebSocketFrame) -> Option<Message> {
        let WebSocketFrame { opcode, is_last, payload } = frame;
        match (opcode, self.parts.take()) {
            (PING, parts) => {
                self.parts = parts;
                Some(Message::Ping(payload))
            }
            (PONG, parts) => {
                self.parts = parts;
                None
            }
            (CLOSE, _) => Some(Message::End),
            (TEXT | BINARY, None) if is_last => Some(Message::Data(payload)),
            (TEXT | BINARY, None) => {
                self.parts = Some(payload.into());
                None
            }
            (CONTINUATION, Some(mut parts)) => {
                if parts.len() + payload.len() > MAX_MESSAGE {
                    return Some(Message::Wrong(CloseCode::TooLarge));
                }
                parts.extend_from_slice(&payload);
                if is_last {
                    return Some(Message::Data(parts.freeze()));
                }
                self.parts = Some(parts);
                None
            }
            _ => Some(Message::Wrong(CloseCode::ProtocolError)),
        }
    }
}

impl<S: AsyncWrite + Unpin> WebSocket<S> {
    /// Sends one binary message: a byte that names the channel, and its data.
    pub(super) async fn send(&mut self, channel: u8, data: &[u8]) -> io::Result<()> {
        let mut payload = Vec::with_capacity(data.len() + 1);
        payload.push(channel);
        payload.extend_from_slice(data);
        self.write(BINARY, &payload).await
    }

    pub(super) async fn pong(&mut self, payload: &[u8]) -> io::Result<()> {
        self.write(PONG, payload).await
    }

    pub(super) async fn close(&mut self, code: CloseCode) -> io::Result<()> {
        self.write(CLOSE, &(code as u16).to_be_bytes()).await
    }

    /// Ends the connection itself.
    pub(super) async fn shut_down(&mut self) {
        // The client may be gone already.
        drop(self.stream.shutdown().await);
    }

    async fn write(&mut self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame(opcode, payload)).await?;
        self.stream.flush().await
    }
}

/// A whole message as the server sends it.
pub(super) fn frame(opcode: u8, payload: &[u8]) -> BytesMut {
    let mut frame = BytesMut::with_capacity(payload.len() + 10);
    frame.put_u8(0x80 | opcode);
    match u16::try_from(payload.len()) {
        Ok(length @ 0..126) => frame.put_u8(length as u8),
        Ok(length) => {
            frame.put_u8(126);
            frame.put_u16(length);
        }
        Err(_) => {
            frame.put_u8(127);
            frame.put_u64(payload.len() as u64);
        }
    }
    frame.put_slice(payload);
    frame
}

#[derive(Debug, PartialEq, Eq)]
struct WebSocketFrame {
    opcode: u8,
    is_last: bool,
    payload: Bytes,
}

/// Takes a frame from the bytes received; `None` if it is not complete.
fn parse(received: &mut BytesMut) -> Result<Option<WebSocketFrame>, CloseCode> {
    let [first, second, ..] = received[..] else { return Ok(None) };
    let (is_last, opcode) = (first & 0x80 != 0, first & 0x0f);
    let is_control = opcode >= CLOSE;
    // No extension is agreed on, and clients must mask what they send.
    if first & 0x70 != 0 || second & 0x80 == 0 {
        return Err(CloseCode::ProtocolError);
    }
    let (length, header) = match second & 0x7f {
        126 if received.len() < 4 => return Ok(None),
        126 => (u64::from((&received[2..]).get_u16()), 4),
        127 if received.len() < 10 => return Ok(None),
        127 => ((&received[2..]).get_u64(), 10),
        short => (u64::from(short), 2),
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if is_control && (length > MAX_CONTROL || !is_last) {
        return Err(CloseCode::ProtocolError);
    }
    if length > MAX_MESSAGE {
        return Err(CloseCode::TooLarge);
    }
    if received.len() < header + 4 + length {
        return Ok(None);
    }
    received.advance(header);
    let mask = received.split_to(4);
    let mut payload = received.split_to(length);
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(Some(WebSocketFrame { opcode, is_last, payload: payload.freeze() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65536 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    /// The messages of a client that sends these bytes in pieces of this size, and then hangs up.
    fn messages(sent: &[u8], piece: usize) -> Vec<Message> {
        let run = world::simulate(1, |_| async move {
            let (mut client, server) = tokio::io::duplex(piece);
            let mut socket = WebSocket::new(server);
            let send = async {
                // The server may stop reading.
                drop(client.write_all(sent).await);
                drop(client);
            };
            let receive = async {
                let mut messages = Vec::new();
                loop {
                    messages.push(socket.next().await);
                    if matches!(messages.last(), Some(Message::End | Message::Wrong(_))) {
                        drop(socket);
                        return messages;
                    }
                }
            };
            futures::join!(send, receive).1
        });
        run.unwrap().output
    }

    #[test]
    fn a_key_is_answered_as_in_the_protocols_example() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn frames_become_messages_however_they_are_cut() {
        let data = |text: &[u8]| Message::Data(Bytes::copy_from_slice(text));
        let wrong = |code| vec![Message::Wrong(code)];
        let long = vec![7; MAX_MESSAGE];
        let cut = [masked(0x02, b"\0a"), masked(0x89, b"?"), masked(0x80, b"b")].concat();
        let huge = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff].to_vec();
        let longer = [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1].to_vec();
        let many: Vec<u8> = masked(0x02, &long).into_iter().chain(masked(0x80, b"b")).collect();
        for (name, sent, expected) in [
            ("nothing", vec![], vec![Message::End]),
            ("one message", masked(0x82, b"\0hi"), vec![data(b"\0hi"), Message::End]),
            ("an empty one", masked(0x82, b""), vec![data(b""), Message::End]),
            ("medium", masked(0x82, &long[..200]), vec![data(&long[..200]), Message::End]),
            ("long", masked(0x82, &long), vec![data(&long), Message::End]),
            ("in parts, with a ping", cut, vec![Message::Ping("?".into()), data(b"\0ab"), Message::End]),
            ("a pong", masked(0x8a, b"x"), vec![Message::End]),
            ("a close", masked(0x88, &[3, 232]), vec![Message::End]),
            ("cut off", masked(0x82, b"\0hi")[..6].to_vec(), vec![Message::End]),
            ("not masked", vec![0x82, 1, b'a'], wrong(CloseCode::ProtocolError)),
            ("an extension", masked(0xc2, b"a"), wrong(CloseCode::ProtocolError)),
            ("an unknown frame", masked(0x83, b"a"), wrong(CloseCode::ProtocolError)),
            ("a part of nothing", masked(0x80, b"a"), wrong(CloseCode::ProtocolError)),
            ("a ping in parts", masked(0x09, b"a"), wrong(CloseCode::ProtocolError)),
            ("a long ping", masked(0x89, &long[..126]), wrong(CloseCode::ProtocolError)),
            ("much too long", huge, wrong(CloseCode::TooLarge)),
            ("too long by one byte, of which none has come", longer, wrong(CloseCode::TooLarge)),
            ("too long in parts", many, wrong(CloseCode::TooLarge)),
        ] {
            for piece in [1, 3, 100_000] {
                assert_eq!(messages(&sent, piece), expected, "{name}, in pieces of {piece}");
            }
        }
    }
}
