//! How much the program of a pattern takes, before it is made, and how much it may.

use super::{Reader, refuse};
use crate::error::Error;

/// What the program of a pattern may take, as [`measure`] counts it. Go allows 128 MB; a megabyte takes about ten
/// milliseconds to compile here. `\pL{160}` fits, which is more than names of people and things need.
pub(super) const MAX_PROGRAM_BYTES: usize = 8 << 20;
/// The same as the `regex` crate counts it, should [`measure`] be far off.
pub(super) const MAX_COMPILED_BYTES: usize = 2 * MAX_PROGRAM_BYTES;
/// What all patterns of one schema, or of one policy, may take together, as [`measure`] counts it. Each is compiled when
/// it first runs, and kept.
pub const MAX_TOGETHER_BYTES: usize = 16 << 20;

/// What one step of a program takes: a character of ASCII, a choice.
pub(super) const STATE_BYTES: usize = 32;
/// What it takes to match any character: those of all lengths in UTF-8.
pub(super) const ANY_BYTES: usize = 40 * STATE_BYTES;
/// What it takes to match a class by its Unicode property: `\pL` has some 660 ranges, most others fewer.
pub(super) const PROPERTY_BYTES: usize = 48 << 10;
/// What each further property in the same class adds.
pub(super) const MORE_PROPERTY_BYTES: usize = 8 << 10;

/// Whether Go would take a pattern, without compiling it: roughly how many bytes its program has, or Go's refusal.
pub fn measure(pattern: &str) -> Result<usize, Error> {
    Reader::new(pattern).read().map(|(_, bytes)| bytes)
}

/// What compiling a pattern costs beyond what Kubernetes charges for matching: nothing for small ones. A unit of cost
/// is about a tenth of a microsecond.
pub(crate) fn compile_cost(pattern: &str) -> u64 {
    const FREE_BYTES: usize = 4 << 10;
    const BYTES_PER_UNIT: usize = 16;
    let bytes = measure(pattern).unwrap_or_default();
    (bytes.saturating_sub(FREE_BYTES) / BYTES_PER_UNIT) as u64
}

/// The refusal of a pattern whose program is too large; of a long text the beginning is shown.
pub(super) fn too_large(pattern: &str) -> Error {
    const SHOWN: usize = 1000;
    let end = (0..=SHOWN.min(pattern.len())).rev().find(|at| pattern.is_char_boundary(*at));
    refuse("expression too large", &pattern[..end.unwrap_or_default()])
}

/// What the program of a class takes, roughly, by its text.
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
