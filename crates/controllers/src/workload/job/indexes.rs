//! A set of completion indexes, written as `1,3-5,7`.

use std::{collections::BTreeSet, fmt};

/// Ranges from first to last, in order, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(usize, usize)>);

impl Indexes {
    /// Indexes from `completions` on are left out: an indexed Job can be scaled down. Parts that cannot be read
    /// are skipped.
    pub(super) fn parse(text: &str, completions: usize) -> Indexes {
        let parts = text.split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        let parts = parts.filter(|(first, last): &(usize, usize)| *first < completions && first <= last);
        Indexes::default().joined(parts.map(|(first, last)| (first, last.min(completions - 1))))
    }

    pub(super) fn with(&self, more: &BTreeSet<usize>) -> Indexes {
        self.joined(more.iter().map(|index| (*index, *index)))
    }

    pub(super) fn union(&self, other: &Indexes) -> Indexes {
        self.joined(other.0.iter().copied())
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        let place = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(place).is_some_and(|(first, _)| *first <= index)
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many indexes are in both.
    pub(super) fn shared(&self, other: &Indexes) -> usize {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut count = 0;
        while let (Some((first, last)), Some((other_first, other_last))) = (mine.peek(), theirs.peek()) {
            count += (last.min(other_last) + 1).saturating_sub(*first.max(other_first));
            if last < other_last {
                mine.next()
            } else {
                theirs.next()
            };
        }
        count
    }

    /// The first `count` indexes below `completions` that are not in it.
    pub(super) fn missing(&self, count: usize, completions: usize) -> Vec<usize> {
        let ends = [(completions, completions)];
        let mut from = 0;
        let gaps = self.0.iter().chain(&ends).map(|(first, last)| {
            let gap = from..(*first).min(completions);
            from = last + 1;
            gap
        });
        gaps.flatten().take(count).collect()
    }

    fn joined(&self, more: impl Iterator<Item = (usize, usize)>) -> Indexes {
        let mut all: Vec<_> = self.0.iter().copied().chain(more).collect();
        all.sort_unstable();
        let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match ranges.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                _ => ranges.push((first, last)),
            }
        }
        Indexes(ranges)
    }
}

/// Kubernetes: two neighbours are written as `1,2`, more as `1-3`.
impl fmt::Display for Indexes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match last - first {
                0 => write!(out, "{comma}{first}")?,
                1 => write!(out, "{comma}{first},{last}")?,
                _ => write!(out, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_kubernetes_does() {
        for (text, completions, expected) in [
            ("", 10, ""),
            ("0", 10, "0"),
            ("0,1", 10, "0,1"),
            ("0,1,2", 10, "0-2"),
            ("0-2,4,6-8", 10, "0-2,4,6-8"),
            ("0-2,4,6-8", 7, "0-2,4,6"),
            ("0-2,4,6-8", 1, "0"),
            ("0-2,4", 0, ""),
            ("0-1,2-5", 10, "0-5"),
            ("x,3,-4,5-y,7", 10, "3,7"),
        ] {
            let indexes = Indexes::parse(text, completions);
            assert_eq!(indexes.to_string(), expected, "{text} below {completions}");
            let members = (0..20).filter(|index| indexes.contains(*index));
            assert_eq!(members.count(), indexes.len(), "{text} below {completions}");
        }
    }

    #[test]
    fn missing_indexes_are_the_first_ones_outside() {
        for (text, count, completions, expected) in [
            ("", 3, 10, vec![0, 1, 2]),
            ("0-1,4", 3, 10, vec![2, 3, 5]),
            ("0-1,4", 9, 6, vec![2, 3, 5]),
            ("0-5", 3, 6, vec![]),
            ("8", 3, 6, vec![0, 1, 2]),
            ("1", 0, 6, vec![]),
        ] {
            assert_eq!(Indexes::parse(text, 100).missing(count, completions), expected, "{text}");
        }
    }

    #[test]
    fn shared_indexes_are_counted() {
        for (first, second, expected) in
            [("", "1", 0), ("0-5", "2-3", 2), ("0-2,5", "1-6", 3), ("0,2,4", "1,3,5", 0), ("1-3", "1-3", 3)]
        {
            let [first, second] = [first, second].map(|text| Indexes::parse(text, 100));
            assert_eq!((first.shared(&second), second.shared(&first)), (expected, expected));
        }
        let joined = Indexes::parse("0,4-5", 9).with(&BTreeSet::from([1, 3, 9]));
        assert_eq!(joined.to_string(), "0,1,3-5,9");
        assert_eq!(joined.union(&Indexes::parse("2", 9)).to_string(), "0-5,9");
    }
}
