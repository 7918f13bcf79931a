//! Formats of durations; dates and times are those of `api::time`.

/// As Go parses it (`1h30m`), or as Scala does (`3 days`), anywhere in the text.
pub(super) fn is_duration(text: &str) -> bool {
    api::time::parse_duration(text).is_ok() || is_scala_duration(text)
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
