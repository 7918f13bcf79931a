//! A mail address, alone or after a display name, as Go's `net/mail` parses it.

pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text.strip_suffix('>').and_then(|rest| split_unquoted(rest, '<')) {
        Some((name, address)) => is_phrase(name.trim_matches([' ', '\t'])) && is_address(address),
        None => is_address(text),
    }
}

fn is_address(text: &str) -> bool {
    split_unquoted(text, '@').is_some_and(|(local, domain)| {
        let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_literal = literal.is_some_and(|inside| {
            !inside.is_empty() && inside.chars().all(|c| !matches!(c, '[' | ']' | '\\') && !c.is_control())
        });
        (is_quoted(local) || is_dot_atom(local)) && (is_literal || is_dot_atom(domain))
    })
}

/// Splits at the last `mark` outside quotes.
fn split_unquoted(text: &str, mark: char) -> Option<(&str, &str)> {
    let (mut quoted, mut escaped, mut found) = (false, false, None);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == mark && !quoted => found = Some(at),
            _ => {}
        }
    }
    let at = found?;
    Some((&text[..at], &text[at + mark.len_utf8()..]))
}

/// The display name before the address; may be empty.
fn is_phrase(text: &str) -> bool {
    is_quoted(text)
        || text
            .split([' ', '\t'])
            .filter(|word| !word.is_empty())
            .all(|word| is_quoted(word) || word.chars().all(|c| is_atom_char(c) || c == '.'))
}

fn is_quoted(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut escaped = false;
    let plain = inside.chars().all(|c| match c {
        _ if escaped => {
            escaped = false;
            !c.is_control()
        }
        '\\' => {
            escaped = true;
            true
        }
        c => c != '"' && (c == '\t' || !c.is_control()),
    });
    plain && !escaped && !inside.is_empty()
}

fn is_dot_atom(text: &str) -> bool {
    !text.is_empty() && text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
}

fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}
