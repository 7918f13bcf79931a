//! What a JSON string says: escapes and bytes that are no UTF-8 replaced by characters.

/// The text of a string whose escapes are known to be well-formed.
pub(super) fn unquote(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let (code, after) = escape.split_at(1);
        rest = after;
        match code {
            "b" => text.push('\u{8}'),
            "f" => text.push('\u{c}'),
            "n" => text.push('\n'),
            "r" => text.push('\r'),
            "t" => text.push('\t'),
            "u" => text.push(unicode_escape(&mut rest)),
            other => text.push_str(other),
        }
    }
    text.push_str(rest);
    text
}

/// The character of a `\u` escape, or of two that make a surrogate pair. Half a pair is U+FFFD.
fn unicode_escape(rest: &mut &str) -> char {
    fn unit(text: &str) -> Option<u32> {
        u32::from_str_radix(text.get(..4)?, 16).ok()
    }
    let first = unit(rest).unwrap_or_default();
    *rest = rest.get(4..).unwrap_or_default();
    if let Some(single) = char::from_u32(first) {
        return single;
    }
    let second = rest.strip_prefix("\\u").and_then(unit);
    match second {
        Some(low @ 0xdc00..0xe000) if first < 0xdc00 => {
            *rest = &rest[6..];
            char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}')
        }
        _ => '\u{fffd}',
    }
}

/// Kubernetes: Go reads each byte that is no UTF-8 as U+FFFD.
pub(super) fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    text
}
