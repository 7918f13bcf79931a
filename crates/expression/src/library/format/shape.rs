//! Formats that are not names: identifiers, base64, dates.

/// Five groups of hexadecimal digits; the dashes may be missing.
pub(super) fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(digit)
}

/// `2006-01-02`
pub(super) fn is_date(text: &str) -> bool {
    let [year, month, day] = text.splitn(3, '-').collect::<Vec<_>>()[..] else { return false };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return false;
    }
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i16>().ok())?;
    let (Some(year), Some(month), Some(day)) = (number(year), number(month), number(day)) else {
        return false;
    };
    jiff::civil::Date::new(year, month as i8, day as i8).is_ok()
}

/// `2006-01-02T15:04:05Z`; a second `T` ends the text.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let [hours, minutes, seconds] = clock.split(':').collect::<Vec<_>>()[..] else { return false };
    let within = |part: &str, last: &str| is_pair(part) && part <= last;
    within(hours, "23") && within(minutes, "59") && within(seconds, "59") && is_zone(after_fraction(rest))
}

fn is_pair(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Kubernetes: the pattern accepts any character as the decimal point.
fn after_fraction(text: &str) -> &str {
    let mut rest = text.chars();
    let point = rest.next();
    let digits = rest.as_str().bytes().take_while(u8::is_ascii_digit).count();
    let after = &rest.as_str()[digits..];
    if point.is_some_and(|point| point != '\n') && digits > 0 && is_zone(after) { after } else { text }
}

fn is_zone(text: &str) -> bool {
    let offset = text.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
    text == "z" || offset.is_some_and(|(hours, minutes)| is_pair(hours) && is_pair(minutes))
}
