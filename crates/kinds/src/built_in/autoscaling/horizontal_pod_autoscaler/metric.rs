//! A metric of an autoscaler as `v2` has it, and as the annotations of `v1` have it.

use serde_json::{Map, Value, json};

use crate::defaults::member::{self, Members};

/// Whether a metric is wanted or was measured: the shapes differ a little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Spec,
    Status,
}

/// The name in `v1`, the path in `v2`, and what Go writes where there is nothing.
type Pair = (&'static str, &'static str, Empty);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    Omitted,
    Text,
    Amount,
    Object,
}

use Empty::{Amount, Object, Omitted, Text};

/// The sources of metrics in the order in which Go writes them, which is also that of their members.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];
const NAME: Pair = ("metricName", "metric.name", Text);
const SELECTOR: Pair = ("selector", "metric.selector", Omitted);

fn pairs(sort: Sort, source: &str) -> &'static [Pair] {
    match (sort, source) {
        (Sort::Spec, "object") => &[
            ("target", "describedObject", Object),
            NAME,
            ("targetValue", "target.value", Amount),
            SELECTOR,
            ("averageValue", "target.averageValue", Omitted),
        ],
        (Sort::Spec, "pods") => &[NAME, ("targetAverageValue", "target.averageValue", Amount), SELECTOR],
        (Sort::Spec, "resource") => &[
            ("name", "name", Text),
            ("targetAverageUtilization", "target.averageUtilization", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
        ],
        (Sort::Spec, "containerResource") => &[
            ("name", "name", Text),
            ("targetAverageUtilization", "target.averageUtilization", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
            ("container", "container", Text),
        ],
        (Sort::Spec, _) => &[
            NAME,
            ("metricSelector", "metric.selector", Omitted),
            ("targetValue", "target.value", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
        ],
        (Sort::Status, "object") => &[
            ("target", "describedObject", Object),
            NAME,
            ("currentValue", "current.value", Amount),
            SELECTOR,
            ("averageValue", "current.averageValue", Omitted),
        ],
        (Sort::Status, "pods") => &[NAME, ("currentAverageValue", "current.averageValue", Amount), SELECTOR],
        (Sort::Status, "resource") => &[
            ("name", "name", Text),
            ("currentAverageUtilization", "current.averageUtilization", Omitted),
            ("currentAverageValue", "current.averageValue", Amount),
        ],
        (Sort::Status, "containerResource") => &[
            ("name", "name", Text),
            ("currentAverageUtilization", "current.averageUtilization", Omitted),
            ("currentAverageValue", "current.averageValue", Amount),
            ("container", "container", Text),
        ],
        (Sort::Status, _) => &[
            NAME,
            ("metricSelector", "metric.selector", Omitted),
            ("currentValue", "current.value", Amount),
            ("currentAverageValue", "current.averageValue", Omitted),
        ],
    }
}

/// Metrics as the text of an annotation, in the words of `v1`.
pub(super) fn write<'a>(sort: Sort, metrics: impl Iterator<Item = &'a Members>) -> String {
    let metrics: Vec<String> = metrics.map(|metric| write_metric(sort, metric)).collect();
    format!("[{}]", metrics.join(","))
}

fn write_metric(sort: Sort, metric: &Members) -> String {
    let mut parts = vec![member_text("type", &json!(member::text(metric, "type")))];
    for source in SOURCES {
        let Some(from) = metric.get(source) else { continue };
        let members: Vec<String> = pairs(sort, source)
            .iter()
            .filter_map(|(name, path, empty)| {
                let value =
                    from.pointer(&format!("/{}", path.replace('.', "/"))).filter(|it| !it.is_null()).cloned();
                Some(member_text(name, &value.or_else(|| empty.value())?))
            })
            .collect();
        parts.push(format!("\"{source}\":{{{}}}", members.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

fn member_text(name: &str, value: &Value) -> String {
    format!("\"{name}\":{}", text(name, value))
}

/// Kubernetes: the order of Go's fields, which is not that of the alphabet.
fn text(name: &str, value: &Value) -> String {
    let order: &[&str] = match name {
        "target" => &["kind", "name", "apiVersion"],
        "selector" | "metricSelector" => &["matchLabels", "matchExpressions"],
        _ => return String::from_utf8(schema::encode::encode_any(value)).unwrap_or_default(),
    };
    let members = order.iter().filter_map(|name| {
        let nothing = json!("");
        let value = value.get(*name).or_else(|| matches!(*name, "kind" | "name").then_some(&nothing))?;
        Some(member_text(name, value))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The text of an annotation as metrics of `v2`; nothing where it cannot be read.
pub(super) fn read(sort: Sort, text: &str) -> Option<Vec<Value>> {
    let metrics: Vec<Members> = serde_json::from_str(text).ok()?;
    Some(metrics.iter().map(|metric| Value::Object(read_metric(sort, metric))).collect())
}

fn read_metric(sort: Sort, metric: &Members) -> Members {
    let mut read = Map::new();
    read.insert("type".to_owned(), member::text(metric, "type").into());
    for source in SOURCES {
        let Some(from) = member::object(metric, source) else { continue };
        let mut to = Map::new();
        for (name, path, empty) in pairs(sort, source) {
            let amount = (*empty == Amount).then(|| json!("0"));
            let Some(value) = from.get(*name).filter(|value| !value.is_null()).cloned().or(amount) else {
                continue;
            };
            let (holder, field) = path.split_once('.').unwrap_or(("", path));
            let holder = if holder.is_empty() { &mut to } else { member::made(&mut to, holder) };
            holder.insert(field.to_owned(), value);
        }
        if sort == Sort::Spec {
            name_target(source, &mut to);
        }
        read.insert(source.to_owned(), to.into());
    }
    read
}

/// `v2` says which of its amounts is the target.
fn name_target(source: &str, to: &mut Members) {
    let target = member::made(to, "target");
    let name = match source {
        "object" if target.contains_key("averageValue") => {
            if member::text(target, "value") == "0" {
                target.remove("value");
            }
            "AverageValue"
        }
        "object" => "Value",
        "external" if target.contains_key("value") => "Value",
        "resource" | "containerResource" if target.contains_key("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    target.insert("type".to_owned(), name.into());
}

impl Empty {
    fn value(self) -> Option<Value> {
        match self {
            Omitted => None,
            Text => Some(json!("")),
            Amount => Some(json!("0")),
            Object => Some(json!({})),
        }
    }
}
