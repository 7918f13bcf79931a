//! Moments as Kubernetes writes them: RFC 3339 in UTC, to the second or to the microsecond.

mod parse;

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use parse::BadTime;

/// `metav1.Time`: whole seconds. It is kept as a date in UTC, since a jiff timestamp ends one day too early for
/// the `9999-12-31T23:59:59Z` that stands for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(DateTime);

/// `metav1.MicroTime`: whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MicroTime(DateTime);

/// The moment that Go takes for none; on the wire it is `null`.
const ZERO: DateTime = DateTime::constant(1, 1, 1, 0, 0, 0, 0);

impl Time {
    pub const ZERO: Time = Time(ZERO);

    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    pub fn timestamp(self) -> Timestamp {
        timestamp(self.0)
    }
}

impl MicroTime {
    pub const ZERO: MicroTime = MicroTime(ZERO);

    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
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

/// What lies outside of jiff's range becomes its end.
fn timestamp(utc: DateTime) -> Timestamp {
    let end = if utc < ZERO { Timestamp::MIN } else { Timestamp::MAX };
    Offset::UTC.to_timestamp(utc).unwrap_or(end)
}

/// Drops what is smaller than a unit of so many nanoseconds.
fn truncate(utc: DateTime, unit: i32) -> DateTime {
    let kept = utc.subsec_nanosecond() / unit * unit;
    utc.with().subsec_nanosecond(kept).build().expect("fewer nanoseconds than before are in range")
}

impl From<Timestamp> for Time {
    fn from(moment: Timestamp) -> Self {
        Time(truncate(Offset::UTC.to_datetime(moment), 1_000_000_000))
    }
}

impl From<Timestamp> for MicroTime {
    fn from(moment: Timestamp) -> Self {
        MicroTime(truncate(Offset::UTC.to_datetime(moment), 1_000))
    }
}

impl std::str::FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        parse::seconds(text).map(|utc| Time(truncate(utc, 1_000_000_000)))
    }
}

/// Exactly six digits, as in Kubernetes.
impl std::str::FromStr for MicroTime {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        parse::micros(text).map(MicroTime)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, self.0)?;
        f.write_str("Z")
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, self.0)?;
        write!(f, ".{:06}Z", self.0.subsec_nanosecond() / 1_000)
    }
}

fn write_seconds(f: &mut fmt::Formatter<'_>, utc: DateTime) -> fmt::Result {
    let (year, month, day) = (utc.year(), utc.month(), utc.day());
    let (hour, minute, second) = (utc.hour(), utc.minute(), utc.second());
    if year < 0 {
        return write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    }
    // Digit by digit: every object that is written tells two or three times, and formatting takes ten times as long.
    let mut text = *b"0000-00-00T00:00:00";
    let mut put = |at: usize, number: u16| {
        text[at] += (number / 10) as u8;
        text[at + 1] += (number % 10) as u8;
    };
    put(0, year.unsigned_abs() / 100);
    put(2, year.unsigned_abs() % 100);
    for (at, number) in [(5, month), (8, day), (11, hour), (14, minute), (17, second)] {
        put(at, number.unsigned_abs().into());
    }
    f.write_str(str::from_utf8(&text).expect("digits are ASCII"))
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
