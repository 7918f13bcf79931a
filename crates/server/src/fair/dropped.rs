//! Retry-After of rejected requests: grows while many are rejected, shrinks by one each second after.

use std::collections::VecDeque;

/// In seconds.
// Kubernetes: never more than this.
const MAX_RETRY_AFTER: u64 = 32;

/// Rejections of one priority level by second.
#[derive(Debug)]
pub(super) struct Dropped {
    /// Earlier seconds, up to the span that `adjust` looks at.
    history: VecDeque<(u64, u64)>,
    current: (u64, u64),
    retry_after: u64,
    raised: Option<u64>,
}

impl Default for Dropped {
    fn default() -> Dropped {
        Dropped { history: VecDeque::new(), current: (0, 0), retry_after: 1, raised: None }
    }
}

impl Dropped {
    /// Counts one rejection; returns its Retry-After.
    pub(super) fn count(&mut self, second: u64) -> u64 {
        if self.current.0 == second {
            self.current.1 += 1;
            return self.retry_after;
        }
        self.history.push_back(self.current);
        let kept = (2 * self.retry_after).min(MAX_RETRY_AFTER);
        let newest = self.current.0;
        while self.history.front().is_some_and(|(oldest, _)| newest - oldest > kept) {
            self.history.pop_front();
        }
        self.current = (second, 1);
        self.adjust(second);
        self.retry_after
    }

    // Kubernetes: doubled if at least three rejections per second of retry_after came in that span, at most
    // once in the span; decremented if there was less than one per second.
    fn adjust(&mut self, second: u64) {
        let recent = self.history.iter().filter(|(then, _)| second.saturating_sub(*then) <= self.retry_after);
        let dropped: u64 = recent.map(|(_, count)| count).sum();
        let may_raise = self.raised.is_none_or(|raised| second - raised >= self.retry_after);
        if may_raise && dropped >= 3 * self.retry_after {
            self.retry_after = (2 * self.retry_after).min(MAX_RETRY_AFTER);
            self.raised = Some(second);
        } else if dropped < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_grows_with_rejections_and_shrinks_again() {
        for (name, seconds, expected) in [
            ("one", &[(5, 1)][..], 1),
            ("two a second", &[(5, 2), (6, 2), (7, 2)], 1),
            ("a burst", &[(5, 10), (6, 1)], 2),
            ("a burst, then silence", &[(5, 10), (6, 1), (60, 1), (120, 1)], 1),
            ("without end", &[(1, 500), (2, 500), (4, 500), (8, 500), (16, 500), (32, 500), (64, 500)], 32),
        ] {
            let mut dropped = Dropped::default();
            let mut last = 0;
            for (second, count) in seconds {
                for _ in 0..*count {
                    last = dropped.count(*second);
                }
            }
            assert_eq!(last, expected, "{name}");
            assert!(dropped.history.len() <= MAX_RETRY_AFTER as usize + 1);
        }
    }
}
