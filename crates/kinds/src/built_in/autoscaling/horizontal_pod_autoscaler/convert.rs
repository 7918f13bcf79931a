//! Autoscalers: `v1` knows one metric, the CPU. What else `v2` says travels in annotations.

use serde_json::{Map, Value, json};

use super::metric::{self, Sort};
use crate::defaults::member::{self, Members};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
pub(super) const TRAVELLING: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// What is wanted of the CPU where no metric is said.
pub(super) const DEFAULT_PERCENTAGE: i64 = 80;
/// The members of a scaling rule and of a policy in `v2`, and their names in the annotation, in its order.
const RULE: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];
const POLICY: [(&str, &str); 3] = [("type", "Type"), ("value", "Value"), ("periodSeconds", "PeriodSeconds")];
const DIRECTIONS: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];

pub(super) fn to_v1(autoscaler: &mut Members) {
    let mut added = Vec::new();
    if let Some(spec) = member::present(autoscaler, "spec") {
        let metrics = spec.remove("metrics");
        let metrics = || metrics.iter().flat_map(|list| list.as_array().into_iter().flatten());
        let percentage = metrics().find_map(|metric| cpu(metric, "target")).cloned();
        let others: Vec<&Members> =
            metrics().filter(|metric| cpu(metric, "target").is_none()).filter_map(Value::as_object).collect();
        if !others.is_empty() {
            added.push((METRICS, metric::write(Sort::Spec, others.into_iter())));
        }
        if let Some(percentage) = percentage {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percentage);
        }
        if let Some(Value::Object(behavior)) = spec.remove("behavior") {
            added.push((BEHAVIOR, write_behavior(&behavior)));
        }
    }
    if let Some(status) = member::present(autoscaler, "status") {
        added.extend(status_to_v1(status));
    }
    drop_travelling(autoscaler);
    for (name, text) in added {
        let annotations = member::made(member::made(autoscaler, "metadata"), "annotations");
        annotations.insert(name.to_owned(), text.into());
    }
}

fn status_to_v1(status: &mut Members) -> Vec<(&'static str, String)> {
    let mut added = Vec::new();
    if let Some(Value::Array(metrics)) = status.remove("currentMetrics")
        && !metrics.is_empty()
    {
        // Kubernetes: the last one wins, unlike for what is wanted.
        if let Some(percentage) = metrics.iter().filter_map(|metric| cpu(metric, "current")).next_back() {
            status.insert("currentCPUUtilizationPercentage".to_owned(), percentage.clone());
        }
        let metrics = metrics.iter().filter_map(Value::as_object);
        added.push((CURRENT_METRICS, metric::write(Sort::Status, metrics)));
    }
    if let Some(Value::Array(conditions)) = status.remove("conditions")
        && !conditions.is_empty()
    {
        let conditions: Vec<String> = conditions.iter().map(write_condition).collect();
        added.push((CONDITIONS, format!("[{}]", conditions.join(","))));
    }
    added
}

pub(super) fn to_v2(autoscaler: &mut Members) {
    let annotations = autoscaler.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let travelling =
        TRAVELLING.map(|name| annotations.and_then(|it| it.get(name)?.as_str()).map(str::to_owned));
    let [metrics, current, conditions, behavior, ..] = travelling;

    let spec = member::made(autoscaler, "spec");
    let own = spec.remove("targetCPUUtilizationPercentage").map(|it| cpu_metric("target", &it));
    let mut all = metrics.and_then(|text| metric::read(Sort::Spec, &text)).unwrap_or_default();
    all.extend(own);
    if all.is_empty() {
        all.push(cpu_metric("target", &json!(DEFAULT_PERCENTAGE)));
    }
    spec.insert("metrics".to_owned(), all.into());
    if let Some(behavior) = behavior.and_then(|text| read_behavior(&text)) {
        spec.insert("behavior".to_owned(), behavior.into());
    }

    let status = member::made(autoscaler, "status");
    let own = status.remove("currentCPUUtilizationPercentage").map(|it| vec![cpu_metric("current", &it)]);
    if let Some(metrics) = current.and_then(|text| metric::read(Sort::Status, &text)).or(own) {
        status.insert("currentMetrics".to_owned(), metrics.into());
    }
    if let Some(conditions) = conditions.and_then(|text| serde_json::from_str::<Vec<Members>>(&text).ok()) {
        let conditions = conditions.into_iter().map(|mut condition| {
            condition.retain(|_, value| !value.is_null());
            Value::Object(condition)
        });
        status.insert("conditions".to_owned(), conditions.collect());
    }
    if !member::is_set(autoscaler, "status") {
        autoscaler.remove("status");
    }
    drop_travelling(autoscaler);
}

/// Whether an autoscaler of `v1` carries metrics for `v2`.
pub(super) fn metrics_on_the_way(autoscaler: &Members) -> bool {
    let text = autoscaler.get("metadata").and_then(|it| it.get("annotations")?.get(METRICS)?.as_str());
    text.and_then(|text| metric::read(Sort::Spec, text)).is_some_and(|metrics| !metrics.is_empty())
}

/// The percentage in a metric of the CPU, if it is one.
fn cpu<'a>(metric: &'a Value, place: &str) -> Option<&'a Value> {
    let resource = metric.get("resource").filter(|it| it.get("name") == Some(&json!("cpu")))?;
    let is_resource = metric.get("type") == Some(&json!("Resource"));
    resource.get(place)?.get("averageUtilization").filter(|_| is_resource)
}

fn cpu_metric(place: &str, percentage: &Value) -> Value {
    let mut amount = json!({"averageUtilization": percentage});
    if place == "target" {
        amount["type"] = json!("Utilization");
    }
    json!({"type": "Resource", "resource": {"name": "cpu", place: amount}})
}

fn drop_travelling(autoscaler: &mut Members) {
    let Some(metadata) = member::present(autoscaler, "metadata") else { return };
    if let Some(annotations) = member::present(metadata, "annotations") {
        annotations.retain(|name, _| !TRAVELLING.contains(&&**name));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

fn write_condition(condition: &Value) -> String {
    let names = ["type", "status", "lastTransitionTime", "reason", "message"];
    let members = names.iter().filter_map(|name| {
        // Go writes a time that is not set as null.
        let value =
            condition.get(*name).or_else(|| (*name == "lastTransitionTime").then_some(&Value::Null))?;
        Some(format!("\"{name}\":{}", plain(value)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Kubernetes writes its internal type here, which has Go's names and no omissions.
fn write_behavior(behavior: &Members) -> String {
    let rule = |rule: &Value| {
        write_members(&RULE, rule, |name, value| match (name, value) {
            ("policies", Some(Value::Array(policies))) => {
                let policies = policies.iter().map(|policy| {
                    write_members(&POLICY, policy, |name, value| {
                        let nothing = if name == "type" { "\"\"" } else { "0" };
                        value.map_or_else(|| nothing.to_owned(), plain)
                    })
                });
                format!("[{}]", policies.collect::<Vec<_>>().join(","))
            }
            (_, value) => value.map_or_else(|| "null".to_owned(), plain),
        })
    };
    let whole = Value::Object(behavior.clone());
    write_members(&DIRECTIONS, &whole, |_, value| value.map_or_else(|| "null".to_owned(), rule))
}

fn write_members(
    names: &[(&str, &str)],
    from: &Value,
    write: impl Fn(&str, Option<&Value>) -> String,
) -> String {
    let members = names.iter().map(|(name, go)| format!("\"{go}\":{}", write(name, from.get(*name))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn read_behavior(text: &str) -> Option<Members> {
    let behavior: Members = serde_json::from_str(text).ok()?;
    let mut read = read_members(&DIRECTIONS, &behavior);
    for rule in read.values_mut() {
        let mut members = read_members(&RULE, rule.as_object().unwrap_or(&Map::new()));
        if let Some(policies) = members.get_mut("policies").and_then(Value::as_array_mut) {
            for policy in policies.iter_mut() {
                *policy = read_members(&POLICY, policy.as_object().unwrap_or(&Map::new())).into();
            }
        }
        *rule = members.into();
    }
    Some(read).filter(|read| !read.is_empty())
}

/// Go reads names in any case.
fn read_members(names: &[(&str, &str)], from: &Members) -> Members {
    let found = names.iter().filter_map(|(name, go)| {
        let (_, value) = from.iter().find(|(given, _)| given.eq_ignore_ascii_case(go))?;
        Some(((*name).to_owned(), value.clone())).filter(|(_, value)| !value.is_null())
    });
    found.collect()
}

fn plain(value: &Value) -> String {
    String::from_utf8(schema::encode::encode_any(value)).unwrap_or_default()
}
