//! An object on its way into the store: what its strategy sets, keeps and drops.

use api::object;
use serde_json::{Map, Value};

use super::subresource::SubresourceRules;
use super::{Circumstances, Counts, Status, Strategy, metadata};
use crate::defaults::member::Members;

impl Strategy {
    /// A new object, named and with its uid and creation time.
    pub fn prepare_create(&self, new: &mut Value, with: &Circumstances<'_>) {
        if self.status == Status::Apart {
            members(new).remove("status");
        }
        if self.generation.first != 0 {
            object::set_generation(new, self.generation.first);
        }
        if let Some(rule) = self.create {
            rule(members(new), with);
        }
        self.drop_disabled(new);
    }

    /// A new object that has passed every check.
    pub fn settle_create(&self, new: &mut Value) {
        if let Some(rule) = self.settle {
            rule(members(new));
        }
    }

    /// A new version of an object that is stored as `old`.
    pub fn prepare_update(&self, new: &mut Value, old: &Value, with: &Circumstances<'_>) {
        object::set_generation(new, object::generation(old));
        if self.status != Status::Plain {
            keep(members(new), old, "status");
        }
        if let (Some(rule), Some(old)) = (self.update, old.as_object()) {
            rule(members(new), old, with);
        }
        self.drop_disabled(new);
        self.count_generation(new, old);
        metadata::keep_identity(new, old);
    }

    /// A write to a subresource that is the object itself: `status`, or one that the strategy names.
    pub fn prepare_subresource(&self, name: &str, new: &mut Value, old: &Value, with: &Circumstances<'_>) {
        object::set_generation(new, object::generation(old));
        let subresource = self.subresource(name);
        match (subresource, old.as_object()) {
            (Some(subresource), Some(old)) => (subresource.prepare)(members(new), old, with),
            _ => self.prepare_status(new, old, with),
        }
        self.drop_disabled(new);
        if subresource.is_some_and(|it| it.counts_generation) {
            self.count_generation(new, old);
        }
        metadata::keep_identity(new, old);
    }

    pub(super) fn subresource(&self, name: &str) -> Option<&'static SubresourceRules> {
        self.subresources.iter().find(|it| it.name == name)
    }

    fn prepare_status(&self, new: &mut Value, old: &Value, with: &Circumstances<'_>) {
        if self.generation.counts == Counts::Content {
            keep_all_but_status(members(new), old);
        } else {
            keep(members(new), old, "spec");
        }
        metadata::keep_on_status(self.status_metadata, new, old);
        if let (Some(rule), Some(old)) = (self.on_status, old.as_object()) {
            rule(members(new), old, with);
        }
    }

    fn count_generation(&self, new: &mut Value, old: &Value) {
        let changed = match self.generation.counts {
            Counts::Nothing => false,
            Counts::Fields(paths) => paths.iter().any(|path| !same(at(new, path), at(old, path))),
            Counts::Content => content(new) != content(old),
        };
        if changed {
            object::set_generation(new, object::generation(old).saturating_add(1));
        }
    }

    /// Whether a deleted object can stay for a while, so that what runs on its behalf can end.
    pub fn is_graceful(&self) -> bool {
        self.graceful.is_some()
    }

    /// How many seconds a deleted object stays. `None` where it goes at once.
    pub fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        self.graceful.map(|period| period(object, asked))
    }
}

/// The object as a map, which replaces whatever else it was.
fn members(value: &mut Value) -> &mut Members {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it has just been made an object")
}

/// Puts back what stood in a member, or nothing.
pub(crate) fn keep(new: &mut Members, old: &Value, name: &str) {
    match old.get(name) {
        Some(value) => drop(new.insert(name.to_owned(), value.clone())),
        None => drop(new.remove(name)),
    }
}

fn keep_all_but_status(new: &mut Members, old: &Value) {
    let Some(old) = old.as_object() else { return };
    let apart = ["status", "metadata"];
    new.retain(|name, _| apart.contains(&&**name) || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| !apart.contains(&&***name)) {
        new.insert(name.clone(), value.clone());
    }
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

/// Fields that hold a struct and not a pointer to one: empty is how Kubernetes writes that they are not set.
const ALWAYS_THERE: &[&str] = &["metadata", "resources", "spec", "strategy", "template", "updateStrategy"];

/// Kubernetes: a list that is empty is the same as none.
pub(crate) fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(value), None) | (None, Some(value)) => is_nothing(value),
        (Some(one), Some(other)) if is_nothing(one) && is_nothing(other) => true,
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let is_empty = |name: &str, value: &Value| {
                is_nothing(value)
                    || ALWAYS_THERE.contains(&name) && value.as_object().is_some_and(Map::is_empty)
            };
            let has_same = |(name, value): (&String, &Value)| match other.get(name) {
                Some(other) => same(Some(value), Some(other)),
                None => is_empty(name, value),
            };
            one.iter().all(has_same)
                && other.iter().all(|(name, value)| one.contains_key(name) || is_empty(name, value))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(Some(one), Some(other)))
        }
        (one, other) => one == other,
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn content(object: &Value) -> Vec<(&String, &Value)> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| *name != "metadata").collect()
}
