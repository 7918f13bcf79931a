//! Which texts can stand in YAML as they are, and how the others are quoted.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    /// Its lines, one below the other.
    Literal,
}

pub(super) fn style(text: &str, is_key: bool) -> Style {
    let has_lines = text.contains('\n');
    let is_special = text.chars().any(|c| !is_printable(c)) || text.contains(" \n");
    if has_lines {
        let fits = !is_key && !is_special && !text.ends_with(' ');
        return if fits { Style::Literal } else { Style::Double };
    }
    match (is_other_than_text(text), is_special) {
        (true, _) | (_, true) => Style::Double,
        _ if has_indicators(text) || text.starts_with(' ') || text.ends_with(' ') => Style::Single,
        _ => Style::Plain,
    }
}

/// A character inside double quotes.
pub(super) fn escape(c: char) -> String {
    match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\0' => "\\0".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\x1b' => "\\e".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        c if is_printable(c) => c.to_string(),
        c => match u32::from(c) {
            code @ 0..=0xff => format!("\\x{code:02X}"),
            code @ 0x100..=0xffff => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
    }
}

// Kubernetes: what lies beyond the first plane is not printable to Go's library.
fn is_printable(c: char) -> bool {
    match c {
        '\n' | ' '..='~' => true,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        '\u{a0}'..='\u{ffff}' => true,
        _ => false,
    }
}

/// Whether something in it means more than itself to a parser.
fn has_indicators(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    let chars: Vec<char> = text.chars().collect();
    let is_gap = |at: usize| chars.get(at).is_none_or(|c| *c == ' ');
    chars.iter().enumerate().any(|(at, c)| match (at, c) {
        (
            0,
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
        ) => true,
        (0, '?' | ':' | '-') => is_gap(1),
        (_, ':') => is_gap(at + 1),
        (_, '#') => chars[at - 1] == ' ',
        _ => false,
    })
}

/// Whether a parser would take it for a number, a truth, a time or nothing.
fn is_other_than_text(text: &str) -> bool {
    const WORDS: [&str; 35] = [
        "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On",
        "ON", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", ".nan", ".NaN",
        ".NAN", ".inf", ".Inf", ".INF", "+.inf", "-.inf",
    ];
    if WORDS.contains(&text) || ["+.Inf", "+.INF", "-.Inf", "-.INF"].contains(&text) {
        return true;
    }
    match text.as_bytes()[0] {
        b'.' => is_float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            is_time(text) || is_integer(&plain) || is_float(&plain) || is_sexagesimal(text)
        }
        _ => false,
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', rest @ ..] => (rest, 16),
        [b'0', b'o', rest @ ..] => (rest, 8),
        [b'0', b'b', rest @ ..] => (rest, 2),
        [b'0', rest @ ..] if !rest.is_empty() => (rest, 8),
        all => (all, 10),
    };
    !digits.is_empty() && digits.iter().all(|digit| char::from(*digit).is_digit(radix))
}

fn is_float(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            is_number(whole) && is_number(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && is_number(mantissa),
    };
    is_mantissa
        && exponent.is_none_or(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !digits.is_empty() && is_number(digits)
        })
}

/// `1:20` was a number to parsers of old.
fn is_sexagesimal(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = digits.split_once('.').map_or(digits, |(whole, _)| whole);
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let is_first = first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let rest: Vec<_> = parts.collect();
    let is_part = |part: &&str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    is_first && !rest.is_empty() && rest.iter().all(is_part)
}

/// A date, or a date and a time.
fn is_time(text: &str) -> bool {
    let number = |text: &str, longest: usize, most: u32| {
        let fits = (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        fits && text.parse().is_ok_and(|value: u32| value <= most)
    };
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
        None => (text, None),
    };
    let date: Vec<_> = date.split('-').collect();
    let is_date = matches!(date[..], [year, month, day]
        if year.len() == 4 && number(year, 4, 9999) && number(month, 2, 12) && number(day, 2, 31));
    let is_clock = |clock: &str| {
        let parts: Vec<_> = clock.split('.').next().unwrap_or_default().split(':').collect();
        matches!(parts[..], [hour, minute, second]
            if number(hour, 2, 23) && number(minute, 2, 59) && number(second, 2, 59))
    };
    is_date
        && time.is_none_or(|(separator, time)| match separator {
            " " => is_clock(time),
            _ => match time.strip_suffix('Z') {
                Some(clock) => is_clock(clock),
                None => time.rfind(['+', '-']).is_some_and(|at| is_clock(&time[..at])),
            },
        })
}
