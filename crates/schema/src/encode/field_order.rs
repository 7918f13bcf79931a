//! The order in which kube-apiserver writes the members of a `FieldsV1`: by path element, not by text.
//!
//! `.` comes first, then fields, then keys and values of lists by their value (port 80 before port 443), then
//! positions.

use serde_json::{Map, Value};

use crate::field_set::Element;

pub(super) fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    // The map is sorted by text already, which is right for sets of fields only: most sets.
    if members.keys().any(|name| name != "." && !name.starts_with("f:")) {
        sorted.sort_by_cached_key(|(name, _)| SortKey::of(name));
    }
    sorted
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SortKey<'a> {
    Itself,
    Of(Element),
    /// Not a path element: a client sent it.
    Strange(&'a str),
}

impl<'a> SortKey<'a> {
    fn of(name: &'a str) -> Self {
        match Element::from_text(name) {
            _ if name == "." => SortKey::Itself,
            Ok(Some(element)) => SortKey::Of(element),
            _ => SortKey::Strange(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn list_keys_are_ordered_by_their_values() {
        let set = json!({
            "f:b": {}, ".": {}, "f:a": {}, "i:10": {}, "i:9": {},
            r#"k:{"port":443,"protocol":"TCP"}"#: {},
            r#"k:{"port":80,"protocol":"UDP"}"#: {},
            r#"k:{"port":80,"protocol":"TCP"}"#: {},
            r#"v:"b""#: {}, "v:3": {}, r#"v:"a""#: {},
        });
        let names: Vec<_> = super::sorted(set.as_object().unwrap()).into_iter().map(|it| it.0).collect();
        assert_eq!(
            names,
            [
                ".",
                "f:a",
                "f:b",
                r#"k:{"port":80,"protocol":"TCP"}"#,
                r#"k:{"port":80,"protocol":"UDP"}"#,
                r#"k:{"port":443,"protocol":"TCP"}"#,
                "v:3",
                r#"v:"a""#,
                r#"v:"b""#,
                "i:9",
                "i:10",
            ]
        );
    }
}
