//! Compares what two sets of control loops left, object by object and field by field.

use super::level::Leveled;
use crate::compare::{ABSENT, Difference};
use serde_json::Value;
use std::collections::BTreeSet;

pub fn differences(real: &Leveled, ours: &Leveled) -> Vec<Difference> {
    let mut found = Vec::new();
    let names: BTreeSet<&String> = real.keys().chain(ours.keys()).collect();
    for name in names {
        match (real.get(name), ours.get(name)) {
            (Some(real), Some(ours)) if real.len() == ours.len() => {
                for (real, ours) in real.iter().zip(ours) {
                    compare(name, real, ours, &mut found);
                }
            }
            (real, ours) => {
                let count = |objects: Option<&Vec<Value>>| match objects {
                    Some(objects) if name.starts_with("Event ") => objects[0].to_string(),
                    Some(objects) => format!("{} objects", objects.len()),
                    None => ABSENT.to_owned(),
                };
                found.push(Difference { path: name.clone(), real: count(real), ours: count(ours) });
            }
        }
    }
    found.dedup();
    found
}

fn compare(path: &str, real: &Value, ours: &Value, found: &mut Vec<Difference>) {
    match (real, ours) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                compare(&format!("{path}.{name}"), &real[name], &ours[name], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (real, ours)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{at}]"), real, ours, found);
            }
        }
        _ if real == ours => {}
        _ => {
            let text = |value: &Value| match value {
                Value::Null => ABSENT.to_owned(),
                other => other.to_string(),
            };
            found.push(Difference { path: path.to_owned(), real: text(real), ours: text(ours) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_that_differs_is_named() {
        let side = |replicas: i32, pods: usize| {
            Leveled::from([
                ("Deployment web-0".to_owned(), vec![json!({"status": {"replicas": replicas}})]),
                ("Pod web-0-*".to_owned(), vec![json!({}); pods]),
            ])
        };
        assert_eq!(differences(&side(1, 1), &side(1, 1)), []);
        let texts: Vec<String> = differences(&side(1, 1), &side(2, 2))
            .iter()
            .map(|it| format!("{} {} {}", it.path, it.real, it.ours))
            .collect();
        assert_eq!(texts, ["Deployment web-0.status.replicas 1 2", "Pod web-0-* 1 objects 2 objects"]);
    }
}
