//! Go's `time.Parse` for the two layouts that Kubernetes uses, with its tolerance and its errors.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    #[error(
        "parsing time {} as {}: cannot parse {} as {}",
        quote(text),
        quote(layout),
        quote(rest),
        quote(element)
    )]
    Element { text: String, layout: &'static str, rest: String, element: &'static str },
    #[error("parsing time {}: {what} out of range", quote(text))]
    Range { text: String, what: &'static str },
    #[error("parsing time {}: extra text: {}", quote(text), quote(extra))]
    Extra { text: String, extra: String },
}

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Any fraction may follow the seconds, though the layout has none.
pub(super) fn seconds(text: &str) -> Result<DateTime, BadTime> {
    Reader { text, layout: SECONDS, rest: text }.read(Reader::any_fraction)
}

pub(super) fn micros(text: &str) -> Result<DateTime, BadTime> {
    Reader { text, layout: MICROS, rest: text }.read(Reader::six_digits)
}

struct Reader<'a> {
    text: &'a str,
    layout: &'static str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn read(mut self, fraction: fn(&mut Self) -> Result<i32, BadTime>) -> Result<DateTime, BadTime> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.within(1..=12, "month", |reader| reader.number("01"))?;
        self.literal("-")?;
        let day = self.number("02")?;
        self.literal("T")?;
        let hour = self.within(0..=23, "hour", Self::hour)?;
        self.literal(":")?;
        let minute = self.within(0..=59, "minute", |reader| reader.number("04"))?;
        self.literal(":")?;
        let second = self.within(0..=59, "second", |reader| reader.number("05"))?;
        let nanosecond = fraction(&mut self)?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(BadTime::Extra { text: self.text.to_owned(), extra: self.rest.to_owned() });
        }
        // The day is judged last, when the month is known.
        let date = Date::new(year, month, day).map_err(|_| self.out_of_range("day"))?;
        let local = date.at(hour, minute, second, nanosecond);
        // Go would go on into the year 10000; nothing could read that back.
        local.checked_sub(offset).map_err(|_| self.out_of_range("year"))
    }

    fn year(&mut self) -> Result<i16, BadTime> {
        let digits = self.rest.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let year = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| self.bad("2006"))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), BadTime> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.bad(literal))?;
        Ok(())
    }

    /// Two digits.
    fn number(&mut self, element: &'static str) -> Result<i8, BadTime> {
        let number = two_digits(self.rest).ok_or_else(|| self.bad(element))?;
        self.rest = &self.rest[2..];
        Ok(number)
    }

    /// Go: the hour alone may have one digit.
    fn hour(&mut self) -> Result<i8, BadTime> {
        let digits = self.rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        match self.rest.get(..1).filter(|_| digits == 1).and_then(|digit| digit.parse().ok()) {
            Some(hour) => {
                self.rest = &self.rest[1..];
                Ok(hour)
            }
            None => self.number("15"),
        }
    }

    fn within(
        &mut self,
        range: std::ops::RangeInclusive<i8>,
        what: &'static str,
        read: impl Fn(&mut Self) -> Result<i8, BadTime>,
    ) -> Result<i8, BadTime> {
        let number = read(self)?;
        if range.contains(&number) { Ok(number) } else { Err(self.out_of_range(what)) }
    }

    fn any_fraction(&mut self) -> Result<i32, BadTime> {
        let digits = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if length > 0 {
            self.rest = &self.rest[1 + length..];
        }
        Ok(nanoseconds(&digits[..length]))
    }

    fn six_digits(&mut self) -> Result<i32, BadTime> {
        let digits = self.rest.strip_prefix(['.', ',']).and_then(|digits| digits.get(..6));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let nanoseconds = digits.map(nanoseconds).ok_or_else(|| self.bad(".000000"))?;
        self.rest = &self.rest[7..];
        Ok(nanoseconds)
    }

    fn offset(&mut self) -> Result<SignedDuration, BadTime> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(SignedDuration::ZERO);
        }
        let bad = || self.bad("Z07:00");
        let (sign, hours, minutes) = match self.rest.as_bytes() {
            [sign @ (b'+' | b'-'), _, _, b':', _, _, ..] => {
                let hours = self.rest.get(1..3).and_then(two_digits).ok_or_else(bad)?;
                let minutes = self.rest.get(4..6).and_then(two_digits).ok_or_else(bad)?;
                (if *sign == b'-' { -1 } else { 1 }, hours, minutes)
            }
            _ => return Err(bad()),
        };
        // Go: some people do write offsets of 24 hours or 60 minutes.
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        self.rest = &self.rest[6..];
        Ok(SignedDuration::from_mins(sign * (i64::from(hours) * 60 + i64::from(minutes))))
    }

    fn bad(&self, element: &'static str) -> BadTime {
        let (text, layout, rest) = (self.text.to_owned(), self.layout, self.rest.to_owned());
        BadTime::Element { text, layout, rest, element }
    }

    fn out_of_range(&self, what: &'static str) -> BadTime {
        BadTime::Range { text: self.text.to_owned(), what }
    }
}

fn two_digits(text: &str) -> Option<i8> {
    text.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// The digits behind the point; those beyond the ninth do not count.
fn nanoseconds(digits: &str) -> i32 {
    let digits = digits.bytes().map(|digit| i32::from(digit - b'0')).chain(std::iter::repeat(0));
    digits.take(9).fold(0, |number, digit| number * 10 + digit)
}

/// Go's time package has a quote of its own: what is not plain ASCII is shown byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..0x80 => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
