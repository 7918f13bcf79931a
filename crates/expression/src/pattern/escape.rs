//! Everything that begins with a backslash.

use super::{
    Reader, class, refuse,
    size::{STATE_BYTES, class_bytes},
    unicode,
};
use crate::error::Error;

impl Reader<'_> {
    pub(super) fn escape(&mut self) -> Result<(), Error> {
        let here = self.rest;
        let anchor = match here.as_bytes().get(1) {
            Some(b'A') => r"\A",
            Some(b'z') => r"\z",
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"(?-u:\B)",
            Some(b'C') => return Err(refuse(BAD_ESCAPE, &here[..2])),
            Some(b'Q') => {
                self.quoted();
                return Ok(());
            }
            _ => "",
        };
        if !anchor.is_empty() {
            self.skip(2);
            self.atom(STATE_BYTES);
            self.out.push_str(anchor);
            return Ok(());
        }
        let set = match unicode::class(here)? {
            Some(set) => Some(set),
            None => class::perl(here),
        };
        if let Some((set, after)) = set {
            self.rest = after;
            self.atom(class_bytes(&set, false, self.flags.fold));
            self.push_class(&set, false);
            return Ok(());
        }
        let (code, after) = code_point(here)?;
        self.rest = after;
        self.literal(char::from_u32(code));
        Ok(())
    }

    /// `\Q…\E`: the text between is literal.
    fn quoted(&mut self) {
        let text = &self.rest[2..];
        let (text, after) = text.split_once(r"\E").unwrap_or((text, ""));
        for c in text.chars() {
            self.literal(Some(c));
        }
        self.rest = after;
    }
}

const BAD_ESCAPE: &str = "invalid escape sequence";

/// The code point of an escape, and the rest.
pub(super) fn code_point(here: &str) -> Result<(u32, &str), Error> {
    let mut chars = here[1..].chars();
    let Some(c) = chars.next() else { return Err(refuse("trailing backslash at end of expression", "")) };
    let after = chars.as_str();
    let code = match c {
        '1'..='7' if !after.starts_with(|next| matches!(next, '0'..='7')) => None,
        '0'..='7' => return Ok(octal(&here[1..])),
        'x' => return hexadecimal(here),
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(0x0a),
        'r' => Some(0x0d),
        't' => Some(0x09),
        'v' => Some(0x0b),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, after)),
        None => Err(refuse(BAD_ESCAPE, &here[..here.len() - after.len()])),
    }
}

/// Up to three digits.
fn octal(digits: &str) -> (u32, &str) {
    let length = digits.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
    let code = digits.bytes().take(length).fold(0, |code, b| code * 8 + u32::from(b - b'0'));
    (code, &digits[length..])
}

/// `\x41` or `\x{263a}`. Go's messages end where its parser stopped.
fn hexadecimal(here: &str) -> Result<(u32, &str), Error> {
    let wrong = |rest: &str| Err(refuse(BAD_ESCAPE, &here[..here.len() - rest.len()]));
    let mut chars = here[2..].chars();
    if let Some(braced) = here[2..].strip_prefix('{') {
        let mut code = 0;
        let mut chars = braced.chars();
        let mut digits = 0;
        while let Some(c) = chars.next() {
            match c.to_digit(16) {
                Some(digit) => code = code * 16 + digit,
                None if c == '}' && digits > 0 => return Ok((code, chars.as_str())),
                None => return wrong(chars.as_str()),
            }
            if code > u32::from(char::MAX) {
                return wrong(chars.as_str());
            }
            digits += 1;
        }
        return wrong("");
    }
    let Some(first) = chars.next() else { return wrong("") };
    let second = chars.next();
    match (first.to_digit(16), second.and_then(|c| c.to_digit(16))) {
        (Some(high), Some(low)) => Ok((high * 16 + low, chars.as_str())),
        _ => wrong(chars.as_str()),
    }
}
