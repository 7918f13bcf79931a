//! The envelope that names the kind of a message, and the frames of a watch.

use std::borrow::Cow;

use super::ProtoError;
use super::wire::{Payload, Reader, Writer};

/// Kubernetes: the first bytes of every such body.
const PREFIX: [u8; 4] = *b"k8s\0";

/// `runtime.Unknown`: a message with its apiVersion and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'b> {
    pub api_version: Cow<'b, str>,
    pub kind: Cow<'b, str>,
    /// The message, or an object in the format of `content_type`.
    pub raw: Cow<'b, [u8]>,
    pub content_encoding: Cow<'b, str>,
    pub content_type: Cow<'b, str>,
}

impl<'b> Envelope<'b> {
    #[must_use]
    pub fn new(api_version: &'b str, kind: &'b str, message: &'b [u8]) -> Self {
        let (api_version, kind) = (Cow::Borrowed(api_version), Cow::Borrowed(kind));
        Self { api_version, kind, raw: Cow::Borrowed(message), ..Self::default() }
    }

    /// Decodes a body.
    pub fn open(body: &'b [u8]) -> Result<Self, ProtoError> {
        if body.is_empty() {
            return Err(ProtoError::Empty);
        }
        let message = body.strip_prefix(&PREFIX).ok_or(ProtoError::NoEnvelope)?;
        let mut envelope = Self::default();
        let mut reader = Reader::new(message);
        while let Some((number, payload)) = reader.field("Unknown")? {
            match (number, payload) {
                (1, Payload::Bytes(type_meta)) => envelope.type_meta(type_meta)?,
                (2, Payload::Bytes(raw)) => envelope.raw = Cow::Borrowed(raw),
                (3, Payload::Bytes(text)) => envelope.content_encoding = String::from_utf8_lossy(text),
                (4, Payload::Bytes(text)) => envelope.content_type = String::from_utf8_lossy(text),
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Encodes a body.
    #[must_use]
    pub fn seal(&self) -> Vec<u8> {
        let (mut body, tail) = self.seal_before(0);
        body.extend(tail);
        body
    }

    /// Encodes the envelope of a message whose `rest` bytes follow later: the bytes before and behind them.
    #[must_use]
    pub fn seal_before(&self, rest: u64) -> (Vec<u8>, Vec<u8>) {
        let mut out = Writer::default();
        out.message_start(2, self.raw.len() as u64 + rest);
        let mark = out.mark();
        out.bytes(2, self.kind.as_bytes());
        out.bytes(1, self.api_version.as_bytes());
        out.close(1, mark);
        let mut head = PREFIX.to_vec();
        head.extend(out.finish());
        head.extend_from_slice(&self.raw);
        let mut out = Writer::default();
        out.bytes(4, self.content_type.as_bytes());
        out.bytes(3, self.content_encoding.as_bytes());
        (head, out.finish())
    }

    fn type_meta(&mut self, message: &'b [u8]) -> Result<(), ProtoError> {
        let mut reader = Reader::new(message);
        while let Some((number, payload)) = reader.field("TypeMeta")? {
            match (number, payload) {
                (1, Payload::Bytes(text)) => self.api_version = String::from_utf8_lossy(text),
                (2, Payload::Bytes(text)) => self.kind = String::from_utf8_lossy(text),
                _ => {}
            }
        }
        Ok(())
    }
}

/// One event of a watch: its length in four bytes, then a `WatchEvent` around the body of the object.
#[must_use]
pub fn watch_frame(event_type: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    let mark = out.mark();
    out.bytes(1, body);
    out.close(2, mark);
    out.bytes(1, event_type.as_bytes());
    let event = out.finish();
    let mut frame = u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    frame.extend(event);
    frame
}
