//! Finds a field by its name in a few nanoseconds: a hash table of positions, without the names.

/// Positions of names, by hash. Half of the places are free, so a miss ends soon.
#[derive(Clone, Debug)]
pub(super) struct NameIndex {
    /// The length is a power of two; [`FREE`] marks an unused place. Empty when there are no names.
    places: Box<[u16]>,
}

/// Types have far fewer fields; those past this number would not be found.
const FREE: u16 = u16::MAX;

impl NameIndex {
    pub(super) fn new<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Self {
        if names.len() == 0 {
            return Self { places: Box::default() };
        }
        let mut places = vec![FREE; (names.len() * 2).next_power_of_two()].into_boxed_slice();
        let mask = places.len() - 1;
        for (position, name) in (0..FREE).zip(names) {
            let mut at = hash(name) & mask;
            while places[at] != FREE {
                at = (at + 1) & mask;
            }
            places[at] = position;
        }
        Self { places }
    }

    pub(super) fn find<'a>(&self, name: &str, name_of: impl Fn(usize) -> &'a str) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash(name) & mask;
        loop {
            let position = self.places[at];
            if position == FREE {
                return None;
            }
            if name_of(position.into()) == name {
                return Some(position.into());
            }
            at = (at + 1) & mask;
        }
    }
}

/// Fixed, not seeded: names come from schemas, which administrators write, and a table never grows.
fn hash(name: &str) -> usize {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 15)) as usize
}
