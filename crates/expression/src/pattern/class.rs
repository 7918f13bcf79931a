//! Sets of characters: `[a-z]`, `[[:alpha:]]`, `\d`.

use std::fmt::Write as _;

use super::{Reader, escape::code_point, refuse, size::class_bytes, unicode};
use crate::error::Error;

/// The empty set.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";
const EVERYTHING: &str = r"\x{0}-\x{10FFFF}";

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

impl Reader<'_> {
    /// `[…]`
    pub(super) fn class(&mut self) -> Result<(), Error> {
        let here = self.rest;
        let mut rest = &here[1..];
        let negated = rest.starts_with('^');
        if negated {
            rest = &rest[1..];
        }
        let mut set = String::new();
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            rest = match item(rest)? {
                Some((item, after)) => {
                    set.push_str(&item);
                    after
                }
                None => range(rest, here, &mut set)?,
            };
        }
        self.rest = &rest[1..];
        self.atom(class_bytes(&set, negated, self.flags.fold));
        self.push_class(&set, negated);
        Ok(())
    }

    /// Writes the inside of a class with its brackets.
    pub(super) fn push_class(&mut self, set: &str, negated: bool) {
        let (open, close) = if self.flags.fold { ("(?i:[", "])") } else { ("[", "]") };
        match (set.is_empty(), negated) {
            (true, false) => self.out.push_str(NOTHING),
            (true, true) => self.out.extend(["[", EVERYTHING, "]"]),
            (false, false) => self.out.extend([open, set, close]),
            (false, true) => self.out.extend([open, "^", set, close]),
        }
    }
}

/// A named set inside brackets, as the `regex` crate writes it, and the rest.
fn item(rest: &str) -> Result<Option<(String, &str)>, Error> {
    if let Some(end) = rest.strip_prefix("[:").and_then(|inner| inner.find(":]")) {
        let (name, after) = (&rest[2..2 + end], &rest[end + 4..]);
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(refuse(BAD_RANGE, &rest[..end + 4]));
        }
        return Ok(Some((format!("[:{name}:]"), after)));
    }
    Ok(match unicode::class(rest)? {
        Some(found) => Some(found),
        None => perl(rest),
    })
}

pub(super) const BAD_RANGE: &str = "invalid character class range";

/// `\d` and others, which match ASCII only.
pub(super) fn perl(rest: &str) -> Option<(String, &str)> {
    let set = match rest.as_bytes().get(..2)? {
        br"\d" => "0-9",
        br"\D" => "[^0-9]",
        br"\s" => r"\t\n\x0C\r ",
        br"\S" => r"[^\t\n\x0C\r ]",
        br"\w" => "0-9A-Za-z_",
        br"\W" => "[^0-9A-Za-z_]",
        _ => return None,
    };
    Some((set.to_owned(), &rest[2..]))
}

/// One character, or two with a dash between them.
fn range<'p>(here: &'p str, class: &str, set: &mut String) -> Result<&'p str, Error> {
    let (low, mut rest) = character(here, class)?;
    let mut high = low;
    if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
        (high, rest) = character(&rest[1..], class)?;
        if high < low {
            return Err(refuse(BAD_RANGE, &here[..here.len() - rest.len()]));
        }
    }
    // Text cannot contain surrogates, and the `regex` crate rejects them as ends of a range.
    for (from, to) in [(low, high.min(0xd7ff)), (low.max(0xe000), high)] {
        if from <= to {
            write!(set, r"\x{{{from:x}}}-\x{{{to:x}}}").expect("writing to a String cannot fail");
        }
    }
    Ok(rest)
}

fn character<'p>(rest: &'p str, class: &str) -> Result<(u32, &'p str), Error> {
    let mut chars = rest.chars();
    match chars.next() {
        None => Err(refuse("missing closing ]", class)),
        Some('\\') => code_point(rest),
        Some(c) => Ok((u32::from(c), chars.as_str())),
    }
}
