//! Label selectors: the printed text parses to the same selector, which selects the same.

use super::texts;
use crate::{Target, recorded::divide};
use api::label_selector::Selector;
use std::collections::BTreeMap;

pub(super) const TARGET: Target = Target { name: "label_selector", check, seeds, words: WORDS };

const WORDS: &[&str] =
    &[" in ", " notin ", "(", ")", ",", "=", "==", "!=", "!", ">", "<", "a/b", "x", " ", "in", "notin", "1"];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "",
        "a",
        "!a",
        "a=b",
        "a in (b,c,),d notin ( ),e!=f",
        "x/y==z,n>1,m<-3",
        "a in (,)",
        "in in (in)",
    ]);
    seeds.push(b"a=b,c notin (d)\xfea=b,c=e".to_vec());
    seeds
}

fn check(input: &[u8]) {
    let (selector, labels) = divide(input).unwrap_or((input, b""));
    let Ok(Ok(selector)) = std::str::from_utf8(selector).map(str::parse::<Selector>) else { return };
    let printed = selector.to_string();
    let again: Selector = printed.parse().unwrap_or_else(|error| panic!("{printed:?}: {error}"));
    assert_eq!(again, selector, "{printed:?}");
    assert_eq!(again.to_string(), printed);
    let labels = String::from_utf8_lossy(labels);
    let labels: BTreeMap<String, String> = labels
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
    let all = selector.requirements().iter().all(|requirement| requirement.matches(&labels));
    assert_eq!(selector.matches(&labels), all && !selector.is_nothing());
    assert_eq!(again.matches(&labels), selector.matches(&labels));
}
