//! Formats of dates, times and durations.

pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    let plain = bytes.iter().enumerate().all(|(at, byte)| at == 4 || at == 7 || byte.is_ascii_digit());
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    plain && (1..=days).contains(&day)
}

/// A date, `t`, a time of day and its zone. Kubernetes: text after a second `t` is ignored.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let parts: Vec<_> = clock.split(':').collect();
    let fits = |part: &str, most: &str| is_two_digits(part) && part <= most;
    let [hour, minute, second] = parts[..] else { return false };
    fits(hour, "23") && fits(minute, "59") && fits(second, "59") && is_zone_after_fraction(rest)
}

fn is_zone_after_fraction(text: &str) -> bool {
    let is_zone = |zone: &str| {
        let offset = zone.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
        zone == "z" || offset.is_some_and(|(hours, minutes)| is_two_digits(hours) && is_two_digits(minutes))
    };
    if is_zone(text) {
        return true;
    }
    // Kubernetes: any character may be the decimal point.
    let mut fraction = text.chars();
    let _ = fraction.next();
    let zone = fraction.as_str().trim_start_matches(|c: char| c.is_ascii_digit());
    zone.len() < fraction.as_str().len() && is_zone(zone)
}

fn is_two_digits(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// As Go parses it (`1h30m`), or as Scala does (`3 days`), anywhere in the text.
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_scala_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        let unit = after.len() - after.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.').len();
        let (unit, after) = after.split_at(unit);
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 6e10,
            "h" => 3.6e12,
            _ => return false,
        };
        let has_digit = digits.bytes().any(|byte| byte.is_ascii_digit());
        if !has_digit || digits.matches('.').count() > 1 {
            return false;
        }
        nanoseconds += digits.parse::<f64>().unwrap_or(f64::INFINITY) * scale;
        rest = after;
    }
    nanoseconds <= 9_223_372_036_854_775_807.0
}

/// Every number with a unit counts; one known unit is enough.
fn is_scala_duration(text: &str) -> bool {
    let mut rest = text;
    let mut known = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &rest[..rest.len() - after.len()];
        let after = after.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let end = after.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let unit = after[..after.len() - end.len()].to_lowercase();
        rest = end;
        if unit.is_empty() {
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        known |= is_unit(&unit);
    }
    known
}

/// The last name of each unit matches as a prefix: `seconds`.
fn is_unit(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    UNITS.iter().any(|names| {
        names.contains(&text) || names.last().is_some_and(|beginning| text.starts_with(beginning))
    })
}
