//! Selectors and label sets as the printers write them.

use api::label_selector::LabelSelector;
use serde_json::{Map, Value};

use super::row::{NONE, or};

/// `a=b,c=d`, or `<none>`.
pub(crate) fn labels(of: &Value) -> String {
    or(&pairs(of).join(","), NONE).to_owned()
}

/// `a=b,c in (d,e)`; `None` where it makes no sense. No selector at all and an empty one both are empty.
pub(crate) fn label_selector(selector: &Value) -> Option<String> {
    if selector.is_null() {
        return Some(String::new());
    }
    let selector: LabelSelector = serde_json::from_value(selector.clone()).ok()?;
    selector.to_selector().ok().map(|selector| selector.to_string())
}

/// The same for columns that say so when it is empty or wrong.
pub(crate) fn label_selector_or_none(selector: &Value) -> String {
    match label_selector(selector) {
        None => "<error>".to_owned(),
        Some(text) => or(&text, NONE).to_owned(),
    }
}

/// As Go's generated `String` has it: `&LabelSelector{MatchLabels:map[string]string{a: b,},…}`.
pub(crate) fn debug(selector: &Value) -> String {
    let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap_or_default();
    let labels: String =
        selector.match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions: String = selector
        .match_expressions
        .iter()
        .map(|it| {
            let values = it.values.join(" ");
            format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", it.key, it.operator)
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn pairs(of: &Value) -> Vec<String> {
    let pair = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    let mut pairs: Vec<_> = of.as_object().into_iter().flat_map(Map::iter).map(pair).collect();
    pairs.sort_unstable();
    pairs
}
