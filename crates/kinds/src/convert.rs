//! An object in one version in, the same object in another version out.
//!
//! Of the built-in kinds that are served or stored in several versions, two change their shape: autoscalers and events.
//! The others only say a different `apiVersion`.

mod autoscaler;
mod event;
mod metric;
#[cfg(test)]
mod tests;

pub(crate) use autoscaler::{DEFAULT_PERCENTAGE, metrics_on_the_way};

use crate::defaults::workload::TEMPLATE_GENERATION;
use api::object;
use serde_json::{Map, Value};

/// Group and version; the core group is empty.
pub type GroupVersion<'a> = (&'a str, &'a str);

/// Converts a defaulted object. Custom resources have no shapes of their own here, so they only change their name.
pub fn convert(object: Value, from: GroupVersion<'_>, to: GroupVersion<'_>, kind: &str) -> Value {
    let mut object = match object {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if from != to {
        match (kind, from, to) {
            ("HorizontalPodAutoscaler", ("autoscaling", "v1"), ("autoscaling", "v2")) => {
                autoscaler::to_v2(&mut object)
            }
            ("HorizontalPodAutoscaler", ("autoscaling", "v2"), ("autoscaling", "v1")) => {
                autoscaler::to_v1(&mut object)
            }
            ("Event", ("", _), ("events.k8s.io", _)) => event::from_core(&mut object),
            ("Event", ("events.k8s.io", _), ("", _)) => event::to_core(&mut object),
            _ => {}
        }
    }
    let (group, version) = to;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    object.insert("apiVersion".to_owned(), api_version.into());
    Value::Object(object)
}

/// Takes out of an object's metadata the annotations that stand for fields.
// Kubernetes: its internal types have those fields, and metadata that is shown by itself is theirs.
pub fn shed(object: &Value, metadata: &mut Value) {
    let standing: &[&str] = match (object::api_version(object), object::kind(object)) {
        ("apps/v1", "DaemonSet") => &[TEMPLATE_GENERATION],
        ("autoscaling/v1" | "autoscaling/v2", "HorizontalPodAutoscaler") => &autoscaler::TRAVELLING,
        _ => return,
    };
    let Some(metadata) = metadata.as_object_mut() else { return };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| !standing.contains(&name.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}
