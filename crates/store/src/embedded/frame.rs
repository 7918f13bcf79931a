//! The format of commits in a log segment.
//!
//! ```text
//! segment  "SETPOINT LOG 1\n\0"  salt:8  first revision:8  check:4   then frames
//! frame    "SPF1"  body length:4  first revision:8  commits:4  check:4  body
//! body     commit*
//! commit   number of changes:4  change*         one revision more for each
//! change   0:1 key length:4 key                 a delete
//!          1:1 key length:4 value length:4 key value
//! ```
//! Numbers are little-endian. A frame is written by one write and made durable before the next one begins:
//! only the last frame of a log can be torn, and a valid frame after a broken one proves damage. A check is a
//! CRC-32 that starts from the segment's salt, so that neither old content of a recycled file nor bytes
//! stored as a value can look like a frame.

use crate::{Change, Revision};
use bytes::Bytes;

const SEGMENT_MAGIC: &[u8; 16] = b"SETPOINT LOG 1\n\0";
pub(crate) const SEGMENT_HEADER_BYTES: usize = 36;
const FRAME_MAGIC: [u8; 4] = *b"SPF1";
pub(crate) const FRAME_HEADER_BYTES: usize = 24;

/// A frame being filled: space for its header, then the body.
#[derive(Debug)]
pub(crate) struct FrameBuilder {
    buffer: Vec<u8>,
    first: Revision,
    commits: u32,
}

impl FrameBuilder {
    /// An empty frame in a recycled buffer.
    pub(crate) fn new(mut buffer: Vec<u8>, first: Revision) -> FrameBuilder {
        buffer.clear();
        buffer.resize(FRAME_HEADER_BYTES, 0);
        FrameBuilder { buffer, first, commits: 0 }
    }

    pub(crate) fn push(&mut self, changes: &[Change]) {
        self.commits += 1;
        self.put(changes.len() as u32);
        for change in changes {
            self.buffer.push(u8::from(change.value.is_some()));
            self.put(change.key.len() as u32);
            if let Some(value) = &change.value {
                self.put(value.len() as u32);
            }
            self.buffer.extend_from_slice(&change.key);
            self.buffer.extend_from_slice(change.value.as_deref().unwrap_or_default());
        }
    }

    fn put(&mut self, number: u32) {
        self.buffer.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commits == 0
    }

    pub(crate) fn size(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn first(&self) -> Revision {
        self.first
    }

    /// The bytes to write into a segment with this salt.
    pub(crate) fn seal(&mut self, salt: u64) -> &[u8] {
        let length = (self.buffer.len() - FRAME_HEADER_BYTES) as u32;
        self.buffer[..4].copy_from_slice(&FRAME_MAGIC);
        self.buffer[4..8].copy_from_slice(&length.to_le_bytes());
        self.buffer[8..16].copy_from_slice(&self.first.0.to_le_bytes());
        self.buffer[16..20].copy_from_slice(&self.commits.to_le_bytes());
        let check = check(salt, &self.buffer);
        self.buffer[20..24].copy_from_slice(&check.to_le_bytes());
        &self.buffer
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

/// Salted CRC-32 of a frame without its check field.
fn check(salt: u64, frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&frame[..20]);
    hasher.update(&frame[FRAME_HEADER_BYTES..]);
    hasher.finalize()
}

pub(crate) fn segment_header(salt: u64, first: Revision) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    header[..16].copy_from_slice(SEGMENT_MAGIC);
    header[16..24].copy_from_slice(&salt.to_le_bytes());
    header[24..32].copy_from_slice(&first.0.to_le_bytes());
    let check = crc32fast::hash(&header[..32]);
    header[32..].copy_from_slice(&check.to_le_bytes());
    header
}

/// The salt and the first revision of a segment, if its header is valid.
pub(crate) fn parse_segment_header(segment: &[u8]) -> Option<(u64, Revision)> {
    let header = segment.get(..SEGMENT_HEADER_BYTES)?;
    let whole = header.starts_with(SEGMENT_MAGIC) && crc32fast::hash(&header[..32]) == u32_at(header, 32);
    whole.then(|| (u64_at(header, 16), Revision(u64_at(header, 24))))
}

/// A key and its new value; `None` where it was deleted.
pub(crate) type LoggedWrite = (Bytes, Option<Bytes>);

/// A valid frame.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) first: Revision,
    commits: u32,
    body: &'a [u8],
}

impl Frame<'_> {
    /// The frame that begins at `offset`, if it is valid.
    pub(crate) fn at(segment: &[u8], offset: usize, salt: u64) -> Option<Frame<'_>> {
        let bytes = segment.get(offset..)?;
        if bytes.len() < FRAME_HEADER_BYTES || bytes[..4] != FRAME_MAGIC {
            return None;
        }
        let end = FRAME_HEADER_BYTES.checked_add(u32_at(bytes, 4) as usize)?;
        let bytes = bytes.get(..end)?;
        (check(salt, bytes) == u32_at(bytes, 20)).then(|| Frame {
            first: Revision(u64_at(bytes, 8)),
            commits: u32_at(bytes, 16),
            body: &bytes[FRAME_HEADER_BYTES..],
        })
    }

    pub(crate) fn size(&self) -> usize {
        FRAME_HEADER_BYTES + self.body.len()
    }

    /// Whether a valid frame begins anywhere from `offset` on.
    pub(crate) fn any_from(segment: &[u8], offset: usize, salt: u64) -> bool {
        let rest = segment.get(offset..).unwrap_or_default();
        memchr::memmem::find_iter(rest, &FRAME_MAGIC)
            .any(|candidate| Frame::at(segment, offset + candidate, salt).is_some())
    }

    /// The writes of each commit, in order; `None` if the body is malformed.
    pub(crate) fn commits(&self) -> Option<Vec<Vec<LoggedWrite>>> {
        let mut body = Body(self.body);
        let commits = (0..self.commits).map(|_| {
            let changes = body.number()?;
            (0..changes).map(|_| body.change()).collect::<Option<Vec<_>>>()
        });
        let commits = commits.collect::<Option<Vec<_>>>()?;
        body.0.is_empty().then_some(commits)
    }
}

/// The unread rest of a body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32_at(bytes, 0))
    }

    fn change(&mut self) -> Option<LoggedWrite> {
        let put = self.take(1)?[0] != 0;
        let key_length = self.number()? as usize;
        let value_length = if put { Some(self.number()? as usize) } else { None };
        let key = Bytes::copy_from_slice(self.take(key_length)?);
        let value = match value_length {
            Some(length) => Some(Bytes::copy_from_slice(self.take(length)?)),
            None => None,
        };
        Some((key, value))
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(number)
}
