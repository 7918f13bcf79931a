//! Repetitions: `*`, `+`, `?` and counts in braces, as Go reads them.

use super::{Reader, refuse, size::STATE_BYTES};
use crate::error::Error;

/// Go: no count in `{…}` may be larger, nor the product of counts that are nested.
const MAX_REPEAT: u32 = 1000;
const BAD_COUNT: &str = "invalid repeat count";

/// `{2}`, `{2,}` or `{2,3}`. A number that is `None` is too large to be one; no upper end is an outer `None`.
pub(super) struct Counts<'p> {
    min: Option<u32>,
    max: Option<Option<u32>>,
    pub(super) after: &'p str,
}

/// Go: what does not look like counts is plain text.
pub(super) fn counts(text: &str) -> Option<Counts<'_>> {
    let (min, rest) = count(text.strip_prefix('{')?)?;
    if let Some(after) = rest.strip_prefix('}') {
        return Some(Counts { min, max: Some(min), after });
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(after) = rest.strip_prefix('}') {
        return Some(Counts { min, max: None, after });
    }
    let (max, rest) = count(rest)?;
    Some(Counts { min, max: Some(max), after: rest.strip_prefix('}')? })
}

fn count(text: &str) -> Option<(Option<u32>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if digits == 0 || (digits > 1 && number.starts_with('0')) {
        return None;
    }
    Some((number.parse().ok(), rest))
}

impl<'p> Reader<'p> {
    pub(super) fn repeat_counted(&mut self, here: &'p str, counts: Counts<'p>) -> Result<(), Error> {
        let Counts { min, max, after } = counts;
        let too_many = |count: Option<u32>| count.is_none_or(|count| count > MAX_REPEAT);
        let reversed = matches!((min, max), (Some(min), Some(Some(max))) if min > max);
        if too_many(min) || max.is_some_and(too_many) || reversed {
            return Err(refuse(BAD_COUNT, &here[..here.len() - after.len()]));
        }
        let (min, max) = (min.unwrap_or_default(), max.map(Option::unwrap_or_default));
        let written = match max {
            Some(max) => format!("{{{min},{max}}}"),
            None => format!("{{{min},}}"),
        };
        self.repeat(here, &written, max.unwrap_or(min))?;
        // `{2,}` is two and any number more.
        if let (None, Some(atom)) = (max, self.group.last) {
            let once = atom.bytes / (min.max(1) as usize);
            self.grow_last(atom.bytes.saturating_add(once));
        }
        Ok(())
    }

    /// Puts a repetition behind the last atom; `here` is where it began, `count` how often it multiplies.
    pub(super) fn repeat(&mut self, here: &'p str, written: &str, count: u32) -> Result<(), Error> {
        let mut lazy = self.flags.lazy;
        if self.rest.starts_with('?') {
            self.skip(1);
            lazy = !lazy;
        }
        let read = |from: &'p str, rest: &str| &from[..from.len() - rest.len()];
        if let Some(before) = self.repetition {
            return Err(refuse("invalid nested repetition operator", read(before, self.rest)));
        }
        let Some(mut atom) = self.group.last else {
            return Err(refuse("missing argument to repetition operator", read(here, self.rest)));
        };
        if atom.repeated {
            self.out.insert_str(atom.start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(written);
        if lazy {
            self.out.push('?');
        }
        let counted = written.starts_with('{');
        atom.repeated = true;
        atom.height += 1;
        atom.count = match count {
            0 => 1,
            count => atom.count.saturating_mul(count),
        };
        if counted && count >= 2 && atom.count > MAX_REPEAT {
            return Err(refuse(BAD_COUNT, read(here, self.rest)));
        }
        self.group.last = Some(atom);
        self.group.count = self.group.count.max(atom.count);
        self.group.height = self.group.height.max(atom.height);
        let times = if counted { count.max(1) as usize } else { 1 };
        self.grow_last(atom.bytes.saturating_mul(times).saturating_add(2 * STATE_BYTES * times));
        Ok(())
    }

    /// Notes that the program of the last atom takes so much.
    fn grow_last(&mut self, bytes: usize) {
        if let Some(atom) = &mut self.group.last {
            self.group.bytes = (self.group.bytes - atom.bytes).saturating_add(bytes);
            atom.bytes = bytes;
        }
    }
}
