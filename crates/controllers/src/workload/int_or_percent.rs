//! Numbers in specs that may be a share of something, such as `maxUnavailable: 25%`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// The number itself, or so many percent of `total`; `None` if it is neither.
pub(super) fn scaled(value: &IntOrString, total: usize, rounding: Rounding) -> Option<usize> {
    match value {
        IntOrString::Int(number) => Some(usize::try_from(*number).unwrap_or_default()),
        IntOrString::String(text) => {
            let share = text.strip_suffix('%')?.parse::<usize>().ok()?.saturating_mul(total);
            Some(match rounding {
                Rounding::Up => share.div_ceil(100),
                Rounding::Down => share / 100,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded() {
        let text = |text: &str| IntOrString::String(text.to_owned());
        for (value, total, rounding, expected) in [
            (IntOrString::Int(3), 10, Rounding::Up, Some(3)),
            (IntOrString::Int(-3), 10, Rounding::Up, Some(0)),
            (text("25%"), 10, Rounding::Up, Some(3)),
            (text("25%"), 10, Rounding::Down, Some(2)),
            (text("0%"), 10, Rounding::Up, Some(0)),
            (text("100%"), 7, Rounding::Down, Some(7)),
            (text("x"), 10, Rounding::Up, None),
        ] {
            assert_eq!(scaled(&value, total, rounding), expected, "{value:?} of {total}");
        }
    }
}
