//! Times as Kubernetes writes them, RFC 3339 in UTC to the second or to the microsecond; and Go's durations.

mod duration;
mod format;
mod instant;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use duration::parse_duration;
pub use format::{is_date, is_date_time};
pub use instant::{BadTime, DateTime, Instant, Precision};

/// `metav1.Time`: whole seconds. Not a jiff timestamp, which ends one day too early for the
/// `9999-12-31T23:59:59Z` that stands for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(Instant);

/// `metav1.MicroTime`: whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MicroTime(Instant);

impl Time {
    /// The time that Go takes for none; on the wire it is `null`.
    pub const ZERO: Time = Time(Instant::ZERO);

    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    pub fn timestamp(self) -> Timestamp {
        timestamp(self.0)
    }
}

impl MicroTime {
    pub const ZERO: MicroTime = MicroTime(Instant::ZERO);

    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    pub fn timestamp(self) -> Timestamp {
        timestamp(self.0)
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Default for MicroTime {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Times outside of jiff's range become its first or last.
fn timestamp(instant: Instant) -> Timestamp {
    let end = if instant.seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let nanos = i32::try_from(instant.nanos).unwrap_or_default();
    Timestamp::new(instant.seconds, nanos).unwrap_or(end)
}

/// Without what is smaller than a unit of so many nanoseconds.
fn truncated(timestamp: Timestamp, unit: u32) -> Instant {
    let (nanoseconds, second) = (timestamp.as_nanosecond(), 1_000_000_000);
    let seconds =
        i64::try_from(nanoseconds.div_euclid(second)).expect("a timestamp has years of four digits");
    let nanos = u32::try_from(nanoseconds.rem_euclid(second)).expect("less than a second");
    Instant { seconds, nanos: nanos / unit * unit }
}

/// Go reads on into the year 10000, but nothing could read what it writes.
fn parse(text: &str, precision: Precision) -> Result<Instant, BadTime> {
    let instant = Instant::parse(text, precision)?;
    if instant.year() > 9999 {
        return Err(BadTime(format!("parsing time \"{text}\": year out of range")));
    }
    Ok(instant)
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Time(truncated(timestamp, 1_000_000_000))
    }
}

impl From<Timestamp> for MicroTime {
    fn from(timestamp: Timestamp) -> Self {
        MicroTime(truncated(timestamp, 1_000))
    }
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        parse(text, Precision::Seconds).map(|instant| Time(Instant { nanos: 0, ..instant }))
    }
}

/// Exactly six digits, as in Kubernetes.
impl FromStr for MicroTime {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        parse(text, Precision::Micros).map(MicroTime)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", DateTime(self.0))
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}Z", DateTime(self.0), self.0.nanos / 1_000)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_zero() { serializer.serialize_none() } else { serializer.collect_str(self) }
    }
}

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_zero() { serializer.serialize_none() } else { serializer.collect_str(self) }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(Time::ZERO), |text| text.parse().map_err(D::Error::custom))
    }
}

impl<'de> Deserialize<'de> for MicroTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(MicroTime::ZERO), |text| text.parse().map_err(D::Error::custom))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_read_with_the_tolerance_of_go() {
        for (text, expected) in [
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00.999999999Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00,5Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00.1234567890123Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00+02:00", "2026-11-15T07:30:00Z"),
            ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"),
            ("2026-11-15T09:30:00-24:60", "2026-11-16T10:30:00Z"),
            ("2026-11-15T9:30:00Z", "2026-11-15T09:30:00Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ] {
            assert_eq!(text.parse::<Time>().map(|time| time.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn bad_times_get_the_errors_of_go() {
        let layout = "2006-01-02T15:04:05Z07:00";
        for (text, expected) in [
            ("yesterday", "as \"{}\": cannot parse \"yesterday\" as \"2006\""),
            ("", "as \"{}\": cannot parse \"\" as \"2006\""),
            ("202x-01-01", "as \"{}\": cannot parse \"202x-01-01\" as \"2006\""),
            ("2026/01/01", "as \"{}\": cannot parse \"/01/01\" as \"-\""),
            ("2026-1-01T00:00:00Z", "as \"{}\": cannot parse \"1-01T00:00:00Z\" as \"01\""),
            ("2026-01-01", "as \"{}\": cannot parse \"\" as \"T\""),
            ("2026-01-01t00:00:00Z", "as \"{}\": cannot parse \"t00:00:00Z\" as \"T\""),
            ("2026-01-01T00:00:00", "as \"{}\": cannot parse \"\" as \"Z07:00\""),
            ("2026-01-01T00:00:00z", "as \"{}\": cannot parse \"z\" as \"Z07:00\""),
            ("2026-01-01T00:00:00+0100", "as \"{}\": cannot parse \"+0100\" as \"Z07:00\""),
            ("2026-01-01T00:00:00Z ", ": extra text: \" \""),
            ("2026-13-01T00:00:00Z", ": month out of range"),
            ("2026-02-29T00:00:00Z", ": day out of range"),
            ("2026-02-01T24:00:00Z", ": hour out of range"),
            ("2026-02-01T00:60:00Z", ": minute out of range"),
            ("2026-02-01T00:00:60Z", ": second out of range"),
            ("2026-02-01T00:00:00+25:00", ": time zone offset hour out of range"),
        ] {
            let gap = if expected.starts_with(':') { "" } else { " " };
            let expected = format!("parsing time \"{text}\"{gap}{}", expected.replace("{}", layout));
            assert_eq!(text.parse::<Time>().map_err(|bad| bad.to_string()), Err(expected));
        }
    }

    #[test]
    fn micro_times_have_exactly_six_digits() {
        let written = "2026-11-15T09:30:00.000001Z";
        assert_eq!(written.parse::<MicroTime>().map(|time| time.to_string()), Ok(written.to_owned()));
        assert_eq!(
            "2026-11-15T09:30:00.120000+01:00".parse::<MicroTime>().map(|time| time.to_string()),
            Ok("2026-11-15T08:30:00.120000Z".to_owned())
        );
        for (text, rest, element) in [
            ("2026-11-15T09:30:00Z", "Z", ".000000"),
            ("2026-11-15T09:30:00.12345Z", ".12345Z", ".000000"),
            ("2026-11-15T09:30:00.1234567Z", "7Z", "Z07:00"),
        ] {
            let expected = format!(
                "parsing time \"{text}\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"{rest}\" as \"{element}\""
            );
            assert_eq!(text.parse::<MicroTime>().map_err(|bad| bad.to_string()), Err(expected));
        }
    }

    #[test]
    fn no_time_is_null() {
        assert_eq!(serde_json::to_value(Time::ZERO).unwrap(), json!(null));
        assert_eq!(serde_json::to_value(MicroTime::ZERO).unwrap(), json!(null));
        assert_eq!(serde_json::from_value::<Time>(json!(null)).unwrap(), Time::ZERO);
        assert_eq!(serde_json::from_value::<Time>(json!("0001-01-01T00:00:00Z")).unwrap(), Time::ZERO);
        assert!(serde_json::from_value::<Time>(json!(5)).is_err());
    }

    #[test]
    fn timestamps_lose_what_is_not_written() {
        let moment: Timestamp = "2026-11-15T09:30:00.123456789Z".parse().unwrap();
        assert_eq!(Time::from(moment).to_string(), "2026-11-15T09:30:00Z");
        assert_eq!(MicroTime::from(moment).to_string(), "2026-11-15T09:30:00.123456Z");
        assert_eq!(Time::from(moment).timestamp().as_second(), moment.as_second());
        let never: Time = "9999-12-31T23:59:59Z".parse().unwrap();
        assert_eq!(never.timestamp(), Timestamp::MAX);
    }
}
