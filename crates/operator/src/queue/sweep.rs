//! Keys were refused: all that is known is offered once more, page by page as room comes.

use crate::Key;

/// How far the offering has come.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The last key that found room; none at the beginning.
    after: Option<Key>,
    /// How many refusals there are if nobody but the sweep itself was refused since it began.
    expected: u64,
}

impl Sweep {
    /// Offers the keys in their order, from where it stopped last time until one is refused, or
    /// until all have found room and nobody else was refused meanwhile.
    pub(super) fn go_on(
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
    fn everything_is_offered_whoever_else_comes() {
        let known: Vec<_> = ["d", "a", "c", "b", "e"].map(Key::parse).into();
        // How much room each page finds, how many others are refused before it, and what gets in.
        for pages in [
            vec![(9, 0, "abcde")],
            vec![(2, 0, "ab"), (2, 0, "cd"), (2, 0, "e")],
            vec![(3, 0, "abc"), (0, 0, ""), (9, 0, "de")],
            vec![(3, 0, "abc"), (4, 1, "deab"), (9, 0, "cde")],
        ] {
            let (mut sweep, refusals) = (Sweep::default(), Cell::new(7));
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
                sweep.go_on(known.clone(), offer, || refusals.get());
                assert_eq!(got.into_inner(), accepted);
            }
            assert_eq!(sweep.after, None, "all of them");
        }
    }
}
