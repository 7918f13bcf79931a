//! Cuts a stream of bytes into lines, without copying those that come whole.

use bytes::{Buf, Bytes, BytesMut};

/// The longest line that is waited for: an event holds one object, and etcd takes none of this size.
const LONGEST: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not come.
    begun: BytesMut,
    chunk: Bytes,
}

/// A line is longer than any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Call [`Lines::next`] until it has nothing more, then add the next chunk.
    pub(crate) fn add(&mut self, chunk: Bytes) -> Result<(), TooLong> {
        debug_assert!(self.chunk.is_empty(), "the chunk before was read to its end");
        self.chunk = chunk;
        if self.begun.len() + self.chunk.len() > LONGEST && !self.chunk.contains(&b'\n') {
            return Err(TooLong);
        }
        Ok(())
    }

    /// The next line that is not empty, without its end.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.chunk) else {
                self.begun.extend_from_slice(&self.chunk);
                self.chunk = Bytes::new();
                return None;
            };
            let last = self.chunk.split_to(end);
            self.chunk.advance(1);
            let line = if self.begun.is_empty() {
                last
            } else {
                self.begun.extend_from_slice(&last);
                self.begun.split().freeze()
            };
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        for (chunks, expected) in [
            (&["a\nb\n"][..], &["a", "b"][..]),
            (&["a", "b\n", "c"], &["ab"]),
            (&["a\n\n \r\nb", "", "\n"], &["a", "b"]),
            (&["\n"], &[]),
        ] {
            let mut lines = Lines::default();
            let mut read = Vec::new();
            for chunk in chunks {
                lines.add(Bytes::from_static(chunk.as_bytes())).unwrap();
                while let Some(line) = lines.next() {
                    read.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            assert_eq!(read, expected, "{chunks:?}");
        }
    }

    #[test]
    fn an_endless_line_is_not_waited_for() {
        let mut lines = Lines::default();
        let chunk = Bytes::from(vec![b'a'; LONGEST / 2]);
        for expected in [Ok(()), Ok(()), Err(TooLong)] {
            assert_eq!(lines.add(chunk.clone()), expected);
            assert_eq!(lines.next(), None);
        }
    }
}
