//! JSON text in, its tokens out, with the syntax errors that Go's `encoding/json` words.
//!
//! Kubernetes: clients see these texts, so which input fails, at which byte and with which words is as in Go.

mod text;

use std::borrow::Cow;

use api::go;

use super::{DecodeError, MAX_VALUES};
use crate::run;
use text::{lossy, unquote};

/// Go's limit on nesting, for JSON that is skipped.
pub(super) const MAX_NESTING: usize = 10_000;

/// In memory an object takes as much as this many other values, however few members it has.
const OBJECT_WEIGHT: usize = 4;

/// The text is not JSON: Go's error message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError(pub(super) String);

/// The type of the next value, by its first byte, which is not consumed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

impl Token {
    /// What Go calls such a value in an error.
    pub(super) fn described(self) -> &'static str {
        match self {
            Token::Object => "object",
            Token::Array => "array",
            Token::String => "string",
            Token::Number => "number",
            Token::True | Token::False => "bool",
            Token::Null => "null",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Items and members so far.
    values: usize,
}

/// The container whose value was just read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Object,
    Array,
}

impl From<SyntaxError> for DecodeError {
    fn from(SyntaxError(text): SyntaxError) -> Self {
        DecodeError::Malformed(text)
    }
}

pub(super) type Syntax<T> = Result<T, SyntaxError>;

impl<'b> Scanner<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0, values: 0 }
    }

    /// The byte position: for [`Scanner::since`] and for coming back to a key.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text from a position up to here.
    pub(super) fn since(&self, start: usize) -> &'b [u8] {
        &self.bytes[start..self.at]
    }

    /// The key that starts at a position, spaces before it included.
    pub(super) fn key_at(&self, position: usize) -> Cow<'b, str> {
        let there = Self { at: position, ..self.clone() }.key();
        there.expect("this key was read before")
    }

    /// The type of the next value, by its first byte.
    pub(super) fn token(&mut self) -> Syntax<Token> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => Ok(Token::Object),
            Some(b'[') => Ok(Token::Array),
            Some(b'"') => Ok(Token::String),
            Some(b'-' | b'0'..=b'9') => Ok(Token::Number),
            Some(b't') => Ok(Token::True),
            Some(b'f') => Ok(Token::False),
            Some(b'n') => Ok(Token::Null),
            _ => Err(self.error("looking for beginning of value")),
        }
    }

    /// Consumes `{` or `[` and says whether a first element follows; otherwise the end is consumed too.
    pub(super) fn open(&mut self, token: Token) -> Syntax<bool> {
        self.at += 1;
        self.skip_space();
        let end = if token == Token::Object { b'}' } else { b']' };
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        self.count(if token == Token::Object { OBJECT_WEIGHT } else { 1 })?;
        Ok(true)
    }

    fn count(&mut self, weight: usize) -> Syntax<()> {
        self.values += weight;
        match self.values > MAX_VALUES {
            true => Err(SyntaxError(format!("exceeded max of {MAX_VALUES} values"))),
            false => Ok(()),
        }
    }

    /// A key and its colon.
    pub(super) fn key(&mut self) -> Syntax<Cow<'b, str>> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.error("looking for beginning of object key string"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.error("after object key"));
        }
        self.at += 1;
        Ok(key)
    }

    /// After a member: whether another follows; otherwise `}` is consumed.
    pub(super) fn next_member(&mut self) -> Syntax<bool> {
        self.next(b'}', "after object key:value pair")
    }

    /// After an item: whether another follows; otherwise `]` is consumed.
    pub(super) fn next_item(&mut self) -> Syntax<bool> {
        self.next(b']', "after array element")
    }

    /// Nothing but space follows.
    pub(super) fn end(&mut self) -> Syntax<()> {
        self.skip_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("after top-level value")),
        }
    }

    /// A string without its quotes and escapes. Each byte of invalid UTF-8 becomes U+FFFD.
    pub(super) fn string(&mut self) -> Syntax<Cow<'b, str>> {
        let (raw, escaped) = self.quoted()?;
        let text = match std::str::from_utf8(raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(lossy(raw)),
        };
        Ok(if escaped { Cow::Owned(unquote(&text)) } else { text })
    }

    /// The text between the quotes of a string, and whether it has escapes.
    fn quoted(&mut self) -> Syntax<(&'b [u8], bool)> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += run::length(&self.bytes[self.at..], ends_plain_text);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.error("in string literal")),
            }
        }
        let raw = &self.bytes[start..self.at];
        self.at += 1;
        Ok((raw, escaped))
    }

    /// The digits of a number.
    pub(super) fn number(&mut self) -> Syntax<&'b str> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(std::str::from_utf8(self.since(start)).expect("digits and signs are ASCII"))
    }

    /// `true`, `false` or `null`.
    pub(super) fn literal(&mut self, word: &'static str) -> Syntax<()> {
        for (nth, expected) in word.bytes().enumerate() {
            if self.peek() != Some(expected) {
                let expected = char::from(word.as_bytes()[nth]);
                return Err(self.error_inside(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Skips one value of any depth, without recursion. `depth` is the depth of the value itself.
    pub(super) fn skip(&mut self, depth: usize) -> Syntax<()> {
        let mut open = Vec::new();
        loop {
            let mut follows = false;
            match self.token()? {
                token @ (Token::Object | Token::Array) => {
                    self.nest(depth + open.len(), MAX_NESTING)?;
                    follows = self.open(token)?;
                    if follows {
                        open.push(if token == Token::Object { Inside::Object } else { Inside::Array });
                    }
                }
                Token::String => drop(self.quoted()?),
                Token::Number => drop(self.number()?),
                Token::True => self.literal("true")?,
                Token::False => self.literal("false")?,
                Token::Null => self.literal("null")?,
            }
            if !follows && !self.close(&mut open)? {
                return Ok(());
            }
            if open.last() == Some(&Inside::Object) {
                self.key()?;
            }
        }
    }

    /// After a value: closes the containers that end with it, and says whether another value follows.
    fn close(&mut self, open: &mut Vec<Inside>) -> Syntax<bool> {
        while let Some(inside) = open.last() {
            let more = match inside {
                Inside::Object => self.next_member()?,
                Inside::Array => self.next_item()?,
            };
            if more {
                return Ok(true);
            }
            open.pop();
        }
        Ok(false)
    }

    /// Rejects the `{` or `[` at hand if it is nested `limit` deep already.
    pub(super) fn nest(&self, depth: usize, limit: usize) -> Syntax<()> {
        if depth < limit { Ok(()) } else { Err(self.error("exceeded max depth")) }
    }

    fn next(&mut self, end: u8, context: &str) -> Syntax<bool> {
        self.skip_space();
        let more = match self.peek() {
            Some(b',') => true,
            Some(byte) if byte == end => false,
            _ => return Err(self.error(context)),
        };
        self.at += 1;
        if more {
            self.count(1)?;
        }
        Ok(more)
    }

    fn escape(&mut self) -> Syntax<()> {
        self.at += 1;
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.error_inside("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.error_inside("in string escape code")),
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Syntax<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.error_inside(context)) }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Kubernetes: Go reads a missing byte as a space, and reports the end of input only where a space could
    /// stand.
    #[cold]
    fn error_inside(&self, context: &str) -> SyntaxError {
        invalid(self.peek().unwrap_or(b' '), context)
    }

    #[cold]
    fn error(&self, context: &str) -> SyntaxError {
        match self.peek() {
            Some(byte) => invalid(byte, context),
            None => SyntaxError("unexpected end of JSON input".to_owned()),
        }
    }
}

fn invalid(byte: u8, context: &str) -> SyntaxError {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        // Kubernetes: Go prints the byte as a rune, so bytes above ASCII show as Latin-1.
        _ => go::quote(char::from(byte).encode_utf8(&mut [0; 4])).trim_matches('"').to_owned(),
    };
    SyntaxError(format!("invalid character '{shown}' {context}"))
}

/// Whether a run of plain string text ends at this byte.
fn ends_plain_text(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}
