//! Times that end where timestamps end: a pod may ask for any number of seconds.

use jiff::{Timestamp, TimestampArithmetic};

pub(crate) fn later(at: Timestamp, by: impl Into<TimestampArithmetic>) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

pub(crate) fn earlier(at: Timestamp, by: impl Into<TimestampArithmetic>) -> Timestamp {
    at.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use std::time::Duration;

    #[test]
    fn sums_end_with_the_first_and_last_timestamp() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(later(now, SignedDuration::MAX), Timestamp::MAX);
        assert_eq!(later(now, SignedDuration::MIN), Timestamp::MIN);
        assert_eq!(later(now, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(now, SignedDuration::MAX), Timestamp::MIN);
        assert_eq!(earlier(now, Duration::from_secs(1)).to_string(), "2025-12-31T23:59:59Z");
    }
}
