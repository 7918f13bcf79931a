//! The server's side of SPDY/3.1: bytes ↔ frames. Only what clients of Kubernetes use: flow control is not among it.

mod headers;

pub(super) use headers::Headers;

use bytes::{Buf, Bytes, BytesMut};
use headers::HeaderReader;

const VERSION: u16 = 3;
const CONTROL: u32 = 1 << 31;
/// Of the first word of a data frame, and of all stream numbers.
const ID: u32 = CONTROL - 1;
/// The length of what is in front of every frame.
const HEAD: usize = 8;
const FIN: u8 = 1;

const OPEN: u16 = 1;
const REPLY: u16 = 2;
const RESET: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const HEADERS: u16 = 8;

/// A longer frame of data is an error: clients send what they read at once, some 32 KiB.
const MAX_DATA: usize = 64 << 10;
/// A longer frame of any other type is an error.
const MAX_CONTROL: usize = 16 << 10;

/// What a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpdyFrame {
    /// A new stream; `is_last` if the client sends no data in it.
    Open {
        id: u32,
        headers: Headers,
        is_last: bool,
    },
    Data {
        id: u32,
        data: Bytes,
        is_last: bool,
    },
    Reset(u32),
    /// To be answered with [`ping`].
    Ping(u32),
    GoAway,
    /// Settings and the like.
    Other,
}

/// The client does not keep to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Why a stream ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResetCode {
    Protocol = 1,
    Refused = 3,
    Cancel = 5,
}

/// Cuts the bytes of a client into frames.
#[derive(Debug, Default)]
pub(super) struct Framer {
    received: BytesMut,
    headers: HeaderReader,
    /// The number of the latest stream: they only rise.
    latest: u32,
}

impl Framer {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next frame, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<SpdyFrame>, Malformed> {
        let Some(mut head) = self.received.get(..HEAD) else { return Ok(None) };
        let (first, second) = (head.get_u32(), head.get_u32());
        let (flags, length) = ((second >> 24) as u8, (second & 0x00ff_ffff) as usize);
        let is_control = first & CONTROL != 0;
        if length > if is_control { MAX_CONTROL } else { MAX_DATA } {
            return Err(Malformed);
        }
        if self.received.len() < HEAD + length {
            return Ok(None);
        }
        self.received.advance(HEAD);
        let payload = self.received.split_to(length).freeze();
        let is_last = flags & FIN != 0;
        if !is_control {
            return Ok(Some(SpdyFrame::Data { id: first, data: payload, is_last }));
        }
        if (first & ID) >> 16 != u32::from(VERSION) {
            return Err(Malformed);
        }
        self.control((first & 0xffff) as u16, payload, is_last).map(Some)
    }

    fn control(&mut self, kind: u16, mut payload: Bytes, is_last: bool) -> Result<SpdyFrame, Malformed> {
        match kind {
            OPEN => {
                // Its number, that of a stream it belongs to, priority and slot.
                if payload.len() < 10 {
                    return Err(Malformed);
                }
                let id = payload.get_u32() & ID;
                payload.advance(6);
                let headers = self.headers.read(&payload)?;
                // The streams of clients have odd numbers.
                if id <= self.latest || id.is_multiple_of(2) {
                    return Err(Malformed);
                }
                self.latest = id;
                Ok(SpdyFrame::Open { id, headers, is_last })
            }
            HEADERS if payload.len() >= 4 => {
                payload.advance(4);
                // All headers are compressed as one text: those of no use are read, too.
                self.headers.read(&payload).map(|_| SpdyFrame::Other)
            }
            RESET if payload.len() == 8 => Ok(SpdyFrame::Reset(payload.get_u32() & ID)),
            PING if payload.len() == 4 => Ok(SpdyFrame::Ping(payload.get_u32())),
            GO_AWAY => Ok(SpdyFrame::GoAway),
            HEADERS | RESET | PING | REPLY => Err(Malformed),
            _ => Ok(SpdyFrame::Other),
        }
    }
}

/// The replies to new streams. All their headers are one compressed text, so that the first is special.
#[derive(Debug, Default)]
pub(super) struct Replies {
    has_begun: bool,
}

impl Replies {
    /// Accepts a stream, without headers.
    pub(super) fn to(&mut self, id: u32) -> Vec<u8> {
        let mut payload = id.to_be_bytes().to_vec();
        payload.extend(headers::none(std::mem::replace(&mut self.has_begun, true)));
        control(REPLY, &payload)
    }
}

/// Data of a stream; `is_last` ends it in this direction.
pub(super) fn data(id: u32, data: &[u8], is_last: bool) -> Vec<u8> {
    let flags = if is_last { u32::from(FIN) << 24 } else { 0 };
    let mut frame = id.to_be_bytes().to_vec();
    frame.extend((flags | data.len() as u32).to_be_bytes());
    frame.extend_from_slice(data);
    frame
}

pub(super) fn reset(id: u32, code: ResetCode) -> Vec<u8> {
    control(RESET, &[id.to_be_bytes(), (code as u32).to_be_bytes()].concat())
}

pub(super) fn ping(id: u32) -> Vec<u8> {
    control(PING, &id.to_be_bytes())
}

fn control(kind: u16, payload: &[u8]) -> Vec<u8> {
    let first = CONTROL | (u32::from(VERSION) << 16) | u32::from(kind);
    let mut frame = first.to_be_bytes().to_vec();
    frame.extend((payload.len() as u32).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(id: u32, headers: &[u8]) -> Vec<u8> {
        control(OPEN, &[&id.to_be_bytes(), &[0; 6][..], headers].concat())
    }

    fn frames(sent: &[u8], piece: usize) -> Result<Vec<SpdyFrame>, Malformed> {
        let (mut framer, mut frames) = (Framer::default(), Vec::new());
        for part in sent.chunks(piece) {
            framer.add(part);
            while let Some(frame) = framer.next()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    #[test]
    fn bytes_become_frames_however_they_are_cut() {
        let none = headers::none(false);
        let opened = |id, is_last| SpdyFrame::Open { id, headers: Headers::new(), is_last };
        let finished = |mut frame: Vec<u8>| {
            frame[4] |= FIN;
            frame
        };
        let sent =
            |frame: &[u8], is_last| SpdyFrame::Data { id: 1, data: Bytes::copy_from_slice(frame), is_last };
        let window = control(9, &[0; 8]);
        let mut version = ping(1);
        version[1] = 2;
        for (name, bytes, expected) in [
            ("nothing", vec![], Ok(vec![])),
            ("a stream", open(1, &none), Ok(vec![opened(1, false)])),
            ("without data", finished(open(3, &none)), Ok(vec![opened(3, true)])),
            (
                "two streams",
                [open(1, &none), open(3, &headers::none(true))].concat(),
                Ok(vec![opened(1, false), opened(3, false)]),
            ),
            (
                "data",
                [data(1, b"ab", false), data(1, b"", true)].concat(),
                Ok(vec![sent(b"ab", false), sent(b"", true)]),
            ),
            (
                "a reset and pings",
                [reset(1, ResetCode::Cancel), ping(7)].concat(),
                Ok(vec![SpdyFrame::Reset(1), SpdyFrame::Ping(7)]),
            ),
            (
                "a window and the end",
                [window, control(GO_AWAY, &[0; 8])].concat(),
                Ok(vec![SpdyFrame::Other, SpdyFrame::GoAway]),
            ),
            ("cut off", ping(7)[..11].to_vec(), Ok(vec![])),
            ("an even number", open(2, &none), Err(Malformed)),
            ("a number twice", [open(3, &none), open(3, &headers::none(true))].concat(), Err(Malformed)),
            ("a short stream", control(OPEN, &[0; 9]), Err(Malformed)),
            ("headers that are not compressed", open(1, b"port: 80"), Err(Malformed)),
            ("another version", version, Err(Malformed)),
            ("much data", [&1_u32.to_be_bytes()[..], &[0, 1, 0, 1]].concat(), Err(Malformed)),
            ("a long ping", control(PING, &[0; 5]), Err(Malformed)),
        ] {
            for piece in [1, 3, 100_000] {
                assert_eq!(frames(&bytes, piece), expected, "{name}, in pieces of {piece}");
            }
        }
    }
}
