//! Which characters Go prints as they are.

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols, and of all spaces the plain one.
pub(super) fn is_printable(c: char) -> bool {
    if c == ' ' {
        return true;
    }
    // Formats, surrogates, private use and what is not assigned; Rust's escapes know of the last two.
    !c.is_whitespace() && !c.is_control() && c != '\u{ad}' && !escapes(c)
}

fn escapes(c: char) -> bool {
    !matches!(c, '\'' | '"' | '\\') && c.escape_debug().count() > 1 && !is_mark(c)
}

/// Marks that join with what stands before are escaped at the start of a text alone.
fn is_mark(c: char) -> bool {
    let text = String::from_iter(['a', c]);
    text.escape_debug().count() == 2
}
