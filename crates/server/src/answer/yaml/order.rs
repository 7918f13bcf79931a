//! The order of keys: by nature, so that `a9` stands before `a10`.

use std::cmp::Ordering;

/// Kubernetes: letters come after everything else, and digits count as numbers.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(at) = one.iter().zip(&other).position(|(left, right)| left != right) else {
        return one.len().cmp(&other.len());
    };
    let (left, right) = (one[at], other[at]);
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // Zeros that stand inside a number do not begin one.
    let digits_before = one[..at].iter().rev().take_while(|c| c.is_ascii_digit());
    let is_inside = (left == '0' || right == '0') && digits_before.into_iter().any(|c| *c != '0');
    let number = |text: &[char]| {
        let digits: Vec<_> = text[at..].iter().map_while(|c| c.to_digit(10)).collect();
        let value = digits.iter().fold(u128::from(is_inside), |value, digit| {
            value.saturating_mul(10).saturating_add(u128::from(*digit))
        });
        (value, digits.len())
    };
    number(&one).cmp(&number(&other)).then(left.cmp(&right))
}
