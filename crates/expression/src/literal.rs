//! Parses literal tokens: numbers, and strings with their escapes.

use crate::value::Value;

/// `12`, `-12`, `0x1F`; the text carries its sign.
pub(crate) fn int(text: &str, negative: bool) -> Result<Value<'static>, &'static str> {
    let (digits, base) = radix(text);
    let magnitude = i128::from_str_radix(digits, base).ok();
    let signed = magnitude.map(|value| if negative { -value } else { value });
    signed.and_then(|value| i64::try_from(value).ok()).map(Value::Int).ok_or("invalid int literal")
}

/// `12u`, `0x1Fu`
pub(crate) fn uint(text: &str) -> Result<Value<'static>, &'static str> {
    let (digits, base) = radix(&text[..text.len() - 1]);
    u64::from_str_radix(digits, base).map(Value::Uint).map_err(|_| "invalid uint literal")
}

pub(crate) fn double(text: &str, negative: bool) -> Result<Value<'static>, &'static str> {
    let value: f64 = text.parse().map_err(|_| "invalid double literal")?;
    if value.is_infinite() {
        return Err("invalid double literal");
    }
    Ok(Value::Double(if negative { -value } else { value }))
}

pub(crate) fn string(text: &str) -> Result<Value<'static>, &'static str> {
    let bytes = unescape(text, false)?;
    String::from_utf8(bytes).map(Value::string).map_err(|_| "invalid unicode code point")
}

pub(crate) fn bytes(text: &str) -> Result<Value<'static>, &'static str> {
    unescape(&text[1..], true).map(Value::bytes)
}

fn radix(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16))
}

/// The content of a quoted string whose form the lexer has checked.
fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let raw = text.starts_with(['r', 'R']);
    let text = if raw { &text[1..] } else { &text[..] };
    let quotes =
        if text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\"")) { 3 } else { 1 };
    let text = &text[quotes..text.len() - quotes];
    if raw || !text.contains('\\') {
        return Ok(text.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    let mut buffer = [0; 4];
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        let escape = letters.next().ok_or("unable to unescape string, found '\\' as last character")?;
        if let Some(byte) = simple(escape) {
            out.push(byte);
            continue;
        }
        let code = code_point(escape, &mut letters, is_bytes)?;
        if is_bytes {
            out.push(code as u8);
        } else {
            let letter = char::from_u32(code).ok_or("invalid unicode code point")?;
            out.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes());
        }
    }
    Ok(out)
}

fn simple(escape: char) -> Option<u8> {
    Some(match escape {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '`' | '?' => escape as u8,
        _ => return None,
    })
}

fn code_point(escape: char, letters: &mut std::str::Chars<'_>, is_bytes: bool) -> Result<u32, &'static str> {
    let mut take = |count: usize, base: u32, start: u32| {
        (0..count).try_fold(start, |code, _| {
            let digit = letters.next().and_then(|letter| letter.to_digit(base));
            digit.map(|digit| code.wrapping_mul(base).wrapping_add(digit)).ok_or("unable to unescape string")
        })
    };
    match escape {
        'x' | 'X' => take(2, 16, 0),
        'u' if !is_bytes => take(4, 16, 0),
        'U' if !is_bytes => take(8, 16, 0),
        '0'..='3' => take(2, 8, escape as u32 - '0' as u32),
        _ => Err("unable to unescape string"),
    }
}
