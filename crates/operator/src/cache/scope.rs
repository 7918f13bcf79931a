//! Which objects of a kind are cached, and how much of each.

use crate::cache::{Item, cut::Cuts};
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
    /// Empty means all of them.
    namespaces: BTreeSet<String>,
    labels: String,
    fields: String,
    without: BTreeSet<Vec<String>>,
    keeps_managed_fields: bool,
}

/// Whether an object belongs to a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    Yes,
    No,
    /// Only the server knows how this field is read.
    Unknown,
}

/// A scope that can look at objects by itself.
#[derive(Debug)]
pub(crate) struct Filter {
    labels: Option<label_selector::Selector>,
    fields: Option<field_selector::Selector>,
}

impl Scope {
    /// Only objects in this namespace. Called again, it adds to them.
    pub fn in_namespace(mut self, namespace: &str) -> Scope {
        self.namespaces.insert(namespace.to_owned());
        self
    }

    /// Only objects whose labels match, as `app=web,tier!=db`.
    pub fn labelled(mut self, selector: &str) -> Scope {
        self.labels = joined(&self.labels, selector);
        self
    }

    /// Only objects whose fields match, as `spec.nodeName=node-1`, for fields that the server
    /// selects by.
    pub fn with_fields(mut self, selector: &str) -> Scope {
        self.fields = joined(&self.fields, selector);
        self
    }

    /// Leaves out the field at this path, in every element where a list is on the way. What is
    /// left out cannot be read, and must not be written back.
    pub fn without(mut self, path: &[&str]) -> Scope {
        self.without.insert(path.iter().map(|&name| name.to_owned()).collect());
        self
    }

    /// Keeps who owns which field, which is often half of an object.
    pub fn with_managed_fields(mut self) -> Scope {
        self.keeps_managed_fields = true;
        self
    }

    /// One watch serves each of these; `None` is all namespaces.
    pub(crate) fn feeds(&self) -> Vec<Option<String>> {
        if self.namespaces.is_empty() {
            vec![None]
        } else {
            self.namespaces.iter().cloned().map(Some).collect()
        }
    }

    pub(crate) fn labels(&self) -> &str {
        &self.labels
    }

    pub(crate) fn fields(&self) -> &str {
        &self.fields
    }

    pub(crate) fn cuts(&self) -> Cuts {
        let managed = ["metadata", "managedFields"].map(str::to_owned).to_vec();
        let managed = (!self.keeps_managed_fields).then_some(managed);
        Cuts::new(self.without.iter().filter(|path| !path.is_empty()).cloned().chain(managed))
    }

    pub(crate) fn filter(&self) -> Filter {
        // The server is the judge of a selector: one that cannot be read here is refused there.
        Filter { labels: self.labels.parse().ok(), fields: self.fields.parse().ok() }
    }
}

impl Filter {
    /// Whether every object of its namespaces belongs to it.
    pub(crate) fn takes_all(&self) -> bool {
        let all_labels = self.labels.as_ref().is_some_and(label_selector::Selector::is_everything);
        all_labels && self.fields.as_ref().is_some_and(field_selector::Selector::is_everything)
    }

    /// Namespaces are not looked at: feeds know theirs.
    pub(crate) fn looks_at(&self, item: &Item, whole: &str) -> Belongs {
        let (Some(labels), Some(fields)) = (&self.labels, &self.fields) else { return Belongs::Unknown };
        if !labels.is_everything() && !labels.matches(&item.labels()) {
            return Belongs::No;
        }
        if fields.is_everything() {
            return Belongs::Yes;
        }
        by_fields(fields, item, whole)
    }
}

/// `whole` is the object before anything was cut from it.
fn by_fields(selector: &field_selector::Selector, item: &Item, whole: &str) -> Belongs {
    let Ok(object) = serde_json::from_str::<serde_json::Value>(whole) else { return Belongs::Unknown };
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
        return Belongs::Unknown;
    }
    let matches = selector.matches(|field| value_of(field).unwrap_or_default());
    if matches { Belongs::Yes } else { Belongs::No }
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
    fn a_scope_knows_its_objects() {
        let json = r#"{"metadata":{"name":"web","namespace":"prod","resourceVersion":"1","labels":{"app":"web"}},
            "spec":{"nodeName":"n1","ready":true}}"#;
        let all = Scope::default;
        for (scope, expected) in [
            (all(), Belongs::Yes),
            (all().labelled("app=web"), Belongs::Yes),
            (all().labelled("app=web").labelled("!old"), Belongs::Yes),
            (all().labelled("app!=web"), Belongs::No),
            (all().labelled("((("), Belongs::Unknown),
            (all().with_fields("spec.nodeName=n1,spec.ready=true"), Belongs::Yes),
            (all().with_fields("metadata.name=web,metadata.namespace=prod"), Belongs::Yes),
            (all().with_fields("spec.nodeName!=n1"), Belongs::No),
            (all().with_fields("spec.nodeName=n1,status.phase=Running"), Belongs::Unknown),
            (all().with_fields("status.phase=Running").labelled("app=db"), Belongs::No),
        ] {
            let shape = Shape {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                metadata_only: false,
                cuts: scope.cuts(),
            };
            let item = Reader::new(Arc::new(shape)).read(json).unwrap();
            assert_eq!(scope.filter().looks_at(&item, json), expected, "{scope:?}");
        }
    }
}
