//! Text in, quantity out, with Go's tolerance and Go's errors.

use std::str::FromStr;

use num_bigint::BigInt;

use super::amount::Amount;
use super::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, NANO, Quantity, QuantityFormat};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// Longer numbers measure nothing, and cost quadratic time. Kubernetes has no such limit.
const MAX_DIGITS: usize = 1024;
/// Digits before the decimal point once the suffix is multiplied in: with as many, the canonical text of an amount, which
/// has up to nine digits more, can be read again.
const MAX_WHOLE_DIGITS: i64 = 1000;
/// The same for powers of ten: comparing `1e1000000000` with 1 keeps the real server busy for minutes.
const MAX_EXPONENT: i32 = 1024;
/// So small that whatever has it is rounded up to a billionth.
const MIN_EXPONENT: i32 = -4096;

/// The pieces of a text: `-1.5Ki` is a sign, `1`, `5` and `Ki`.
struct Pieces<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
struct Unit {
    format: QuantityFormat,
    exponent: i32,
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let pieces = Pieces::split(text)?;
        let unit = Unit::parse(pieces.suffix)?;
        let quantity = match pieces.small_amount(unit) {
            Some(amount) => {
                let text = pieces.looks_canonical(unit).then(|| text.into());
                Quantity { amount, format: unit.format, text }
            }
            None => pieces.big_quantity(unit)?,
        };
        match quantity.amount.whole_digits() > MAX_WHOLE_DIGITS {
            true => Err(ParseError::Number),
            false => Ok(quantity),
        }
    }
}

impl<'a> Pieces<'a> {
    /// Kubernetes: only what follows the number can be wrong here; `-`, `.` and `Ki` are all zero.
    fn split(text: &'a str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Format);
        }
        let is_negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let number = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if !split_digits(number).1.is_empty() {
            return Err(ParseError::Format);
        }
        // Leading zeros go, unless nothing else would be left to tell zero from no number at all.
        let whole = match whole.trim_start_matches('0') {
            "" => &whole[..whole.len().min(1)],
            significant => significant,
        };
        if whole.len() + fraction.len() > MAX_DIGITS {
            return Err(ParseError::Number);
        }
        Ok(Pieces { is_negative, whole, fraction, suffix })
    }

    fn scale(&self, exponent: i32) -> i32 {
        exponent - i32::try_from(self.fraction.len()).expect("there are at most MAX_DIGITS")
    }

    /// The usual case: few digits, no loss.
    fn small_amount(&self, unit: Unit) -> Option<Amount> {
        let digits = self.whole.len().max(1);
        let (scale, factor) = match unit.format {
            QuantityFormat::DecimalSi | QuantityFormat::DecimalExponent
                if digits + self.fraction.len() <= 18 =>
            {
                (self.scale(unit.exponent), 1)
            }
            QuantityFormat::BinarySi
                if self.fraction.is_empty() && binary_digits(digits, unit.exponent) < 15 =>
            {
                (0, 1_i64 << unit.exponent)
            }
            _ => return None,
        };
        if scale < NANO {
            return None;
        }
        let value = format!("0{}{}", self.whole, self.fraction).parse::<i64>().ok()?.checked_mul(factor)?;
        Some(Amount::small(if self.is_negative { -value } else { value }, scale))
    }

    /// Kubernetes keeps the text of a small number that looks canonical: that saves printing it again. It does not
    /// look very closely.
    fn looks_canonical(&self, unit: Unit) -> bool {
        match unit.format {
            // Not a multiple of eight, so not of 1024.
            QuantityFormat::BinarySi => self.whole.parse::<i64>().is_ok_and(|value| value % 8 != 0),
            QuantityFormat::DecimalSi | QuantityFormat::DecimalExponent => {
                let shifted = [self.whole, self.fraction].concat();
                !matches!(self.whole, "" | "0")
                    && self.scale(unit.exponent) % 3 == 0
                    && !shifted.ends_with("000")
            }
        }
    }

    /// Many digits, or a fraction that must be multiplied or rounded first.
    fn big_quantity(&self, unit: Unit) -> Result<Quantity, ParseError> {
        let digits = [self.whole, self.fraction].concat();
        let value: BigInt = digits.parse().map_err(|_| ParseError::Number)?;
        let amount = match unit.format {
            QuantityFormat::BinarySi => Amount::big(value << unit.exponent, self.scale(0)),
            QuantityFormat::DecimalSi | QuantityFormat::DecimalExponent => {
                Amount::big(value, self.scale(unit.exponent))
            }
        };
        let (mut amount, _) = amount.round_up(NANO);
        let mut format = unit.format;
        if format == QuantityFormat::BinarySi {
            // Kubernetes: binary quantities stop at the largest machine word; fractions of one become decimal.
            amount = amount.min(Amount::big(i64::MAX.into(), 0));
            let one = Amount::small(1, 0);
            if amount < one && amount.sign().is_gt() {
                format = QuantityFormat::DecimalSi;
            }
        }
        let amount = if self.is_negative { amount.multiply(-1) } else { amount };
        Ok(Quantity::from_amount(amount, format))
    }
}

impl Unit {
    fn parse(suffix: &str) -> Result<Self, ParseError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.into_iter().find(|(known, _)| *known == suffix) {
            return Ok(Unit { format: QuantityFormat::DecimalSi, exponent });
        }
        if let Some(exponent) = (0..).step_by(10).zip(BINARY_SUFFIXES).find(|(_, known)| *known == suffix) {
            return Ok(Unit { format: QuantityFormat::BinarySi, exponent: exponent.0 });
        }
        let exponent = suffix.strip_prefix(['e', 'E']).ok_or(ParseError::Suffix)?;
        let exponent = exponent.parse::<i64>().map_err(|_| ParseError::Suffix)?;
        // Kubernetes cuts the exponent to 32 bits without looking.
        match exponent as i32 {
            exponent if exponent > MAX_EXPONENT => Err(ParseError::Suffix),
            exponent => {
                Ok(Unit { format: QuantityFormat::DecimalExponent, exponent: exponent.max(MIN_EXPONENT) })
            }
        }
    }
}

/// About how many digits a number has after the suffix is multiplied in; Kubernetes' estimate.
fn binary_digits(digits: usize, exponent: i32) -> usize {
    digits + usize::try_from(exponent * 3 / 10).unwrap_or(0)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}
