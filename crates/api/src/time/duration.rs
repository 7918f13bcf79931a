//! Reads durations as Go's `time.ParseDuration` does, with its errors.

use super::instant::{BadTime, quote};

/// What Go's duration can hold at most, without its sign.
const LIMIT: u64 = 1 << 63;

/// The nanoseconds of `1h30m`, `-1.5s` or `0`.
pub fn parse_duration(text: &str) -> Result<i64, BadTime> {
    let invalid = || BadTime(format!("time: invalid duration {}", quote(text.as_bytes())));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, tail) = split_digits(rest);
        let (fraction, tail) = tail.strip_prefix('.').map_or(("", tail), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let nanos = match unit {
            "" => {
                let text = quote(text.as_bytes());
                return Err(BadTime(format!("time: missing unit in duration {text}")));
            }
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            unknown => {
                let (unknown, text) = (quote(unknown.as_bytes()), quote(text.as_bytes()));
                return Err(BadTime(format!("time: unknown unit {unknown} in duration {text}")));
            }
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let part = whole.checked_mul(nanos).and_then(|part| part.checked_add(of_unit(fraction, nanos)));
        let sum = part.and_then(|part| total.checked_add(part)).filter(|sum| *sum <= LIMIT);
        total = sum.ok_or_else(invalid)?;
        rest = tail;
    }
    match text.starts_with('-') {
        true => Ok(0_i64.wrapping_sub_unsigned(total)),
        false => i64::try_from(total).map_err(|_| invalid()),
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// `0.fraction` of a unit, rounded down as Go rounds it; digits beyond the eighteenth do not count.
fn of_unit(fraction: &str, nanos: u64) -> u64 {
    let digits = &fraction[..fraction.len().min(18)];
    let scale = 10_f64.powi(digits.len() as i32);
    (digits.parse::<u64>().unwrap_or(0) as f64 * (nanos as f64 / scale)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_refused_as_go_does() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("1h30m", Ok(5_400_000_000_000)),
            ("-1.5s", Ok(-1_500_000_000)),
            ("+.5h", Ok(1_800_000_000_000)),
            ("1.s", Ok(1_000_000_000)),
            ("1us2µs3μs", Ok(6_000)),
            ("9223372036854775807ns", Ok(i64::MAX)),
            ("-9223372036854775808ns", Ok(i64::MIN)),
            ("9223372036854775808ns", Err("time: invalid duration \"9223372036854775808ns\"")),
            ("99999999999999999999h", Err("time: invalid duration \"99999999999999999999h\"")),
            ("3000000h", Err("time: invalid duration \"3000000h\"")),
            ("", Err("time: invalid duration \"\"")),
            ("-", Err("time: invalid duration \"-\"")),
            (".s", Err("time: invalid duration \".s\"")),
            ("s", Err("time: invalid duration \"s\"")),
            ("5", Err("time: missing unit in duration \"5\"")),
            ("1.5", Err("time: missing unit in duration \"1.5\"")),
            ("1d", Err("time: unknown unit \"d\" in duration \"1d\"")),
            ("1.2.3s", Err("time: missing unit in duration \"1.2.3s\"")),
        ] {
            let read = parse_duration(text).map_err(|bad| bad.0);
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        }
    }
}
