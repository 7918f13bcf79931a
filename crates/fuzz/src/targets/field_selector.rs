//! Field selectors: the printed text parses to the same selector, which selects the same.

use super::texts;
use crate::{Target, recorded::divide};
use api::field_selector::FieldSelector;
use std::borrow::Cow;

pub(super) const TARGET: Target = Target { name: "field_selector", check, seeds, words: WORDS };

const WORDS: &[&str] = &["=", "==", "!=", ",", "\\", "\\,", "\\=", "\\\\", "metadata.name", "spec.nodeName"];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&["", "metadata.name=a", "a!=b,c==d", r"a=\,\=\\,b=", ",,a=b,,"]);
    seeds.push(b"a=b,c!=d\xfeb".to_vec());
    seeds
}

fn check(input: &[u8]) {
    let (selector, value) = divide(input).unwrap_or((input, b"a"));
    let Ok(Ok(selector)) = std::str::from_utf8(selector).map(str::parse::<FieldSelector>) else { return };
    let printed = selector.to_string();
    let again: FieldSelector = printed.parse().unwrap_or_else(|error| panic!("{printed:?}: {error}"));
    // Kubernetes: terms are sorted as they were written, `==` before `=`.
    let third: FieldSelector = again.to_string().parse().unwrap();
    assert_eq!(third.to_string(), again.to_string());
    let value = String::from_utf8_lossy(value);
    let matches = |selector: &FieldSelector| selector.matches(|_| Cow::Borrowed(&*value));
    assert_eq!(matches(&again), matches(&selector), "{printed:?}");
    let kept: Result<FieldSelector, ()> =
        selector.transform(|field, value| Ok((field.to_owned(), value.to_owned())));
    assert_eq!(kept.unwrap().to_string(), printed);
}
