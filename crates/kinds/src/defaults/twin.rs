//! Fields that became lists: the old field is the first item of the new one.

use serde_json::{Value, json};

use super::member::{self, Members};

pub(super) fn node_spec(spec: &mut Members) {
    agree(spec, "podCIDR", "podCIDRs", |cidr| json!(cidr), Value::as_str);
}

pub(super) fn pod_status(status: &mut Members) {
    agree(status, "podIP", "podIPs", |ip| json!({"ip": ip}), |item| item.get("ip")?.as_str());
}

/// Where both are said and differ, the old field wins: whoever knows only that one meant it.
fn agree(of: &mut Members, one: &str, many: &str, item: fn(&str) -> Value, text: fn(&Value) -> Option<&str>) {
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
