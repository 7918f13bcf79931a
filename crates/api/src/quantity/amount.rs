//! An exact decimal number: an integer times a power of ten.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// Kubernetes keeps numbers that fit a machine word apart from those that do not, and `asInteger` in CEL shows
/// which one a quantity is; so we do the same.
#[derive(Clone, Debug)]
pub(super) enum Amount {
    Small { value: i64, scale: i32 },
    Big { value: BigInt, scale: i32 },
}

impl Amount {
    pub(super) fn small(value: i64, scale: i32) -> Self {
        Amount::Small { value, scale }
    }

    pub(super) fn big(value: BigInt, scale: i32) -> Self {
        Amount::Big { value, scale }
    }

    pub(super) fn sign(&self) -> Ordering {
        match self {
            Amount::Small { value, .. } => value.cmp(&0),
            Amount::Big { value, .. } => value.cmp(&BigInt::ZERO),
        }
    }

    /// Only for a small number that is written without a fraction: 1 but not 1000m.
    pub(super) fn as_i64(&self) -> Option<i64> {
        match self {
            Amount::Small { value, scale } => shift(*value, u32::try_from(*scale).ok()?),
            Amount::Big { .. } => None,
        }
    }

    /// How many times `10^scale` it is, rounded away from zero; nothing if that does not fit.
    pub(super) fn count(&self, scale: i32) -> Option<i64> {
        let (rounded, _) = self.round_up(scale);
        let (value, own_scale) = rounded.parts();
        let wider = u32::try_from(own_scale - scale).ok()?;
        // 19 digits are more than a machine word holds, unless there is nothing to widen.
        if wider > 19 && value != BigInt::ZERO {
            return None;
        }
        i64::try_from(value * power_of_ten(wider)).ok()
    }

    /// The next number away from zero that has no digits below `10^scale`, and whether it is the same number.
    pub(super) fn round_up(&self, scale: i32) -> (Self, bool) {
        match (u32::try_from(scale - self.scale()), self) {
            (Err(_) | Ok(0), _) => (self.clone(), true),
            (Ok(dropped), Amount::Small { value, .. }) => {
                let divisor = 10_i64.checked_pow(dropped);
                let (quotient, rest) =
                    divisor.map_or((0, *value), |divisor| (value / divisor, value % divisor));
                (Amount::small(quotient + rest.signum(), scale), rest == 0)
            }
            (Ok(dropped), Amount::Big { value, .. }) => {
                // A divisor longer than the number need not be computed.
                let (quotient, rest) = if dropped > digits(value) {
                    (BigInt::ZERO, value.clone())
                } else {
                    let divisor = power_of_ten(dropped);
                    (value / &divisor, value % &divisor)
                };
                let away = match rest.sign() {
                    Sign::Minus => -1,
                    Sign::NoSign => 0,
                    Sign::Plus => 1,
                };
                (Amount::big(quotient + away, scale), away == 0)
            }
        }
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        if let (Amount::Small { value, scale }, Amount::Small { value: other_value, scale: other_scale }) =
            (self, other)
            && let Some(sum) = add_small((*value, *scale), (*other_value, *other_scale))
        {
            return sum;
        }
        let (value, scale) = self.parts();
        let (other_value, other_scale) = other.parts();
        let common = scale.min(other_scale);
        let align = |value: BigInt, scale: i32| value * power_of_ten(scale.abs_diff(common));
        Amount::big(align(value, scale) + align(other_value, other_scale), common)
    }

    pub(super) fn multiply(&self, factor: i64) -> Self {
        if let Amount::Small { value, scale } = self
            && let Some(product) = value.checked_mul(factor)
        {
            return Amount::small(product, *scale);
        }
        let (value, scale) = self.parts();
        Amount::big(value * factor, scale)
    }

    /// Digits before the decimal point; none or less for fractions.
    pub(super) fn whole_digits(&self) -> i64 {
        let digits = match self {
            Amount::Small { value, .. } => value.unsigned_abs().checked_ilog10().map_or(0, |most| most + 1),
            Amount::Big { value, .. } => digits(value),
        };
        i64::from(digits) + i64::from(self.scale())
    }

    /// Digits, and the power of ten to read them with: a multiple of three and as large as can be.
    pub(super) fn in_thousands(&self) -> (String, i32) {
        let text = match self {
            Amount::Small { value, .. } => value.to_string(),
            Amount::Big { value, .. } => value.to_string(),
        };
        let significant = text.trim_end_matches('0');
        let exponent = self.scale() + i32::try_from(text.len() - significant.len()).unwrap_or(i32::MAX);
        let excess = exponent.rem_euclid(3);
        let zeros = "00".get(..excess.unsigned_abs() as usize).unwrap_or_default();
        (format!("{significant}{zeros}"), exponent - excess)
    }

    /// A whole number as digits, and how many times it was divided by 1024: as often as can be, up to `most`.
    pub(super) fn in_1024s(&self, most: usize) -> (String, usize) {
        let (value, scale) = self.round_up(0).0.parts();
        let mut value = value * power_of_ten(scale.unsigned_abs());
        let mut times = 0;
        while times < most && (&value % 1024_u32) == BigInt::ZERO {
            value /= 1024_u32;
            times += 1;
        }
        (value.to_string(), times)
    }

    pub(super) fn approximate(&self) -> f64 {
        let value = match self {
            Amount::Small { value, .. } => *value as f64,
            Amount::Big { value, .. } => value.to_string().parse().unwrap_or(f64::NAN),
        };
        // Parsing gives the nearest power; multiplying tens up would drift.
        let power = format!("1e{}", self.scale()).parse().unwrap_or(f64::NAN);
        value * power
    }

    pub(super) fn scale(&self) -> i32 {
        match self {
            Amount::Small { scale, .. } | Amount::Big { scale, .. } => *scale,
        }
    }

    fn parts(&self) -> (BigInt, i32) {
        match self {
            Amount::Small { value, scale } => (BigInt::from(*value), *scale),
            Amount::Big { value, scale } => (value.clone(), *scale),
        }
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Amount::Small { value, scale }, Amount::Small { value: other_value, scale: other_scale }) =
            (self, other)
            && scale == other_scale
        {
            return value.cmp(other_value);
        }
        let sign = self.sign();
        if sign != other.sign() || sign == Ordering::Equal {
            return sign.cmp(&other.sign());
        }
        let ((value, scale), (other_value, other_scale)) = (self.parts(), other.parts());
        let magnitude = |value: &BigInt, scale: i32| i64::from(digits(value)) + i64::from(scale);
        // Numbers of the same magnitude are close, so that aligning them costs little.
        let (ours, theirs) = (magnitude(&value, scale), magnitude(&other_value, other_scale));
        if ours != theirs {
            return if sign == Ordering::Greater { ours.cmp(&theirs) } else { theirs.cmp(&ours) };
        }
        let common = scale.min(other_scale);
        let align = |value: BigInt, scale: i32| value * power_of_ten(scale.abs_diff(common));
        align(value, scale).cmp(&align(other_value, other_scale))
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Amount {}

fn add_small(left: (i64, i32), right: (i64, i32)) -> Option<Amount> {
    match (left, right) {
        (sum, (0, _)) | ((0, _), sum) => Some(Amount::small(sum.0, sum.1)),
        ((value, scale), (other, other_scale)) => {
            let common = scale.min(other_scale);
            let value = shift(value, scale.abs_diff(common))?;
            let other = shift(other, other_scale.abs_diff(common))?;
            Some(Amount::small(value.checked_add(other)?, common))
        }
    }
}

fn shift(value: i64, digits: u32) -> Option<i64> {
    if value == 0 { Some(0) } else { value.checked_mul(10_i64.checked_pow(digits)?) }
}

fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10_u32).pow(exponent)
}

fn digits(value: &BigInt) -> u32 {
    u32::try_from(value.magnitude().to_string().len()).unwrap_or(u32::MAX)
}
