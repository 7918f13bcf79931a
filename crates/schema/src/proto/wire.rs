//! The wire format: tags, varints and lengths, read forwards and written backwards.

use super::ProtoError;

/// The value of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
    /// No field here has this wire type.
    Fixed32,
}

impl Payload<'_> {
    pub(super) fn wire_type(&self) -> u8 {
        match self {
            Payload::Varint(_) => 0,
            Payload::Fixed64(_) => 1,
            Payload::Bytes(_) => 2,
            Payload::Fixed32 => 5,
        }
    }
}

/// Reads a message field by field.
#[derive(Clone, Debug)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(message: &'b [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field of a message of the type `of`: its number and payload. `None` at the end.
    pub(super) fn field(&mut self, of: &str) -> Result<Option<(u32, Payload<'b>)>, ProtoError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire_type) = (u32::try_from(tag >> 3).unwrap_or(u32::MAX), (tag & 7) as u8);
        if number == 0 || number > i32::MAX as u32 {
            let of = of.rsplit('.').next().unwrap_or(of).to_owned();
            return Err(ProtoError::IllegalTag(of, number, wire_type));
        }
        let payload = match wire_type {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => Payload::Bytes(self.bytes()?),
            5 => {
                self.fixed::<4>()?;
                Payload::Fixed32
            }
            other => return Err(ProtoError::IllegalWireType(other)),
        };
        Ok(Some((number, payload)))
    }

    /// A varint; packed lists consist of these.
    pub(super) fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(ProtoError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtoError::Overflow)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn bytes(&mut self) -> Result<&'b [u8], ProtoError> {
        let length = usize::try_from(self.varint()?).map_err(|_| ProtoError::Truncated)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(ProtoError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ProtoError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ProtoError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

/// Writes a message from its end to its start, so that each length is known when it is written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    backwards: Vec<u8>,
}

impl Writer {
    /// The position that [`Writer::close`] takes as the end of a message.
    pub(super) fn mark(&self) -> usize {
        self.backwards.len()
    }

    /// Writes length and tag before the bytes written since a mark.
    pub(super) fn close(&mut self, number: u32, mark: usize) {
        self.raw_varint((self.backwards.len() - mark) as u64);
        self.tag(number, 2);
    }

    /// The tag and length of a message whose bytes are written elsewhere.
    pub(super) fn message_start(&mut self, number: u32, length: u64) {
        self.raw_varint(length);
        self.tag(number, 2);
    }

    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        let mark = self.mark();
        self.backwards.extend(bytes.iter().rev());
        self.close(number, mark);
    }

    pub(super) fn varint(&mut self, number: u32, value: u64) {
        self.raw_varint(value);
        self.tag(number, 0);
    }

    pub(super) fn double(&mut self, number: u32, value: f64) {
        self.backwards.extend(value.to_bits().to_be_bytes());
        self.tag(number, 1);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.backwards.reverse();
        self.backwards
    }

    fn tag(&mut self, number: u32, wire_type: u64) {
        self.raw_varint(u64::from(number) << 3 | wire_type);
    }

    fn raw_varint(&mut self, mut value: u64) {
        let start = self.backwards.len();
        while value >= 0x80 {
            self.backwards.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.backwards.push(value as u8);
        self.backwards[start..].reverse();
    }
}
