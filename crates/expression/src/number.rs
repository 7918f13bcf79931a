//! Numbers as text, as Go prints them.

/// The shortest text of a double, as Go's `%g` has it: `1e+06`, `0.5`, `NaN`.
pub fn format_double(value: f64) -> String {
    let Some((negative, digits, exponent)) = decompose(value) else { return special(value) };
    if !(-4..6).contains(&exponent) {
        return scientific(negative, &digits, exponent);
    }
    plain(negative, &digits, exponent)
}

/// The shortest text without an exponent, as Go's `%f` with precision -1.
pub fn format_plain(value: f64) -> String {
    match decompose(value) {
        Some((negative, digits, exponent)) => plain(negative, &digits, exponent),
        None => special(value),
    }
}

fn special(value: f64) -> String {
    let text = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    };
    text.into()
}

/// Sign, shortest decimal digits and the exponent of the first of them.
fn decompose(value: f64) -> Option<(bool, String, i32)> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e')?;
    Some((value.is_sign_negative(), mantissa.replace('.', ""), exponent.parse().ok()?))
}

fn scientific(negative: bool, digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}{first}{point}{rest}e{sign}{:02}", if negative { "-" } else { "" }, exponent.abs())
}

fn plain(negative: bool, digits: &str, exponent: i32) -> String {
    let sign = if negative { "-" } else { "" };
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_in_go() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (100000.0, "100000"),
            (1000000.0, "1e+06"),
            (123456.5, "123456.5"),
            (1234567.0, "1.234567e+06"),
            (1e21, "1e+21"),
            (123456789.5, "1.234567895e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-300, "-2.5e-300"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(format_double(value), expected);
        }
        assert_eq!(format_plain(1234567.0), "1234567");
        assert_eq!(format_plain(0.00001), "0.00001");
    }
}
