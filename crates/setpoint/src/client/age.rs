//! How long something takes or has lasted, in kubectl's short form.

use std::time::Duration;
use world::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago a time of an object was; `<unknown>` without one.
pub(crate) fn since(time: Option<&str>, now: Timestamp) -> String {
    match time.and_then(|time| time.parse::<Timestamp>().ok()) {
        Some(time) => short(now.duration_since(time).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

/// Kubernetes: two or three significant figures.
pub(crate) fn short(seconds: i64) -> String {
    let both = |large: i64, large_unit, small: i64, small_unit| match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => both(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => both(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => both(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => both(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// A Go duration such as `30s` or `1m30s`; a bare number counts seconds, as in kubectl's --request-timeout.
pub(crate) fn parse(text: &str) -> Result<GoDuration, String> {
    let nanoseconds = match text.parse::<i64>() {
        Ok(seconds) => seconds.saturating_mul(1_000_000_000),
        Err(_) => api::time::parse_duration(text)
            .map_err(|_| format!("\"{text}\" is no duration: write it like 30s, 5m or 1h30m"))?,
    };
    Ok(GoDuration(nanoseconds))
}

/// A duration that may be negative, which mostly means "no limit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoDuration(i64);

impl GoDuration {
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `None` if negative.
    pub(crate) fn positive(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }

    /// Rounded to seconds.
    pub(crate) fn seconds(self) -> i64 {
        (self.0 + 500_000_000).div_euclid(1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (9 * YEAR, "9y"),
        ] {
            assert_eq!(short(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        assert_eq!(parse("1m30s").map(|time| time.seconds()), Ok(90));
        assert_eq!(parse("5").map(|time| time.seconds()), Ok(5));
        assert_eq!(parse("-1s").map(|time| time.positive()), Ok(None));
        assert!(parse("soon").is_err());
    }
}
