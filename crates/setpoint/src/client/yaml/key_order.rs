//! The order of keys: letters after everything else, runs of digits by their value.

use std::cmp::Ordering;

pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for at in 0..a.len().min(b.len()) {
        if a[at] == b[at] {
            continue;
        }
        return match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
            (true, true) => a[at].cmp(&b[at]),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => numbers(&a, &b, at),
        };
    }
    a.len().cmp(&b.len())
}

/// Compares from the first difference on, which is no letter.
fn numbers(a: &[char], b: &[char], at: usize) -> Ordering {
    // A zero counts only behind another digit of the same number: `10` and `1`.
    let is_inside = (a[at] == '0' || b[at] == '0')
        && a[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
    let start = u64::from(is_inside);
    let (a_value, a_digits) = value(&a[at..], start);
    let (b_value, b_digits) = value(&b[at..], start);
    a_value.cmp(&b_value).then(a_digits.cmp(&b_digits)).then(a[at].cmp(&b[at]))
}

fn value(text: &[char], start: u64) -> (u64, usize) {
    let digits = text.iter().map_while(|c| c.to_digit(10));
    digits.fold((start, 0), |(value, count), digit| {
        (value.saturating_mul(10).saturating_add(u64::from(digit)), count + 1)
    })
}
