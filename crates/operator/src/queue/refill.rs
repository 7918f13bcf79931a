//! After the queue was full: offers it all known keys again, as room comes.

use crate::Key;

/// How far a refill has come.
#[derive(Debug, Default)]
pub(super) struct Refill {
    /// The last key that the queue took; none at the start.
    after: Option<Key>,
    /// How many keys the queue has refused, if nothing but the refill was refused since its start.
    expected: u64,
}

impl Refill {
    /// Offers the keys in order, from where it stopped last time, until one is refused. Starts over at
    /// the end if keys that others added were refused meanwhile.
    pub(super) fn run(
        &mut self,
        mut known: Vec<Key>,
        offer: impl Fn(&Key) -> bool,
        refusals: impl Fn() -> u64,
    ) {
        known.sort_unstable();
        loop {
            if self.after.is_none() {
                self.expected = refusals();
            }
            let from = self.after.as_ref().map_or(0, |after| known.partition_point(|key| key <= after));
            for key in &known[from..] {
                if !offer(key) {
                    self.expected += 1;
                    return;
                }
                self.after = Some(key.clone());
            }
            self.after = None;
            if refusals() == self.expected {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[test]
    fn every_key_is_offered_even_if_others_are_refused_meanwhile() {
        let known: Vec<_> = ["d", "a", "c", "b", "e"].map(Key::parse).into();
        // For each run: the room in the queue, how many other keys are refused before it, and what gets in.
        for pages in [
            vec![(9, 0, "abcde")],
            vec![(2, 0, "ab"), (2, 0, "cd"), (2, 0, "e")],
            vec![(3, 0, "abc"), (0, 0, ""), (9, 0, "de")],
            vec![(3, 0, "abc"), (4, 1, "deab"), (9, 0, "cde")],
        ] {
            let (mut refill, refusals) = (Refill::default(), Cell::new(7));
            for (room, others, accepted) in pages {
                refusals.set(refusals.get() + others);
                let got = RefCell::new(String::new());
                let offer = |key: &Key| {
                    let has_room = got.borrow().len() < room;
                    match has_room {
                        true => got.borrow_mut().push_str(key.as_str()),
                        false => refusals.set(refusals.get() + 1),
                    }
                    has_room
                };
                refill.run(known.clone(), offer, || refusals.get());
                assert_eq!(got.into_inner(), accepted);
            }
            assert_eq!(refill.after, None, "all of them");
        }
    }
}
