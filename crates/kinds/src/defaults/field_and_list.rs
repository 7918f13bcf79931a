//! A field that a list has replaced: both are kept, and the field says the first item of the list.

use serde_json::{Value, json};

use super::member::{self, Members};

/// Where both are set and differ, the field wins: an old client sets that one alone.
pub(crate) fn agree(
    of: &mut Members,
    one: &str,
    many: &str,
    item: fn(&str) -> Value,
    text: fn(&Value) -> Option<&str>,
) {
    let first = of.get(many).and_then(Value::as_array).and_then(|items| items.first()).and_then(text);
    match (member::text(of, one), first) {
        ("", None) => {}
        ("", Some(first)) => {
            let first = first.to_owned();
            of.insert(one.to_owned(), first.into());
        }
        (said, first) if first != Some(said) => {
            let items = json!([item(said)]);
            of.insert(many.to_owned(), items);
        }
        _ => {}
    }
}
