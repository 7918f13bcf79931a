//! The keywords of numbers: range of the format, `multipleOf`, `minimum`, `maximum`.

use api::go;
use serde_json::Number;

use super::finding::{Finding, Outcome, ValuePath};
use crate::structural::shape::{Bound, More, ValueType};

/// The largest integer that every JSON parser represents exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// How far a number may be from an integer, relative to its size.
const EPSILON: f64 = 1e-9;

/// Whether a number counts as an integer.
pub(super) fn is_whole(number: f64) -> bool {
    if !number.is_finite() || number.abs() > MAX_SAFE {
        return false;
    }
    let whole = number.trunc();
    number == whole || (number > 0.0 && whole != 0.0 && (number - whole) / (number + whole) < EPSILON)
}

pub(super) fn check(kind: ValueType, more: Option<&More>, at: &ValuePath<'_>, number: &Number) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.matches = 1;
    let format = more.and_then(|more| more.format.as_deref());
    let range = Range { kind, format };
    if let Some(integer) = number.as_i64() {
        range.check(&mut outcome, "Checked", at, CheckedNumber::Integer(integer));
    } else if let Some(real) = number.as_f64() {
        range.check(&mut outcome, "Checked", at, CheckedNumber::Real(real));
    }
    let Some(more) = more else { return outcome };
    if let Some(factor) = more.multiple_of.map(|factor| factor.get()) {
        let native = range.check(&mut outcome, "MultipleOf", at, CheckedNumber::Real(factor));
        check_multiple(&mut outcome, at, number, factor, native);
    }
    if let Some(bound) = more.minimum {
        let native = range.check(&mut outcome, "Minimum boundary", at, CheckedNumber::Real(bound.at.get()));
        check_bound(&mut outcome, at, number, bound, native, Side::Minimum);
    }
    if let Some(bound) = more.maximum {
        let native = range.check(&mut outcome, "Maximum boundary", at, CheckedNumber::Real(bound.at.get()));
        check_bound(&mut outcome, at, number, bound, native, Side::Maximum);
    }
    outcome
}

enum CheckedNumber {
    Integer(i64),
    Real(f64),
}

/// The range of a type and format.
struct Range<'a> {
    kind: ValueType,
    format: Option<&'a str>,
}

impl Range<'_> {
    /// Whether a number fits; adds an error if not.
    fn check(&self, outcome: &mut Outcome, what: &str, at: &ValuePath<'_>, number: CheckedNumber) -> bool {
        let (name, fits) = match (self.kind, number) {
            (ValueType::Integer, CheckedNumber::Integer(integer)) => ("integer", self.holds(integer)),
            // Only a number that prints without a point is read back as an integer.
            (ValueType::Integer, CheckedNumber::Real(real)) => {
                ("integer", real.fract() == 0.0 && is_within(real) && self.holds(real as i64))
            }
            (ValueType::Number, CheckedNumber::Real(real)) if self.format == Some("float") => {
                ("number", real.abs() <= f64::from(f32::MAX))
            }
            _ => return true,
        };
        if !fits {
            let how = match self.format {
                Some(format) => format!("with format {format}"),
                None => "(default format)".to_owned(),
            };
            outcome.add(Finding::unplaced(format!("{what} value must be of type {name} {how} in {at}")));
        }
        fits
    }

    fn holds(&self, integer: i64) -> bool {
        self.format != Some("int32") || i32::try_from(integer).is_ok()
    }
}

/// Whether a float fits an i64. The largest i64 has no float: the next float is already above it.
fn is_within(real: f64) -> bool {
    real >= i64::MIN as f64 && real < i64::MAX as f64
}

/// `native`: integers are compared as integers, not floats.
fn check_multiple(outcome: &mut Outcome, at: &ValuePath<'_>, number: &Number, factor: f64, native: bool) {
    let (is_multiple, shown) = match number.as_i64().filter(|_| native) {
        Some(integer) => {
            let factor = factor as i64;
            if factor <= 0 {
                return outcome.add(Finding::odd_factor(at, &factor.to_string()));
            }
            (integer % factor == 0, factor.to_string())
        }
        None => {
            if factor <= 0.0 {
                return outcome.add(Finding::odd_factor(at, &go::float(factor)));
            }
            let real = number.as_f64().unwrap_or_default();
            let times = if factor < 1.0 { 1.0 / factor * real } else { real / factor };
            (is_whole(times), go::float(factor))
        }
    };
    if !is_multiple {
        let value = shown_number(number, native);
        outcome.add(Finding::invalid(at, value, format_args!("should be a multiple of {shown}")));
    }
}

enum Side {
    Minimum,
    Maximum,
}

fn check_bound(
    outcome: &mut Outcome,
    at: &ValuePath<'_>,
    number: &Number,
    bound: Bound,
    native: bool,
    side: Side,
) {
    let (order, shown) = match number.as_i64().filter(|_| native) {
        Some(integer) => {
            let limit = bound.at.get() as i64;
            (Some(integer.cmp(&limit)), limit.to_string())
        }
        None => {
            let limit = bound.at.get();
            (number.as_f64().and_then(|real| real.partial_cmp(&limit)), go::float(limit))
        }
    };
    let Some(order) = order else { return };
    let (passed, than) = match side {
        Side::Minimum => (order.is_lt(), "greater than"),
        Side::Maximum => (order.is_gt(), "less than"),
    };
    if passed || (bound.exclusive && order.is_eq()) {
        let or_equal = if bound.exclusive { "" } else { " or equal to" };
        let value = shown_number(number, native);
        outcome.add(Finding::invalid(at, value, format_args!("should be {than}{or_equal} {shown}")));
    }
}

fn shown_number(number: &Number, native: bool) -> api::field::BadValue {
    match number.as_i64().filter(|_| native) {
        Some(integer) => integer.into(),
        None => number.as_f64().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn reals_beyond_the_largest_integer_are_none() {
        for (real, expected) in [
            (9_223_372_036_854_774_784.0, true),
            (9_223_372_036_854_775_808.0, false),
            (-9_223_372_036_854_775_808.0, true),
            (-9_223_372_036_854_777_856.0, false),
        ] {
            assert_eq!(is_within(real), expected, "{real}");
        }
    }
}
