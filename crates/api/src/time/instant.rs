//! Reads and writes RFC 3339 as Go does, with the tolerance and the errors of its `time.Parse`.

use std::fmt;

/// Seconds since 1970, and nanoseconds after those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant {
    pub seconds: i64,
    pub nanos: u32,
}

/// How exactly a time is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `Time`: reads any fraction, writes none.
    Seconds,
    /// `MicroTime`: reads and writes exactly six digits.
    Micros,
}

/// The error of Go's `time.Parse`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTime(pub String);

impl Instant {
    /// Go's zero time, year 1: the same as no time at all.
    pub const ZERO: Instant = Instant { seconds: -62_135_596_800, nanos: 0 };

    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    pub fn parse(text: &str, precision: Precision) -> Result<Instant, BadTime> {
        Instant::parse_with_offset(text, precision).map(|(instant, _)| instant)
    }

    /// The instant, and the offset from UTC that its text has, in seconds.
    pub fn parse_with_offset(text: &str, precision: Precision) -> Result<(Instant, i64), BadTime> {
        Parser { whole: text, rest: text.as_bytes(), precision }.parse().map_err(BadTime)
    }

    /// In UTC.
    pub fn format(self, precision: Precision) -> String {
        match precision {
            Precision::Seconds => format!("{}Z", DateTime(self)),
            Precision::Micros => format!("{}.{:06}Z", DateTime(self), self.nanos / 1000),
        }
    }

    pub(super) fn year(self) -> i64 {
        civil(self.seconds.div_euclid(86_400)).0
    }
}

/// The date and time of an instant to the second, without a zone: `2006-01-02T15:04:05`.
#[derive(Clone, Copy, Debug)]
pub struct DateTime(pub Instant);

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instant { seconds, .. } = self.0;
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if !(0..=9999).contains(&year) {
            return write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        }
        // Digit by digit: every object has two or three times, and formatting takes ten times as long.
        let mut text = *b"0000-00-00T00:00:00";
        let fields =
            [(0, year / 100), (2, year % 100), (5, month), (8, day), (11, hour), (14, minute), (17, second)];
        for (at, number) in fields {
            text[at] += (number / 10) as u8;
            text[at + 1] += (number % 10) as u8;
        }
        f.write_str(str::from_utf8(&text).expect("digits are ASCII"))
    }
}

/// `time.Parse` for the two layouts, element by element, because its errors name the element.
struct Parser<'a> {
    whole: &'a str,
    rest: &'a [u8],
    precision: Precision,
}

impl Parser<'_> {
    fn parse(&mut self) -> Result<(Instant, i64), String> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.two_digits("01", true)?;
        self.range((1..=12).contains(&month), "month")?;
        self.literal("-")?;
        let day = self.two_digits("02", true)?;
        self.literal("T")?;
        let hour = self.two_digits("15", false)?;
        self.range(hour < 24, "hour")?;
        self.literal(":")?;
        let minute = self.two_digits("04", true)?;
        self.range(minute < 60, "minute")?;
        self.literal(":")?;
        let second = self.two_digits("05", true)?;
        self.range(second < 60, "second")?;
        let nanos = self.fraction()?;
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(self.error(&format!("extra text: {}", quote(self.rest))));
        }
        self.range(day >= 1 && day <= days_in(year, month), "day")?;
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok((Instant { seconds, nanos }, offset))
    }

    fn year(&mut self) -> Result<i64, String> {
        let digits = self.rest.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let year = digits.map(number).ok_or_else(|| self.expected("2006", self.rest))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    fn two_digits(&mut self, element: &str, both: bool) -> Result<i64, String> {
        let digits = self.rest.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || (both && digits == 1) {
            return Err(self.expected(element, self.rest));
        }
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Ok(number(digits))
    }

    fn fraction(&mut self) -> Result<u32, String> {
        let digits = self.rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
        let starts = matches!(self.rest.first(), Some(b'.' | b','));
        let taken = match self.precision {
            Precision::Seconds if starts && digits > 0 => digits,
            Precision::Seconds => return Ok(0),
            Precision::Micros if starts && digits >= 6 => 6,
            Precision::Micros => return Err(self.expected(".000000", self.rest)),
        };
        let (fraction, rest) = self.rest.split_at(1 + taken);
        self.rest = rest;
        let nanos = fraction[1..].iter().chain(std::iter::repeat(&b'0')).take(9);
        Ok(nanos.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    /// `Z`, or an offset from UTC in seconds.
    fn zone(&mut self) -> Result<i64, String> {
        const LAYOUT: &str = "Z07:00";
        let hold = self.rest;
        if let Some(rest) = hold.strip_prefix(b"Z") {
            self.rest = rest;
            return Ok(0);
        }
        let &[sign, h1, h2, b':', m1, m2, ref rest @ ..] = hold else {
            return Err(self.expected(LAYOUT, hold));
        };
        if ![h1, h2, m1, m2].iter().all(u8::is_ascii_digit) {
            return Err(self.expected(LAYOUT, hold));
        }
        let (hours, minutes) = (number(&[h1, h2]), number(&[m1, m2]));
        self.rest = rest;
        self.range(minutes <= 60, "time zone offset minute")?;
        self.range(hours <= 24, "time zone offset hour")?;
        let offset = match sign {
            b'+' => hours * 3600 + minutes * 60,
            b'-' => -(hours * 3600 + minutes * 60),
            _ => return Err(self.expected(LAYOUT, hold)),
        };
        Ok(offset)
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        match self.rest.strip_prefix(text.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.expected(text, self.rest)),
        }
    }

    fn range(&self, inside: bool, what: &str) -> Result<(), String> {
        if inside { Ok(()) } else { Err(self.error(&format!("{what} out of range"))) }
    }

    fn error(&self, what: &str) -> String {
        format!("parsing time {}: {what}", quote(self.whole.as_bytes()))
    }

    fn expected(&self, element: &str, found: &[u8]) -> String {
        let layout = match self.precision {
            Precision::Seconds => "2006-01-02T15:04:05Z07:00",
            Precision::Micros => "2006-01-02T15:04:05.000000Z07:00",
        };
        let (whole, found) = (quote(self.whole.as_bytes()), quote(found));
        format!("parsing time {whole} as \"{layout}\": cannot parse {found} as \"{element}\"")
    }
}

/// Go's `time` package has its own quoting: bytes outside of printable ASCII in hex.
pub(super) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970. Years start in March here, so that a leap day is the last day of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_refused_as_go_does() {
        use Precision::{Micros, Seconds};
        for (text, precision, expected) in [
            ("2024-02-29T23:59:59Z", Seconds, "2024-02-29T23:59:59Z"),
            ("2024-01-01T01:30:00+02:00", Seconds, "2023-12-31T23:30:00Z"),
            ("2024-01-01T1:30:00,999999999999-00:30", Seconds, "2024-01-01T02:00:00Z"),
            ("1900-03-01T00:00:00.5Z", Seconds, "1900-03-01T00:00:00Z"),
            ("0000-01-01T00:00:00Z", Seconds, "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", Seconds, "9999-12-31T23:59:59Z"),
            ("2024-01-01T00:00:00.123456Z", Micros, "2024-01-01T00:00:00.123456Z"),
            ("", Seconds, r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#),
            (
                "2024-1-01T00:00:00Z",
                Seconds,
                r#"parsing time "2024-1-01T00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse "1-01T00:00:00Z" as "01""#,
            ),
            ("2024-13-01T00:00:00Z", Seconds, r#"parsing time "2024-13-01T00:00:00Z": month out of range"#),
            ("2023-02-29T00:00:00Z", Seconds, r#"parsing time "2023-02-29T00:00:00Z": day out of range"#),
            ("2024-01-01T24:00:00Z", Seconds, r#"parsing time "2024-01-01T24:00:00Z": hour out of range"#),
            ("2024-01-01T00:00:60Z", Seconds, r#"parsing time "2024-01-01T00:00:60Z": second out of range"#),
            (
                "2024-01-01T00:00:00Zé",
                Seconds,
                r#"parsing time "2024-01-01T00:00:00Z\xc3\xa9": extra text: "\xc3\xa9""#,
            ),
            (
                "2024-01-01T00:00:00+25:00",
                Seconds,
                r#"parsing time "2024-01-01T00:00:00+25:00": time zone offset hour out of range"#,
            ),
            (
                "2024-01-01T00:00:00Z",
                Micros,
                r#"parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
            ),
            (
                "2024-01-01T00:00:00.1234567Z",
                Micros,
                r#"parsing time "2024-01-01T00:00:00.1234567Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "7Z" as "Z07:00""#,
            ),
        ] {
            let read = Instant::parse(text, precision).map_or_else(|bad| bad.0, |it| it.format(precision));
            assert_eq!(read, expected, "{text}");
        }
        assert_eq!(Instant::parse("0001-01-01T00:00:00Z", Seconds), Ok(Instant::ZERO));
    }

    #[test]
    fn every_day_converts_there_and_back() {
        for at in (-720_000..3_000_000).step_by(13) {
            let (year, month, day) = civil(at);
            assert_eq!(days(year, month, day), at);
            assert!(day >= 1 && day <= days_in(year, month));
        }
    }
}
