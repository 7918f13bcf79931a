//! Durations and timestamps: reading, printing, arithmetic within the years 1 to 9999.

use crate::{error::Error, number};
use jiff::{SignedDuration, civil, tz};
use std::{cmp::Ordering, fmt};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// 0001-01-01T00:00:00Z
const MIN_SECONDS: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z
const MAX_SECONDS: i64 = 253_402_300_799;

/// A point in time between the years 1 and 9999, and the zone that its text had.
#[derive(Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanos: i32,
    /// Seconds east of UTC: only for printing.
    offset: i32,
}

impl Timestamp {
    /// Seconds since 1970, rounded down.
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    fn nanoseconds(&self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos)
    }

    fn from_nanoseconds(nanoseconds: i128, offset: i32) -> Result<Timestamp, Error> {
        let per_second = i128::from(NANOS_PER_SECOND);
        let seconds = i64::try_from(nanoseconds.div_euclid(per_second)).map_err(|_| overflow())?;
        in_range(Timestamp { seconds, nanos: nanoseconds.rem_euclid(per_second) as i32, offset })
    }

    /// The wall clock so many seconds east of UTC.
    fn civil(&self, offset: i32) -> Result<civil::DateTime, Error> {
        let since = SignedDuration::new(self.seconds + i64::from(offset), self.nanos);
        civil::date(1970, 1, 1).at(0, 0, 0, 0).checked_add(since).map_err(|_| overflow())
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_timestamp(*self))
    }
}

/// Nanoseconds of `1h30m`, `-1.5s`, `0`: what Go's `time.ParseDuration` takes.
pub fn parse_duration(text: &str) -> Result<i64, Error> {
    duration(text)
        .ok_or_else(|| Error::new("type conversion error from 'string' to 'google.protobuf.Duration'"))
}

fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(rest);
        let (number, mut tail) = rest.split_at(whole);
        let mut fraction = "";
        if let Some(after) = tail.strip_prefix('.') {
            let count = digits(after);
            (fraction, tail) = after.split_at(count);
        }
        if number.is_empty() && fraction.is_empty() {
            return None;
        }
        let length = tail.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(length);
        let unit = nanos_of(unit)?;
        let whole: i128 = if number.is_empty() { 0 } else { number.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        total += fraction_of(fraction, unit);
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

fn nanos_of(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `0.fraction` of a unit, rounded down; digits beyond a nanosecond of an hour are ignored.
fn fraction_of(fraction: &str, unit: i128) -> i128 {
    let kept = &fraction[..fraction.len().min(18)];
    let digits: i128 = kept.parse().unwrap_or(0);
    digits * unit / 10_i128.pow(kept.len() as u32)
}

/// `1.5s`
pub fn format_duration(nanos: i64) -> String {
    let seconds = (nanos / NANOS_PER_SECOND) as f64 + (nanos % NANOS_PER_SECOND) as f64 / 1e9;
    format!("{}s", number::format_plain(seconds))
}

/// `2006-01-02T15:04:05.999Z` or with an offset: RFC 3339.
pub fn parse_timestamp(text: &str) -> Result<Timestamp, Error> {
    let found = timestamp(text)
        .ok_or_else(|| Error::new("type conversion error from 'string' to 'google.protobuf.Timestamp'"))?;
    in_range(found)
}

/// `2006-01-02`
pub fn parse_date(text: &str) -> Option<Timestamp> {
    (text.len() == 10).then(|| timestamp(&format!("{text}T00:00:00Z"))).flatten()
}

fn timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let part = bytes.get(from..to)?;
        part.iter()
            .all(u8::is_ascii_digit)
            .then(|| std::str::from_utf8(part).ok()?.parse::<i16>().ok())
            .flatten()
    };
    // Go accepts an hour of one digit.
    if bytes.get(12) == Some(&b':') {
        return timestamp(&format!("{}0{}", text.get(..11)?, text.get(11..)?));
    }
    let is = |at: usize, expected: u8| bytes.get(at) == Some(&expected);
    if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
        return None;
    }
    let date = civil::Date::new(number(0, 4)?, number(5, 7)? as i8, number(8, 10)? as i8).ok()?;
    let mut at = 19;
    let mut nanos = 0;
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        let count = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        let digits = &text[at + 1..at + 1 + count.min(9)];
        nanos = format!("{digits:0<9}").parse().ok()?;
        at += 1 + count;
    }
    let time =
        civil::Time::new(number(11, 13)? as i8, number(14, 16)? as i8, number(17, 19)? as i8, nanos).ok()?;
    let offset = offset(&text[at..])?;
    let since = date.to_datetime(time).duration_since(civil::date(1970, 1, 1).at(0, 0, 0, 0));
    Some(Timestamp { seconds: since.as_secs() - i64::from(offset), nanos: 0, offset }).map(|whole| {
        let (seconds, nanos) = match since.subsec_nanos() {
            nanos if nanos < 0 => (whole.seconds - 1, nanos + NANOS_PER_SECOND as i32),
            nanos => (whole.seconds, nanos),
        };
        Timestamp { seconds, nanos, offset }
    })
}

/// `Z` or `+02:00`
fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':';
    if !shaped || !bytes[1..3].iter().chain(&bytes[4..6]).all(u8::is_ascii_digit) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (text[1..3].parse().ok()?, text[4..6].parse().ok()?);
    if hours > 24 || minutes >= 60 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    Some(if bytes[0] == b'-' { -seconds } else { seconds })
}

/// RFC 3339 in the zone that it was read in, with as many digits of a second as there are.
pub fn format_timestamp(timestamp: Timestamp) -> String {
    let (offset, time) = match timestamp.civil(timestamp.offset) {
        Ok(time) => (timestamp.offset, time),
        Err(_) => (0, timestamp.civil(0).unwrap_or_default()),
    };
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    if time.subsec_nanosecond() != 0 {
        let fraction = format!(".{:09}", time.subsec_nanosecond());
        text.push_str(fraction.trim_end_matches('0'));
    }
    match offset {
        0 => text.push('Z'),
        _ => {
            let sign = if offset < 0 { '-' } else { '+' };
            let minutes = offset.abs() / 60;
            text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }
    }
    text
}

/// A time by its seconds since 1970.
pub fn from_seconds(seconds: i64) -> Result<Timestamp, Error> {
    in_range(Timestamp { seconds, nanos: 0, offset: 0 })
}

pub(crate) fn add(timestamp: Timestamp, nanos: i64) -> Result<Timestamp, Error> {
    Timestamp::from_nanoseconds(timestamp.nanoseconds() + i128::from(nanos), timestamp.offset)
}

pub(crate) fn subtract(timestamp: Timestamp, nanos: i64) -> Result<Timestamp, Error> {
    Timestamp::from_nanoseconds(timestamp.nanoseconds() - i128::from(nanos), timestamp.offset)
}

pub(crate) fn between(later: Timestamp, earlier: Timestamp) -> Result<i64, Error> {
    // Kubernetes: cel-go names the integer, not the duration.
    i64::try_from(later.nanoseconds() - earlier.nanoseconds()).map_err(|_| Error::new("integer overflow"))
}

fn in_range(timestamp: Timestamp) -> Result<Timestamp, Error> {
    if (MIN_SECONDS..=MAX_SECONDS).contains(&timestamp.seconds) { Ok(timestamp) } else { Err(overflow()) }
}

fn overflow() -> Error {
    Error::new("timestamp overflow")
}

pub(crate) fn duration_overflow() -> Error {
    Error::new("duration overflow")
}

/// The wall clock of a time in a zone: `America/New_York`, `+02:00`, or UTC by default.
pub(crate) fn local(timestamp: Timestamp, zone: Option<&str>) -> Result<civil::DateTime, Error> {
    let offset = match zone {
        None | Some("" | "UTC") => 0,
        Some(name) => match name.split_once(':') {
            None => named_offset(timestamp, name)?,
            Some((hours, minutes)) => fixed_offset(hours, minutes)?,
        },
    };
    timestamp.civil(offset)
}

fn named_offset(timestamp: Timestamp, name: &str) -> Result<i32, Error> {
    let zone = tz::TimeZone::get(name).map_err(|_| Error::new(format!("unknown time zone {name}")))?;
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let at = jiff::Timestamp::from_second(timestamp.seconds.clamp(first, last)).map_err(|_| overflow())?;
    Ok(zone.to_offset(at).seconds())
}

fn fixed_offset(hours: &str, minutes: &str) -> Result<i32, Error> {
    let number = |text: &str| {
        let refusal = || Error::new(format!("strconv.Atoi: parsing {text:?}: invalid syntax"));
        text.strip_prefix('+').unwrap_or(text).parse::<i16>().map(i32::from).map_err(|_| refusal())
    };
    let (hour, minute) = (number(hours)?, number(minutes)?);
    Ok(60 * if hours.starts_with('-') { hour * 60 - minute } else { hour * 60 + minute })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1s", Some(1_000_000_000)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("1h2m3.5s", Some(3_723_500_000_000)),
            ("1us", Some(1_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("", None),
            ("1", None),
            ("s", None),
            ("1d", None),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("9223372036854775808ns", None),
            ("-9223372036854775808ns", Some(i64::MIN)),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
        for (nanos, expected) in
            [(0, "0s"), (1_500_000_000, "1.5s"), (-90_000_000_000, "-90s"), (1, "0.000000001s")]
        {
            assert_eq!(format_duration(nanos), expected);
        }
    }

    #[test]
    fn timestamps_read_as_rfc_3339() {
        for (text, expected) in [
            ("2020-01-02T03:04:05Z", Some("2020-01-02T03:04:05Z")),
            ("2020-01-02T03:04:05.120Z", Some("2020-01-02T03:04:05.12Z")),
            ("2020-01-02T03:04:05+02:00", Some("2020-01-02T03:04:05+02:00")),
            ("1960-01-02T03:04:05.5-00:30", Some("1960-01-02T03:04:05.5-00:30")),
            ("9999-12-31T23:59:59Z", Some("9999-12-31T23:59:59Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("2020-01-02", None),
            ("2020-01-02T03:04:05", None),
            ("2020-13-02T03:04:05Z", None),
            ("2020-01-02 03:04:05Z", None),
            ("2020-01-02T03:04:05.Z", None),
        ] {
            assert_eq!(parse_timestamp(text).ok().map(format_timestamp).as_deref(), expected, "{text}");
        }
    }
}
