//! Quantities: the canonical text parses to the same amount, and sums and orders agree.

use super::texts;
use crate::{Target, recorded::divide};
use api::quantity::Quantity;
use std::cmp::Ordering;

pub(super) const TARGET: Target = Target { name: "quantity", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-9",
    "e2147483647",
    ".",
    "-",
    "+",
    "0",
    "9223372036854775807",
    "999999999999999999999999",
    "0.0000000001",
];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds =
        texts(&["0", "1", "500m", "1.5Gi", "-3k", "12e6", "1E", "1Ei", "9223372036854775807", ".5", "1e-30"]);
    seeds.push(b"1Gi\xfe1.5G".to_vec());
    seeds
}

fn check(input: &[u8]) {
    let (one, other) = divide(input).unwrap_or((input, b"1"));
    let read = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<Quantity>().ok();
    let Some(one) = read(one) else { return };
    let printed = one.canonical();
    let again: Quantity = printed.parse().unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(again.canonical(), printed);
    assert_eq!(again, one, "{printed}");
    assert_eq!(one.sign(), one.cmp_i64(0), "{printed}");
    assert_eq!(one.is_zero(), one.sign() == Ordering::Equal, "{printed}");
    if let Some(whole) = one.as_i64() {
        assert_eq!(one.cmp_i64(whole), Ordering::Equal, "{printed}");
    }
    // Kubernetes: negative amounts are rounded away from zero, or not, depending on their size.
    if let Some(up) = one.value().filter(|_| !one.is_negative()) {
        assert_ne!(one.cmp_i64(up), Ordering::Greater, "{printed} rounds up to {up}");
    }
    let Some(other) = read(other) else { return };
    assert_eq!(one.cmp(&other), other.cmp(&one).reverse(), "{one} and {other}");
    let mut sum = one.clone();
    sum += &other;
    assert_eq!(sum.cmp(&one), other.sign(), "{one} + {other} = {sum}");
    sum -= &other;
    assert_eq!(sum, one, "{one} + {other} - {other}");
}
