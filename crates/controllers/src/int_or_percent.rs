//! Numbers that may be a share of another number: `3` or `"25%"`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What becomes of a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// A text that is no percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
// Kubernetes: this text is in conditions and events.
#[error("invalid value for IntOrString: invalid type: string is not a percentage")]
pub(crate) struct NotAPercentage;

/// The number, or so many percent of `whole`.
pub(crate) fn scaled(value: &IntOrString, whole: i32, rounding: Rounding) -> Result<i32, NotAPercentage> {
    match value {
        IntOrString::Int(number) => Ok(*number),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok());
            let hundredfold = percent.ok_or(NotAPercentage)? * i64::from(whole);
            let number = match rounding {
                Rounding::Up => (hundredfold + 99).div_euclid(100),
                Rounding::Down => hundredfold.div_euclid(100),
            };
            Ok(i32::try_from(number).unwrap_or(i32::MAX))
        }
    }
}

/// [`scaled`] for counts: a negative number is none, and a text that is no percentage is not there.
pub(crate) fn scaled_count(value: &IntOrString, whole: usize, rounding: Rounding) -> Option<usize> {
    let whole = i32::try_from(whole).unwrap_or(i32::MAX);
    Some(usize::try_from(scaled(value, whole, rounding).ok()?).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_asked() {
        let percent = |text: &str| IntOrString::String(text.to_owned());
        for (value, whole, up, down) in [
            (IntOrString::Int(3), 10, Ok(3), Ok(3)),
            (percent("25%"), 10, Ok(3), Ok(2)),
            (percent("25%"), 4, Ok(1), Ok(1)),
            (percent("1%"), 1, Ok(1), Ok(0)),
            (percent("0%"), 10, Ok(0), Ok(0)),
            (percent("200%"), 3, Ok(6), Ok(6)),
            (percent("25"), 10, Err(NotAPercentage), Err(NotAPercentage)),
            (percent("many%"), 10, Err(NotAPercentage), Err(NotAPercentage)),
        ] {
            assert_eq!(scaled(&value, whole, Rounding::Up), up, "{value:?} of {whole}");
            assert_eq!(scaled(&value, whole, Rounding::Down), down, "{value:?} of {whole}");
        }
    }
}
