//! The spelling of property names in expressions: `a-b` is `a__dash__b`.

use crate::parser::RESERVED;

/// Keywords that cannot be names at all.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

const SEQUENCES: [(&str, &str); 4] = [("__", "underscores"), (".", "dot"), ("-", "dash"), ("/", "slash")];

/// Whether a name is a keyword.
// Kubernetes: such names are spelled `__word__`.
pub(crate) fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || RESERVED.contains(&name)
}

/// The name as an identifier; `None` for names that no expression can spell.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    'next: while let Some(letter) = rest.chars().next() {
        for (text, word) in SEQUENCES {
            if let Some(after) = rest.strip_prefix(text) {
                out.push_str(&format!("__{word}__"));
                rest = after;
                continue 'next;
            }
        }
        if !letter.is_ascii_alphanumeric() && letter != '_' {
            return None;
        }
        out.push(letter);
        rest = &rest[1..];
    }
    Some(out)
}

/// The property name behind an identifier; `None` where an escape sequence is unknown.
pub fn unescape(identifier: &str) -> Option<String> {
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while !rest.is_empty() {
        if let Some((word, after)) = sequence(rest) {
            if let Some((text, _)) = SEQUENCES.iter().find(|(_, known)| *known == word) {
                out.push_str(text);
            } else if is_reserved(word) && rest.len() == identifier.len() && after.is_empty() {
                out.push_str(word);
            } else {
                return None;
            }
            rest = after;
            continue;
        }
        let letter = rest.chars().next()?;
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    Some(out)
}

/// `__word__` at the start, where the word has no underscore.
fn sequence(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("__")?;
    let length = inner.find('_')?;
    let after = inner[length..].strip_prefix("__")?;
    (length > 0).then(|| (&inner[..length], after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_escape_and_come_back() {
        for (name, escaped) in [
            ("a", Some("a")),
            ("a_b", Some("a_b")),
            ("namespace", Some("__namespace__")),
            ("a.b", Some("a__dot__b")),
            ("a-b/c", Some("a__dash__b__slash__c")),
            ("__", Some("__underscores__")),
            ("a__b", Some("a__underscores__b")),
            ("__namespace__", Some("__underscores__namespace__underscores__")),
            ("$a", None),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
            if let Some(escaped) = escaped {
                assert_eq!(unescape(escaped).as_deref(), Some(name));
            }
        }
        assert_eq!(unescape("a__nothing__b"), None);
        assert_eq!(unescape("a__if__"), None);
    }
}
