//! Compares what two sets of control loops left, object by object and field by field.

use super::level::{COMBINED, Leveled};
use crate::compare::{ABSENT, Difference};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub fn differences(real: &Leveled, ours: &Leveled) -> Vec<Difference> {
    let mut found = Vec::new();
    let combined: BTreeSet<&str> =
        real.keys().chain(ours.keys()).filter_map(|name| Some(name.split_once(COMBINED)?.0)).collect();
    let [real, ours] = &[real, ours].map(|side| with_one_sum_each(side, &combined));
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

/// Which of many similar events are recorded as one depends on their order: of those that are combined on some side,
/// only their sum counts.
fn with_one_sum_each(side: &Leveled, combined: &BTreeSet<&str>) -> Leveled {
    let (mut summed, mut sums) = (Leveled::new(), BTreeMap::new());
    for (name, objects) in side {
        match combined.iter().find(|prefix| name.starts_with(**prefix)) {
            Some(prefix) => {
                *sums.entry(*prefix).or_default() += objects[0]["count"].as_u64().unwrap_or_default();
            }
            None => drop(summed.insert(name.clone(), objects.clone())),
        }
    }
    let sums = sums
        .into_iter()
        .map(|(prefix, count): (&str, u64)| (prefix.to_owned(), vec![json!({"count": count})]));
    summed.extend(sums);
    summed
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
    fn of_similar_events_that_one_side_combines_the_sum_is_compared() {
        let side = |events: &[(&str, u64)]| -> Leveled {
            let event = |(name, count): &(&str, u64)| {
                (format!("Event Pod|a|loop|Normal|Created|{name}"), vec![json!({"count": count})])
            };
            events.iter().map(event).collect()
        };
        let one = side(&[("a", 1), ("b", 2), ("(combined from similar events): c", 3)]);
        assert_eq!(differences(&one, &side(&[("a", 1), ("b", 1), ("c", 4)])), []);
        assert_eq!(differences(&one, &side(&[("a", 1), ("b", 1), ("c", 3)])).len(), 1);
    }

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
