//! Formats of letters and digits: identifiers, numbers with a check digit, colours.

pub(super) fn is_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Padded, in the plain alphabet, and not empty.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

/// Each dash may be omitted. A version fixes its digit, from 4 on also the variant's.
pub(super) fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (nth, count) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if nth > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(count) else { return false };
        digits.push_str(group);
        rest = after;
    }
    let at = |position| digits[position..].chars().next().map(|digit| digit.to_ascii_lowercase());
    rest.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.is_none_or(|version| at(12) == Some(version))
        && (matches!(version, None | Some('3')) || matches!(at(16), Some('8' | '9' | 'a' | 'b')))
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let Some((last, first)) = digits.as_bytes().split_last() else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let check = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(first).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * check).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    let digits = digits.as_bytes();
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted =
        [1, 3].into_iter().cycle().zip(digits).map(|(weight, digit)| weight * u32::from(digit - b'0'));
    weighted.sum::<u32>().is_multiple_of(10)
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\r' | '\x0c')).collect()
}

/// A number of a known issuer with a valid check digit; other characters are ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let starts = |prefix: &[u32]| digits.starts_with(prefix);
    let second = digits.get(1).copied().unwrap_or_default();
    let third = digits.get(2).copied().unwrap_or_default();
    let issued = match (digits.len(), digits.first()) {
        (13 | 16, Some(4)) => true,
        (16, Some(5)) => (1..=5).contains(&second),
        (16, Some(6)) => starts(&[6, 0, 1, 1]) || second == 5,
        (16, Some(3)) => second == 5,
        (15, Some(3)) => matches!(second, 4 | 7),
        (14, Some(3)) => matches!(second, 6 | 8) || (second == 0 && third <= 5),
        (15, _) => starts(&[2, 1, 3, 1]) || starts(&[1, 8, 0, 0]),
        _ => false,
    };
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(n, d)| if n % 2 == 1 { doubled(*d) } else { *d }).sum();
    issued && sum.is_multiple_of(10)
}

/// `123-45-6789`, with either separator.
pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(at, byte)| match at {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `rgb(0, 127, 255)`
pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let is_part = |part: &str| {
        let part = part.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
        let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
        plain && part.len() <= 3 && part.parse::<u8>().is_ok()
    };
    inside.split(',').count() == 3 && inside.split(',').all(is_part)
}
