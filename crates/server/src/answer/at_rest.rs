//! A list body from stored bytes, with a resourceVersion inserted into each object.

use super::pieces::{Items, Out};
use crate::stored::Stored;

/// Objects whose bytes are shared with the store.
#[derive(Debug)]
pub(super) struct AtRest {
    objects: Vec<Placed>,
    size: u64,
    /// Whether items lack `kind` and `apiVersion`, as in lists of built-in kinds.
    is_nameless: bool,
}

#[derive(Debug)]
struct Placed {
    stored: Stored,
    /// Offset of the first byte that is written.
    start: usize,
    /// Offset of the resourceVersion.
    place: usize,
}

impl AtRest {
    pub(super) fn new(objects: Vec<Stored>, is_nameless: bool) -> AtRest {
        let mut size = 0;
        let place = |stored: Stored| {
            let start = if is_nameless { stored.metadata_member().unwrap_or(1) } else { 0 };
            let place = stored.version_place();
            size += (usize::from(is_nameless) + stored.written_len(start, place)) as u64;
            Placed { stored, start, place }
        };
        let objects = objects.into_iter().map(place).collect();
        AtRest { objects, size, is_nameless }
    }
}

impl Items for AtRest {
    fn count(&self) -> usize {
        self.objects.len()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn write(&mut self, at: usize, out: &mut Out) {
        let Placed { stored, start, place } = &self.objects[at];
        if self.is_nameless {
            out.put(b"{");
        }
        stored.write_version(*start, *place, out.buffer());
        out.put_shared(stored.json.slice(*place..));
    }
}
