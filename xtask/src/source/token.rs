//! Rust text in, tokens out: words, marks, literals and comments, each with its place and line.

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Where it begins and ends, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where it begins; the first line is 1.
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier, a keyword or a number.
    Word,
    /// One character of punctuation.
    Mark,
    /// A string or a character.
    Literal,
    Lifetime,
    Comment,
}

/// Cuts the text of a file into tokens. What does not compile is cut somehow: the compiler complains about it.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let start = at;
        let (kind, end) = match next(bytes, at) {
            Some(found) => found,
            None => {
                line += usize::from(bytes[at] == b'\n');
                at += 1;
                continue;
            }
        };
        at = end.min(bytes.len());
        tokens.push(Token { kind, start, end: at, line });
        line += bytes[start..at].iter().filter(|byte| **byte == b'\n').count();
    }
    tokens
}

/// The kind of the token at a place, and where it ends; `None` for white space.
fn next(bytes: &[u8], at: usize) -> Option<(TokenKind, usize)> {
    let rest = &bytes[at..];
    Some(match rest[0] {
        byte if byte.is_ascii_whitespace() => return None,
        b'/' if rest.starts_with(b"//") => (TokenKind::Comment, at + until(rest, b'\n')),
        b'/' if rest.starts_with(b"/*") => (TokenKind::Comment, at + block_comment(rest)),
        b'"' => (TokenKind::Literal, at + string(rest)),
        b'\'' => quote(rest, at),
        byte if is_word(byte) => match prefixed_literal(rest) {
            Some(length) => (TokenKind::Literal, at + length),
            None => (TokenKind::Word, at + word(rest)),
        },
        _ => (TokenKind::Mark, at + 1),
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn word(rest: &[u8]) -> usize {
    let raw = if rest.starts_with(b"r#") { 2 } else { 0 };
    raw + rest[raw..].iter().take_while(|byte| is_word(**byte)).count()
}

fn until(rest: &[u8], end: u8) -> usize {
    rest.iter().position(|byte| *byte == end).unwrap_or(rest.len())
}

/// The length of `/* … */`, which nests.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

/// The length of `"…"` with escapes.
fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'a'` is a character, `'a` a lifetime.
fn quote(rest: &[u8], at: usize) -> (TokenKind, usize) {
    if rest.get(1) == Some(&b'\\') {
        return (TokenKind::Literal, at + 3 + until(rest.get(3..).unwrap_or_default(), b'\'') + 1);
    }
    let length = rest[1..].iter().take_while(|byte| is_word(**byte)).count();
    match rest.get(1 + length) {
        Some(b'\'') if length > 0 => (TokenKind::Literal, at + length + 2),
        _ if length > 0 => (TokenKind::Lifetime, at + 1 + length),
        // A mark, such as '{'.
        _ => (TokenKind::Literal, at + 3),
    }
}

/// The length of `b"…"`, `c"…"`, `b'…'`, `r"…"`, `r#"…"#` and their combinations.
fn prefixed_literal(rest: &[u8]) -> Option<usize> {
    let letters = rest.iter().take_while(|byte| matches!(byte, b'b' | b'c' | b'r')).count();
    let after = rest.get(letters..)?;
    match after.first()? {
        _ if letters == 0 || letters > 2 => None,
        b'"' if rest[..letters].contains(&b'r') => Some(letters + raw_string(after, 0)),
        b'"' => Some(letters + string(after)),
        b'\'' if rest[..letters] == *b"b" => Some(quote(after, letters).1),
        b'#' if rest[..letters].contains(&b'r') => {
            let hashes = after.iter().take_while(|byte| **byte == b'#').count();
            (after.get(hashes) == Some(&b'"'))
                .then(|| letters + hashes + raw_string(&after[hashes..], hashes))
        }
        _ => None,
    }
}

/// The length of what follows the hashes of a raw string, with the quotes and the closing hashes.
fn raw_string(rest: &[u8], hashes: usize) -> usize {
    let closes = |at: &usize| {
        rest[*at] == b'"'
            && rest[*at + 1..].iter().take(hashes).filter(|byte| **byte == b'#').count() == hashes
    };
    (1..rest.len()).find(closes).map_or(rest.len(), |at| at + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(TokenKind, &str)]) {
        let found: Vec<_> =
            tokens(text).iter().map(|token| (token.kind, &text[token.start..token.end])).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn literals_and_comments_hide_what_looks_like_code() {
        use TokenKind::{Comment, Lifetime, Literal, Mark, Word};
        check(
            "fn f() // {\n;",
            &[(Word, "fn"), (Word, "f"), (Mark, "("), (Mark, ")"), (Comment, "// {"), (Mark, ";")],
        );
        check("/* a /* b */ } */ x", &[(Comment, "/* a /* b */ } */"), (Word, "x")]);
        check(r#""a \" {" b"#, &[(Literal, r#""a \" {""#), (Word, "b")]);
        check(r##"r#"a " b"# c"##, &[(Literal, r##"r#"a " b"#"##), (Word, "c")]);
        check(r#"b"{" br"\" c"}""#, &[(Literal, r#"b"{""#), (Literal, r#"br"\""#), (Literal, r#"c"}""#)]);
        check(
            r"'{' '\'' b'\\' 'é'",
            &[(Literal, "'{'"), (Literal, r"'\''"), (Literal, r"b'\\'"), (Literal, "'é'")],
        );
        check("&'a str", &[(Mark, "&"), (Lifetime, "'a"), (Word, "str")]);
        check("r#type bc", &[(Word, "r#type"), (Word, "bc")]);
    }

    #[test]
    fn tokens_know_their_lines() {
        let lines: Vec<_> = tokens("a\n\"x\ny\" b\n/* \n */ c").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }
}
