//! Estimates the size of a pattern's program before it is compiled, and limits it.

use super::{Reader, refuse};
use crate::error::Error;

/// The largest program of one pattern, as [`measure`] counts it. Go allows 128 MB; a megabyte takes about ten
/// milliseconds to compile here. `\pL{160}` fits, which is more than names of people and things need.
pub(super) const MAX_PROGRAM_BYTES: usize = 8 << 20;
/// The same limit as the `regex` crate counts it, in case [`measure`] is far off.
pub(super) const MAX_COMPILED_BYTES: usize = 2 * MAX_PROGRAM_BYTES;
/// The limit for all patterns of one schema, or of one policy, together, as [`measure`] counts it. Each is
/// compiled when it first runs, and kept.
pub const MAX_TOGETHER_BYTES: usize = 16 << 20;

/// The size of one step of a program: an ASCII character, an alternative.
pub(super) const STATE_BYTES: usize = 32;
/// The size of "any character": all UTF-8 lengths.
pub(super) const ANY_BYTES: usize = 40 * STATE_BYTES;
/// The size of a class by Unicode property: `\pL` has some 660 ranges, most others fewer.
pub(super) const PROPERTY_BYTES: usize = 48 << 10;
/// The size of each further property in the same class.
pub(super) const MORE_PROPERTY_BYTES: usize = 8 << 10;

/// Checks a pattern as Go would, without compiling it: the approximate size of its program, or Go's error.
pub fn measure(pattern: &str) -> Result<usize, Error> {
    Reader::new(pattern).read().map(|(_, bytes)| bytes)
}

/// The cost of compiling a pattern beyond Kubernetes' charge for matching: zero for small ones. A unit of
/// cost is about a tenth of a microsecond.
pub(crate) fn compile_cost(pattern: &str) -> u64 {
    const FREE_BYTES: usize = 4 << 10;
    const BYTES_PER_UNIT: usize = 16;
    let bytes = measure(pattern).unwrap_or_default();
    (bytes.saturating_sub(FREE_BYTES) / BYTES_PER_UNIT) as u64
}

/// The error for a pattern whose program is too large, with the beginning of a long pattern.
pub(super) fn too_large(pattern: &str) -> Error {
    const SHOWN: usize = 1000;
    let end = (0..=SHOWN.min(pattern.len())).rev().find(|at| pattern.is_char_boundary(*at));
    refuse("expression too large", &pattern[..end.unwrap_or_default()])
}

/// The approximate size of the program of a class, by its text.
pub(super) fn class_bytes(set: &str, negated: bool, folded: bool) -> usize {
    let properties = set.matches(r"\p{").count() + set.matches(r"\P{").count();
    // Ends of ranges beyond ASCII take steps for each length in UTF-8.
    let codes = set.split(r"\x{").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    let wide = codes.filter(|code| u32::from_str_radix(code, 16).is_ok_and(|code| code > 0x7f)).count();
    let inverted = negated || set.contains("[^") || set.contains("[:^");
    let plain =
        STATE_BYTES * (1 + set.len() / 16) + wide * 4 * STATE_BYTES + if inverted { ANY_BYTES } else { 0 };
    let by_property = match properties {
        0 => 0,
        several => PROPERTY_BYTES + (several - 1) * MORE_PROPERTY_BYTES,
    };
    (plain + by_property) * if folded { 2 } else { 1 }
}
