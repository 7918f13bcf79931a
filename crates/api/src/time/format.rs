//! The OpenAPI formats `date` and `date-time`, as Kubernetes checks them: by pattern, not by parsing.

/// `2006-01-02`.
pub fn is_date(text: &str) -> bool {
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

/// A date, `t`, a time of day and its zone. Kubernetes: what follows a second `t` is not looked at.
pub fn is_date_time(text: &str) -> bool {
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
    // Kubernetes: any character will do for the point.
    let mut fraction = text.chars();
    let _ = fraction.next();
    let zone = fraction.as_str().trim_start_matches(|c: char| c.is_ascii_digit());
    zone.len() < fraction.as_str().len() && is_zone(zone)
}

fn is_two_digits(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_fit_or_not() {
        for (text, date, date_time) in [
            ("2024-02-29", true, false),
            ("2023-02-29", false, false),
            ("2024-13-01", false, false),
            ("2024-1-1", false, false),
            ("2024-02-29T23:59:59Z", false, true),
            ("2024-02-29t23:59:59.5+01:00", false, true),
            ("2024-02-29T23:59:59?5z", false, true),
            ("2024-02-29T24:00:00Z", false, false),
            ("2024-02-29T23:59:59", false, false),
            ("2024-02-29T23:59:59Ztrailer", false, true),
            ("", false, false),
        ] {
            assert_eq!((is_date(text), is_date_time(text)), (date, date_time), "{text}");
        }
    }
}
