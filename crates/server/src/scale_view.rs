//! Reads the Scale of an object: wanted replicas, current replicas, and the selector of its pods.

use crate::served::Served;
use serde_json::{Map, Value, json};

/// The paths of the scale's fields in an object.
pub(crate) struct ScaleFields {
    replicas: Vec<String>,
    current: Vec<String>,
    labels: SelectorSource,
}

/// Where the selector of the pods is.
enum SelectorSource {
    /// `spec.selector`: a label selector, or a map of labels.
    InSpec,
    /// A text at the definition's labelSelectorPath, if it has one.
    InStatus(Option<Vec<String>>),
}

impl ScaleFields {
    pub(crate) fn of(served: &Served) -> Option<ScaleFields> {
        let Some(custom) = served.custom() else {
            let below = |name: &str| vec![name.to_owned(), "replicas".to_owned()];
            return Some(ScaleFields {
                replicas: below("spec"),
                current: below("status"),
                labels: SelectorSource::InSpec,
            });
        };
        let paths = custom.compiled().scale.as_ref()?;
        let split = |path: &str| -> Vec<String> {
            path.trim_start_matches('.').split('.').map(str::to_owned).collect()
        };
        let labels = paths.label_selector.as_deref().filter(|path| !path.is_empty()).map(split);
        Some(ScaleFields {
            replicas: split(&paths.spec_replicas),
            current: split(&paths.status_replicas),
            labels: SelectorSource::InStatus(labels),
        })
    }

    /// The replicas that the object asks for, if set.
    pub(crate) fn replicas(&self, object: &Value) -> Option<i64> {
        find(object, &self.replicas)?.as_i64()
    }

    pub(crate) fn set_replicas(&self, object: &mut Value, replicas: i64) {
        let mut at = object;
        for name in &self.replicas {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = &mut at[name.as_str()];
        }
        *at = replicas.into();
    }

    /// The path of the replicas without its leading dot.
    pub(crate) fn replicas_path(&self) -> impl Iterator<Item = &str> {
        self.replicas.iter().map(String::as_str)
    }

    pub(crate) fn scale(&self, object: &Value) -> Value {
        let mut metadata = Map::new();
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object["metadata"].get(field) {
                metadata.insert(field.to_owned(), value.clone());
            }
        }
        let current = find(object, &self.current).and_then(Value::as_i64).unwrap_or(0);
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
            "spec": {"replicas": self.replicas(object).unwrap_or(0)},
            "status": {"replicas": current, "selector": self.selector(object)},
        })
    }

    fn selector(&self, object: &Value) -> String {
        match &self.labels {
            SelectorSource::InSpec => in_spec(&object["spec"]["selector"]),
            SelectorSource::InStatus(path) => {
                let text = path.as_ref().and_then(|path| find(object, path)?.as_str());
                text.unwrap_or_default().to_owned()
            }
        }
    }
}

/// The scale of an object under review, for admission.
pub(crate) fn shown(served: &Served, object: &Value) -> Option<Value> {
    ScaleFields::of(served).map(|fields| fields.scale(object))
}

/// The object with the replicas of a scale.
pub(crate) fn rescaled(served: &Served, object: &Value, scale: &Value) -> Option<Value> {
    let (fields, replicas) = (ScaleFields::of(served)?, scale["spec"]["replicas"].as_i64()?);
    let mut object = object.clone();
    fields.set_replicas(&mut object, replicas);
    Some(object)
}

fn find<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |at, name| at.get(name))
}

fn in_spec(selector: &Value) -> String {
    if selector.get("matchLabels").or_else(|| selector.get("matchExpressions")).is_none() {
        return plain_labels(selector);
    }
    let selector = serde_json::from_value::<api::label_selector::LabelSelector>(selector.clone()).ok();
    let selector = selector.and_then(|selector| selector.to_selector().ok());
    selector.map(|selector| selector.to_string()).unwrap_or_default()
}

/// The selector of a ReplicationController is a map of labels.
fn plain_labels(selector: &Value) -> String {
    let labels = selector.as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(",")
}
