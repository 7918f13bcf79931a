//! Compiles a pattern in Go's syntax, with Go's error texts.
//!
//! Both engines are of RE2's family, but their dialects differ: `\d` means ASCII in Go, `\Q…\E` exists only
//! there, `x**` is an error there, and so on. So the pattern is parsed as Go does and rewritten.

mod class;
mod escape;
mod repeat;
mod size;
mod unicode;

pub(crate) use size::compile_cost;
pub use size::{MAX_TOGETHER_BYTES, measure};

use std::{cell::RefCell, collections::VecDeque};

use regex::{Regex, RegexBuilder};

use crate::error::Error;
use repeat::counts;
use size::{ANY_BYTES, MAX_COMPILED_BYTES, MAX_PROGRAM_BYTES, STATE_BYTES, too_large};

/// Go: how deep an expression may nest.
const MAX_HEIGHT: u32 = 1000;
/// The memory per thread for running a pattern fast. Beyond it matching is slower; the default is eight times
/// as much, for each pattern of each schema.
const MAX_RUNNING_BYTES: usize = 256 << 10;
/// As many patterns as one comprehension is likely to alternate between.
const MAX_REMEMBERED: usize = 16;
/// Larger programs are not cached: a thread would hold sixteen of them.
const MAX_REMEMBERED_BYTES: usize = 64 << 10;
/// More than an expression of the permitted height can need.
const MAX_NESTING: u32 = 4 * MAX_HEIGHT;

/// Compiles a pattern as Go's `regexp.Compile` would read it.
pub fn compile(pattern: &str) -> Result<Regex, Error> {
    let translated = Reader::new(pattern).read()?.0;
    RegexBuilder::new(&translated)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_RUNNING_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|_| too_large(pattern))
}

thread_local! {
    static RECENT: RefCell<VecDeque<(Box<str>, Regex)>> = const { RefCell::new(VecDeque::new()) };
}

/// As [`compile`], for a pattern that may come again at once, as in a comprehension: a thread caches the last
/// few.
pub fn recall(pattern: &str) -> Result<Regex, Error> {
    let known = RECENT.with_borrow(|recent| {
        recent.iter().find(|(known, _)| **known == *pattern).map(|(_, regex)| regex.clone())
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    let regex = compile(pattern)?;
    if measure(pattern)? <= MAX_REMEMBERED_BYTES && pattern.len() <= MAX_REMEMBERED_BYTES {
        RECENT.with_borrow_mut(|recent| {
            recent.truncate(MAX_REMEMBERED - 1);
            recent.push_front((pattern.into(), regex.clone()));
        });
    }
    Ok(regex)
}

fn refuse(problem: &str, at: &str) -> Error {
    Error::new(format!("error parsing regexp: {problem}: `{at}`"))
}

/// The flags that `(?i)` and similar groups set.
#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    lines: bool,
    dot_takes_newline: bool,
    lazy: bool,
}

/// The last atom written, to which a repetition would apply.
#[derive(Clone, Copy)]
struct Atom {
    start: usize,
    repeated: bool,
    /// The largest product of nested counts inside.
    count: u32,
    height: u32,
    /// The approximate size of its program.
    bytes: usize,
}

/// A group that is still open; the whole pattern is the outermost.
#[derive(Default)]
struct Group {
    start: usize,
    /// The flags to restore once the group is closed.
    flags: Flags,
    last: Option<Atom>,
    count: u32,
    height: u32,
    /// The total size of the programs of its atoms.
    bytes: usize,
}

/// Parses Go's syntax and writes that of the `regex` crate, without flags: each atom carries its own.
struct Reader<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    flags: Flags,
    group: Group,
    outer: Vec<Group>,
    /// The total size of the programs of atoms in outer groups.
    outer_bytes: usize,
    /// The position of the repetition just parsed.
    repetition: Option<&'p str>,
}

impl<'p> Reader<'p> {
    fn new(whole: &'p str) -> Self {
        Reader {
            whole,
            rest: whole,
            out: String::with_capacity(whole.len() + 16),
            flags: Flags::default(),
            group: Group::default(),
            outer: Vec::new(),
            outer_bytes: 0,
            repetition: None,
        }
    }

    /// The pattern in the other syntax, and the size of its program.
    fn read(mut self) -> Result<(String, usize), Error> {
        while let Some(next) = self.rest.chars().next() {
            let here = self.rest;
            let mut repetition = None;
            match next {
                '(' => self.open()?,
                '|' => self.alternative(),
                ')' => self.close()?,
                '^' | '$' | '.' => self.anchor_or_dot(next),
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(here, &here[..1], 1)?;
                    repetition = Some(here);
                }
                '{' => match counts(here) {
                    Some(counts) => {
                        self.rest = counts.after;
                        self.repeat_counted(here, counts)?;
                        repetition = Some(here);
                    }
                    None => self.literal_here(next),
                },
                '\\' => self.escape()?,
                _ => self.literal_here(next),
            }
            self.repetition = repetition;
            // Checked before expansion: a class of three letters may stand for hundreds of ranges.
            if self.outer_bytes.saturating_add(self.group.bytes) > MAX_PROGRAM_BYTES {
                return Err(too_large(self.whole));
            }
        }
        if !self.outer.is_empty() {
            return Err(refuse("missing closing )", self.whole));
        }
        Ok((self.out, self.group.bytes))
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// Notes that an atom begins here, and the size of its program.
    fn atom(&mut self, bytes: usize) {
        self.group.last = Some(Atom { start: self.out.len(), repeated: false, count: 1, height: 1, bytes });
        self.group.bytes = self.group.bytes.saturating_add(bytes);
        self.group.height = self.group.height.max(1);
        self.group.count = self.group.count.max(1);
    }

    fn literal_here(&mut self, c: char) {
        self.skip(c.len_utf8());
        self.literal(Some(c));
    }

    /// `None` is a code point that cannot occur in text: half of a surrogate pair.
    fn literal(&mut self, c: Option<char>) {
        self.atom(STATE_BYTES * c.map_or(1, char::len_utf8) * if self.flags.fold { 2 } else { 1 });
        let Some(c) = c else {
            self.out.push_str(class::NOTHING);
            return;
        };
        let escaped = regex::escape(c.encode_utf8(&mut [0; 4]));
        if self.flags.fold {
            self.out.extend(["(?i:", &escaped, ")"]);
        } else {
            self.out.push_str(&escaped);
        }
    }

    fn anchor_or_dot(&mut self, c: char) {
        self.skip(1);
        self.atom(if c == '.' { ANY_BYTES } else { STATE_BYTES });
        self.out.push_str(match c {
            '^' if self.flags.lines => "(?m:^)",
            '^' => r"\A",
            '$' if self.flags.lines => "(?m:$)",
            '$' => r"\z",
            _ if self.flags.dot_takes_newline => "(?s:.)",
            _ => r"[^\n]",
        });
    }

    fn alternative(&mut self) {
        self.skip(1);
        self.out.push('|');
        self.group.last = None;
    }

    /// `(`, `(?:`, `(?i:`, `(?P<name>`, or `(?i)`, which opens no group. Captures are not used.
    fn open(&mut self) -> Result<(), Error> {
        let flags = self.flags;
        if self.rest.starts_with("(?") {
            if !self.open_extended()? {
                return Ok(());
            }
        } else {
            self.skip(1);
        }
        let group = Group { start: self.out.len(), flags, ..Group::default() };
        self.outer_bytes = self.outer_bytes.saturating_add(self.group.bytes);
        self.outer.push(std::mem::replace(&mut self.group, group));
        self.out.push_str("(?:");
        Ok(())
    }

    /// Reads past `(?…:` or `(?…)` and says whether a group begins.
    fn open_extended(&mut self) -> Result<bool, Error> {
        let here = self.rest;
        let name_at =
            ["(?P<", "(?<"].iter().find(|opening| here.starts_with(**opening)).map(|text| text.len());
        if let Some(name_at) = name_at.filter(|at| here.len() > *at) {
            let Some(end) = here.find('>') else { return Err(refuse("invalid named capture", here)) };
            let name = here.get(name_at..end).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return Err(refuse("invalid named capture", &here[..=end]));
            }
            self.rest = &here[end + 1..];
            return Ok(true);
        }
        let (mut flags, mut on, mut seen) = (self.flags, true, false);
        for (at, c) in here.char_indices().skip(2) {
            let flag = match c {
                'i' => &mut flags.fold,
                'm' => &mut flags.lines,
                's' => &mut flags.dot_takes_newline,
                'U' => &mut flags.lazy,
                '-' if on => {
                    (on, seen) = (false, false);
                    continue;
                }
                ':' | ')' if on || seen => {
                    self.flags = flags;
                    self.rest = &here[at + 1..];
                    return Ok(c == ':');
                }
                _ => return Err(refuse(BAD_PERL, &here[..at + c.len_utf8()])),
            };
            *flag = on;
            seen = true;
        }
        Err(refuse(BAD_PERL, here))
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(outer) = self.outer.pop() else { return Err(refuse("unexpected )", self.whole)) };
        self.skip(1);
        self.out.push(')');
        self.outer_bytes = self.outer_bytes.saturating_sub(outer.bytes);
        let inner = std::mem::replace(&mut self.group, outer);
        self.flags = inner.flags;
        let height = inner.height + 2;
        if height > MAX_HEIGHT {
            return Err(refuse("expression nests too deeply", self.whole));
        }
        self.group.last = Some(Atom {
            start: inner.start,
            repeated: false,
            count: inner.count.max(1),
            height,
            bytes: inner.bytes,
        });
        self.group.bytes = self.group.bytes.saturating_add(inner.bytes);
        self.group.count = self.group.count.max(inner.count);
        self.group.height = self.group.height.max(height);
        Ok(())
    }
}

const BAD_PERL: &str = "invalid or unsupported Perl syntax";

#[cfg(test)]
mod tests;
