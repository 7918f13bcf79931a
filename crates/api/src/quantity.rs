//! Quantities: exact decimal numbers with a suffix, as in `500m` of a CPU or `1Gi` of memory.
//!
//! They parse, print and round as Kubernetes' do. No floating point is involved.

mod amount;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::ops::{AddAssign, Neg, SubAssign};

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::go;
use amount::Amount;

pub use parse::ParseError;

/// An amount of something. Two of them are equal when their numbers are, whatever they look like.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: QuantityFormat,
    /// Kubernetes: what was parsed and looks canonical is written back as it came: `1.500` and `+1` stay.
    text: Option<Box<str>>,
}

/// The family of suffixes that a quantity prints with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantityFormat {
    /// `12M` is 12·10⁶
    #[default]
    DecimalSi,
    /// `12Mi` is 12·2²⁰
    BinarySi,
    /// `12e6` is 12·10⁶
    DecimalExponent,
}

/// The smallest step is a billionth; what is smaller rounds up to it.
const NANO: i32 = -9;
const MILLI: i32 = -3;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Each is 1024 times the one before.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    pub fn new(value: i64, format: QuantityFormat) -> Self {
        Self::from_amount(Amount::small(value, 0), format)
    }

    /// Thousandths.
    pub fn milli(value: i64, format: QuantityFormat) -> Self {
        Self::from_amount(Amount::small(value, MILLI), format)
    }

    fn from_amount(amount: Amount, format: QuantityFormat) -> Self {
        Quantity { amount, format, text: None }
    }

    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    pub fn is_zero(&self) -> bool {
        self.sign() == Ordering::Equal
    }

    /// Compared with zero.
    pub fn sign(&self) -> Ordering {
        self.amount.sign()
    }

    pub fn is_negative(&self) -> bool {
        self.sign() == Ordering::Less
    }

    /// Has no fraction.
    pub fn is_integer(&self) -> bool {
        self.amount.round_up(0).1
    }

    /// Rounded away from zero to a whole number; nothing if that does not fit.
    pub fn value(&self) -> Option<i64> {
        self.amount.count(0)
    }

    /// Thousandths, rounded away from zero; nothing if that does not fit.
    pub fn milli_value(&self) -> Option<i64> {
        self.amount.count(MILLI)
    }

    /// Kubernetes' `AsInt64`, which CEL's `asInteger` shows: nothing for `1000m` or `1.5Ki`, though they are whole.
    pub fn as_i64(&self) -> Option<i64> {
        self.amount.as_i64()
    }

    pub fn cmp_i64(&self, other: i64) -> Ordering {
        self.amount.cmp(&Amount::small(other, 0))
    }

    /// For ratios only.
    pub fn approximate(&self) -> f64 {
        self.amount.approximate()
    }

    /// Rounded away from zero to a multiple of `10^scale`.
    pub fn round_up(&self, scale: i32) -> Self {
        if self.amount.scale() >= scale {
            return self.clone();
        }
        Self::from_amount(self.amount.round_up(scale).0, self.format)
    }

    pub fn multiply(&self, factor: i64) -> Self {
        Self::from_amount(self.amount.multiply(factor), self.format)
    }

    /// The shortest text without a fraction, in the largest unit. Unlike printing, this ignores how the quantity
    /// was written.
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let is_large = self.cmp_i64(-1024) != Ordering::Greater || self.cmp_i64(1024) != Ordering::Less;
        match self.format {
            QuantityFormat::BinarySi if is_large && self.is_integer() => {
                let (digits, times) = self.amount.in_1024s(BINARY_SUFFIXES.len() - 1);
                digits + BINARY_SUFFIXES[times]
            }
            QuantityFormat::BinarySi | QuantityFormat::DecimalSi => {
                let (digits, exponent) = self.amount.in_thousands();
                // Kubernetes drops the suffix beyond E, and so turns 1000E into 1. We write the zeros instead.
                let (suffix, largest) = DECIMAL_SUFFIXES
                    .into_iter()
                    .rfind(|(_, known)| *known <= exponent)
                    .unwrap_or(DECIMAL_SUFFIXES[0]);
                let zeros = "0".repeat(usize::try_from(exponent - largest).unwrap_or(0));
                format!("{digits}{zeros}{suffix}")
            }
            QuantityFormat::DecimalExponent => match self.amount.in_thousands() {
                (digits, 0) => digits,
                (digits, exponent) => format!("{digits}e{exponent}"),
            },
        }
    }

    fn combine(&mut self, amount: &Amount, format: QuantityFormat) {
        // Kubernetes: zero has no unit of its own, so it takes the other's.
        if self.is_zero() {
            self.format = format;
        }
        self.amount = self.amount.add(amount);
        self.text = None;
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Quantity::new(0, QuantityFormat::DecimalSi)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AddAssign<&Quantity> for Quantity {
    fn add_assign(&mut self, other: &Quantity) {
        self.combine(&other.amount, other.format);
    }
}

impl SubAssign<&Quantity> for Quantity {
    fn sub_assign(&mut self, other: &Quantity) {
        self.combine(&other.amount.multiply(-1), other.format);
    }
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        self.multiply(-1)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From a string, or from a number as if it had been written as a string.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
        let text = go::json(&number).map_err(|_| E::invalid_value(Unexpected::Float(number), &self))?;
        self.visit_str(&text)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }
}
