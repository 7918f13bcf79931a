//! Texts that are not names: identifiers and encoded bytes.

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
