//! Which objects of a kind are cached, and how much of each.

use crate::cache::{Item, Transform, cut::DroppedFields};
use api::{field_selector, label_selector};
use std::{borrow::Cow, collections::BTreeSet};

/// Which objects of a kind a cache holds. The default is all of them, without their managed fields.
///
/// ```
/// use operator::cache::Scope;
///
/// let scope = Scope::default().in_namespace("prod").labelled("app=web").without(&["data"]);
/// assert_eq!(scope, Scope::default().without(&["data"]).labelled("app=web").in_namespace("prod"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Empty means all.
    namespaces: BTreeSet<String>,
    label_selector: String,
    field_selector: String,
    without: BTreeSet<Vec<String>>,
    transforms: Vec<Transform>,
    keeps_managed_fields: bool,
}

/// Whether an object is in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InScope {
    Yes,
    No,
    /// Only the server can evaluate the selector.
    Unknown,
}

/// The selectors of a scope, parsed.
#[derive(Debug)]
pub(crate) struct Filter {
    /// `None` if it cannot be parsed here: then the server refuses it.
    labels: Option<label_selector::Selector>,
    fields: Option<field_selector::FieldSelector>,
}

impl Scope {
    /// Only objects in this namespace. Further calls add namespaces.
    pub fn in_namespace(mut self, namespace: &str) -> Scope {
        self.namespaces.insert(namespace.to_owned());
        self
    }

    /// Only objects whose labels match, as `app=web,tier!=db`.
    pub fn labelled(mut self, selector: &str) -> Scope {
        self.label_selector = joined(&self.label_selector, selector);
        self
    }

    /// Only objects whose fields match, as `spec.nodeName=node-1`, for fields that the server
    /// selects by.
    pub fn with_fields(mut self, selector: &str) -> Scope {
        self.field_selector = joined(&self.field_selector, selector);
        self
    }

    /// Does not keep the field at this path; lists on the path are walked element by element. An object
    /// without all its fields must not be written back.
    pub fn without(mut self, path: &[&str]) -> Scope {
        self.without.insert(path.iter().map(|&name| name.to_owned()).collect());
        self
    }

    /// Changes every object before it is kept, after fields were dropped. Further calls add transforms.
    pub fn transformed(mut self, transform: &Transform) -> Scope {
        self.transforms.push(transform.clone());
        self
    }

    /// Keeps `metadata.managedFields`, which is often half of an object.
    pub fn with_managed_fields(mut self) -> Scope {
        self.keeps_managed_fields = true;
        self
    }

    /// The namespaces to watch; `None` is all of them.
    pub(crate) fn namespaces(&self) -> Vec<Option<String>> {
        if self.namespaces.is_empty() {
            vec![None]
        } else {
            self.namespaces.iter().cloned().map(Some).collect()
        }
    }

    pub(crate) fn label_selector(&self) -> &str {
        &self.label_selector
    }

    pub(crate) fn field_selector(&self) -> &str {
        &self.field_selector
    }

    pub(crate) fn dropped_fields(&self) -> DroppedFields {
        let managed = ["metadata", "managedFields"].map(str::to_owned).to_vec();
        let managed = (!self.keeps_managed_fields).then_some(managed);
        DroppedFields::new(self.without.iter().filter(|path| !path.is_empty()).cloned().chain(managed))
    }

    pub(crate) fn transforms(&self) -> &[Transform] {
        &self.transforms
    }

    /// Whether objects are kept with all fields but `managedFields`.
    pub(crate) fn keeps_whole_objects(&self) -> bool {
        self.without.is_empty() && self.transforms.is_empty()
    }

    pub(crate) fn filter(&self) -> Filter {
        Filter { labels: self.label_selector.parse().ok(), fields: self.field_selector.parse().ok() }
    }
}

impl Filter {
    /// Whether it selects every object.
    pub(crate) fn takes_all(&self) -> bool {
        let all_labels = self.labels.as_ref().is_some_and(label_selector::Selector::is_everything);
        all_labels && self.fields.as_ref().is_some_and(field_selector::FieldSelector::is_everything)
    }

    /// `json` is the whole object, with the fields that the cache does not keep. Namespaces are not
    /// checked here: each reflector has its own.
    pub(crate) fn includes(&self, item: &Item, json: &str) -> InScope {
        let (Some(labels), Some(fields)) = (&self.labels, &self.fields) else { return InScope::Unknown };
        if !labels.is_everything() && !labels.matches(&item.labels()) {
            return InScope::No;
        }
        if fields.is_everything() {
            return InScope::Yes;
        }
        by_fields(fields, item, json)
    }
}

fn by_fields(selector: &field_selector::FieldSelector, item: &Item, json: &str) -> InScope {
    let Ok(object) = serde_json::from_str::<serde_json::Value>(json) else { return InScope::Unknown };
    let value_of = |field: &str| match field {
        "metadata.name" => Some(Cow::Borrowed(item.key().name())),
        "metadata.namespace" => Some(Cow::Borrowed(item.key().namespace().unwrap_or_default())),
        _ => {
            let found = field.split('.').try_fold(&object, |object, name| object.get(name))?;
            match found {
                serde_json::Value::String(text) => Some(Cow::Owned(text.clone())),
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
                    Some(Cow::Owned(found.to_string()))
                }
                _ => None,
            }
        }
    };
    if selector.terms().iter().any(|term| value_of(&term.field).is_none()) {
        return InScope::Unknown;
    }
    let matches = selector.matches(|field| value_of(field).unwrap_or_default());
    if matches { InScope::Yes } else { InScope::No }
}

fn joined(first: &str, second: &str) -> String {
    if first.is_empty() { second.to_owned() } else { format!("{first},{second}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{cut::Shape, item::Reader};
    use std::sync::Arc;

    #[test]
    fn selectors_decide_which_objects_are_in_scope() {
        let json = r#"{"metadata":{"name":"web","namespace":"prod","resourceVersion":"1","labels":{"app":"web"}},
            "spec":{"nodeName":"n1","ready":true}}"#;
        let all = Scope::default;
        for (scope, expected) in [
            (all(), InScope::Yes),
            (all().labelled("app=web"), InScope::Yes),
            (all().labelled("app=web").labelled("!old"), InScope::Yes),
            (all().labelled("app!=web"), InScope::No),
            (all().labelled("((("), InScope::Unknown),
            (all().with_fields("spec.nodeName=n1,spec.ready=true"), InScope::Yes),
            (all().with_fields("metadata.name=web,metadata.namespace=prod"), InScope::Yes),
            (all().with_fields("spec.nodeName!=n1"), InScope::No),
            (all().with_fields("spec.nodeName=n1,status.phase=Running"), InScope::Unknown),
            (all().with_fields("status.phase=Running").labelled("app=db"), InScope::No),
        ] {
            let shape = Shape {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                metadata_only: false,
                dropped: scope.dropped_fields(),
                transforms: Vec::new(),
            };
            let item = Reader::new(Arc::new(shape)).read(json).unwrap();
            assert_eq!(scope.filter().includes(&item, json), expected, "{scope:?}");
        }
    }
}
