//! Text → tokens.

use crate::issues::Found;

/// One token, by its place in the characters of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Symbol(&'static str),
    True,
    False,
    Null,
    In,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    Escaped,
    End,
}

/// Longest first.
const SYMBOLS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "&", "|",
];

/// The tokens of a source, ending with `End`. Other characters are reported and skipped.
pub(crate) fn tokens(text: &[char], found: &mut Found<'_>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if let Some(end) = blank(text, at) {
            at = end;
            continue;
        }
        match token(text, at) {
            Ok((kind, end)) => {
                tokens.push(Token { kind, start: at as u32, end: end as u32 });
                at = end;
            }
            Err(failed) => {
                let shown: String = text[at..text.len().min(failed + 1)].iter().collect();
                let shown = shown.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r");
                found.at(at as u32, format!("Syntax error: token recognition error at: '{shown}'"));
                at = failed + 1;
            }
        }
    }
    let end = text.len() as u32;
    tokens.push(Token { kind: Kind::End, start: end, end });
    tokens
}

/// The end of white space or a comment.
fn blank(text: &[char], at: usize) -> Option<usize> {
    match text[at] {
        '\t' | ' ' | '\r' | '\n' | '\u{c}' => Some(at + 1),
        '/' if text.get(at + 1) == Some(&'/') => Some(
            text[at..].iter().position(|letter| *letter == '\n').map_or(text.len(), |length| at + length),
        ),
        _ => None,
    }
}

/// The token that starts here and its end; otherwise the first character that cannot be part of a token.
fn token(text: &[char], at: usize) -> Result<(Kind, usize), usize> {
    let first = text[at];
    let next = text.get(at + 1).copied();
    if first == '"' || first == '\'' {
        return string(text, at, false).map(|end| (Kind::String, end));
    }
    if let Some((kind, quote)) = prefixed_string(text, at) {
        let raw = matches!(text[quote - 1], 'r' | 'R');
        if let Ok(end) = string(text, quote, raw) {
            return Ok((kind, end));
        }
    }
    if first.is_ascii_digit() || (first == '.' && next.is_some_and(|next| next.is_ascii_digit())) {
        return Ok(number(text, at));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let end = run(text, at, |letter| letter.is_ascii_alphanumeric() || letter == '_');
        let word: String = text[at..end].iter().collect();
        let kind = match word.as_str() {
            "true" => Kind::True,
            "false" => Kind::False,
            "null" => Kind::Null,
            "in" => Kind::In,
            _ => Kind::Identifier,
        };
        return Ok((kind, end));
    }
    if first == '`' {
        let end = run(text, at + 1, |letter| {
            letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/' | ' ')
        });
        let closed = end > at + 1 && text.get(end) == Some(&'`');
        return if closed { Ok((Kind::Escaped, end + 1)) } else { Err(end) };
    }
    for symbol in SYMBOLS {
        if symbol.chars().enumerate().all(|(index, letter)| text.get(at + index) == Some(&letter)) {
            return if matches!(symbol, "&" | "|") {
                Err(at + 1)
            } else {
                Ok((Kind::Symbol(symbol), at + symbol.len()))
            };
        }
    }
    Err(if first == '=' { at + 1 } else { at })
}

fn run(text: &[char], at: usize, belongs: impl Fn(char) -> bool) -> usize {
    text[at..].iter().position(|letter| !belongs(*letter)).map_or(text.len(), |length| at + length)
}

/// Where the quote of `r'…'`, `b'…'` or `br'…'` is.
fn prefixed_string(text: &[char], at: usize) -> Option<(Kind, usize)> {
    let letter = |index: usize| text.get(at + index).map(char::to_ascii_lowercase);
    let is_quote = |index: usize| matches!(text.get(at + index), Some('"' | '\''));
    match (letter(0)?, letter(1)) {
        ('r', _) if is_quote(1) => Some((Kind::String, at + 1)),
        ('b', _) if is_quote(1) => Some((Kind::Bytes, at + 1)),
        ('b', Some('r')) if is_quote(2) => Some((Kind::Bytes, at + 2)),
        _ => None,
    }
}

/// The end of the string whose quote is here.
fn string(text: &[char], at: usize, raw: bool) -> Result<usize, usize> {
    let quote = text[at];
    if text.get(at + 1) == Some(&quote) && text.get(at + 2) == Some(&quote) {
        // An unclosed `"""…` is read as an empty string followed by another.
        return long_string(text, at, raw).or(Ok(at + 2));
    }
    let mut index = at + 1;
    while let Some(letter) = text.get(index) {
        match letter {
            _ if *letter == quote => return Ok(index + 1),
            '\n' | '\r' => return Err(index),
            '\\' if !raw => index = escape(text, index)?,
            _ => index += 1,
        }
    }
    Err(text.len())
}

fn long_string(text: &[char], at: usize, raw: bool) -> Result<usize, usize> {
    let quote = text[at];
    let mut index = at + 3;
    while let Some(letter) = text.get(index) {
        if (0..3).all(|offset| text.get(index + offset) == Some(&quote)) {
            return Ok(index + 3);
        }
        index = if *letter == '\\' && !raw { escape(text, index)? } else { index + 1 };
    }
    Err(text.len())
}

/// The end of an escape sequence.
fn escape(text: &[char], at: usize) -> Result<usize, usize> {
    let digits = |count: usize, fits: fn(&char) -> bool| {
        for index in at + 2..at + 2 + count {
            if !text.get(index).is_some_and(fits) {
                return Err(index.min(text.len()));
            }
        }
        Ok(at + 2 + count)
    };
    match text.get(at + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(at + 2),
        Some('x' | 'X') => digits(2, char::is_ascii_hexdigit),
        Some('u') => digits(4, char::is_ascii_hexdigit),
        Some('U') => digits(8, char::is_ascii_hexdigit),
        Some('0'..='3') => digits(2, |letter| ('0'..='7').contains(letter)),
        _ => Err((at + 1).min(text.len())),
    }
}

fn number(text: &[char], at: usize) -> (Kind, usize) {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let with_suffix = |end: usize| match text.get(end) {
        Some('u' | 'U') => (Kind::Uint, end + 1),
        _ => (Kind::Int, end),
    };
    if text[at] == '0' && text.get(at + 1) == Some(&'x') {
        let end = run(text, at + 2, |letter| letter.is_ascii_hexdigit());
        return if end > at + 2 { with_suffix(end) } else { (Kind::Int, at + 1) };
    }
    let whole = run(text, at, is_digit);
    let mut end = whole;
    if text.get(end) == Some(&'.') && text.get(end + 1).is_some_and(char::is_ascii_digit) {
        end = run(text, end + 1, is_digit);
    }
    if matches!(text.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some('+' | '-')));
        let digits = run(text, (end + 1 + sign).min(text.len()), is_digit);
        if digits > end + 1 + sign {
            end = digits;
        }
    }
    if end > whole { (Kind::Float, end) } else { with_suffix(whole) }
}
