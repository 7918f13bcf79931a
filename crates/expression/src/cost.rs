//! The units of cost: sizes and costs as ranges that never overflow.

/// The cost of each character of a string that is traversed.
pub const STRING_TRAVERSAL: f64 = 0.1;
/// The cost of each character of a pattern: about four make one step of the regex machine.
pub const REGEX_LENGTH: f64 = 0.25;
pub const LIST_CREATE: u64 = 10;
pub const MAP_CREATE: u64 = 30;
pub const STRUCT_CREATE: u64 = 40;

/// A range of sizes or costs; the upper end saturates at the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    pub const UNKNOWN: Range = Range { min: 0, max: u64::MAX };
    pub const ZERO: Range = Range { min: 0, max: 0 };
    pub const ONE: Range = Range { min: 1, max: 1 };

    pub const fn exactly(count: u64) -> Range {
        Range { min: count, max: count }
    }

    pub fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Each end times a factor, rounded up.
    pub fn scaled(self, factor: f64) -> Range {
        Range { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// The smallest range that holds both.
    pub fn union(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// A count times a factor, rounded up: `ceil(count * factor)`.
pub fn scale(count: u64, factor: f64) -> u64 {
    let product = count as f64 * factor;
    if product > 0.0 && product >= u64::MAX as f64 { u64::MAX } else { product.ceil() as u64 }
}
