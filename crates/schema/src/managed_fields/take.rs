//! Takes changed fields from their owners, or finds the conflicts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::compare::Changes;
use super::conflict::{Conflict, Conflicts};
use super::owner::Owner;
use super::owners::{Holding, Owners};
use super::typed::{DuplicateItems, Typed};
use super::{Target, Unconvertible};
use crate::field_set::shape::Place;
use crate::field_set::{FieldSet, Filter};
use crate::types::Node;

/// Kubernetes: these fields have no owner.
pub(super) static UNMANAGED_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"];
    let metadata = metadata.into_iter().chain(["generation", "managedFields", "resourceVersion"]);
    let paths: Vec<_> = metadata.map(|name| ["metadata", name]).collect();
    let tops: [&[&str]; 3] = [&["apiVersion"], &["kind"], &["metadata"]];
    FieldSet::of_fields(tops.into_iter().chain(paths.iter().map(<[_; 2]>::as_slice)))
});

/// Why changed fields cannot be taken from their owners. Only apply returns it to the client.
pub(super) enum TakeError {
    Conflicts(Conflicts),
    Failed(String),
}

/// Whether fields are taken from their owners.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnConflict {
    Take,
    Fail,
}

impl<'a> Target<'a> {
    pub(super) fn typed<'v>(&self, object: &'v Value, duplicates: DuplicateItems) -> Result<Typed<'v>, String>
    where
        'a: 'v,
    {
        let typed = Typed::new(self.types, self.of, Cow::Borrowed(object), duplicates);
        typed.map_err(|violations| violations.to_string())
    }

    /// The object in another version. `None` if that version is no longer served.
    pub(super) fn at_version<'v, 'o>(
        &self,
        object: &'o Typed<'v>,
        version: &str,
    ) -> Result<Option<Cow<'o, Typed<'v>>>, String>
    where
        'a: 'v,
    {
        // An object without apiVersion is in the version of the request.
        let own = object.value.get("apiVersion").and_then(Value::as_str).unwrap_or(self.version);
        if own == version {
            return Ok(Some(Cow::Borrowed(object)));
        }
        let (value, types, of) = match (self.convert)(&object.value, version) {
            Ok(converted) => converted,
            Err(Unconvertible::NoSuchVersion) => return Ok(None),
            Err(failed) => return Err(failed.to_string()),
        };
        let typed = Typed::new(types, of, Cow::Owned(value), DuplicateItems::Allowed);
        typed.map(|typed| Some(Cow::Owned(typed))).map_err(|violations| violations.to_string())
    }

    pub(super) fn filter(&self, version: &str) -> &'a Filter {
        static ALL: Filter = Filter::All;
        self.filters.iter().find(|(of, _)| *of == version).map_or(&ALL, |(_, filter)| filter)
    }

    /// The fields of a set that a request through this target can own.
    pub(super) fn ownable(&self, set: FieldSet) -> FieldSet {
        self.filter(self.version).apply(set).difference(&UNMANAGED_FIELDS)
    }
}

impl Owners {
    /// Drops owners in versions that are no longer served; where a schema has become atomic since, replaces
    /// the fields inside by the atomic field.
    pub(super) fn reconcile(&mut self, target: &Target<'_>, live: &Typed<'_>) -> Result<(), String> {
        for (owner, mut holding) in std::mem::take(&mut self.0) {
            let Some(live) = target.at_version(live, &holding.version)? else { continue };
            let place = Node::Object(live.of);
            holding.fields = holding.fields.with_atomic_parts_joined(live.types, Place::Typed(&place));
            self.0.insert(owner, holding);
        }
        Ok(())
    }

    /// Takes the changed fields from all owners but `applier`, and returns the changes.
    pub(super) fn take_changed_fields(
        &mut self,
        target: &Target<'_>,
        live: &Typed<'_>,
        new: &Typed<'_>,
        applier: Option<&Owner>,
        on_conflict: OnConflict,
    ) -> Result<Changes, TakeError> {
        let changes = Changes::between(live, new).through(target.filter(target.version));
        let mut elsewhere = BTreeMap::new();
        for version in self.0.values().map(|holding| holding.version.as_str()) {
            if version != target.version && !elsewhere.contains_key(version) {
                let changes = changes_at(target, live, new, version).map_err(TakeError::Failed)?;
                elsewhere.insert(version.to_owned(), changes);
            }
        }
        let at = |version: &str| match version == target.version {
            true => Some(&changes),
            false => elsewhere.get(version).and_then(Option::as_ref),
        };
        self.0.retain(|owner, holding| Some(owner) == applier || at(&holding.version).is_some());
        if on_conflict == OnConflict::Fail {
            let others = self.0.iter().filter(|(owner, _)| Some(*owner) != applier);
            let conflicts = others
                .filter_map(|(owner, holding)| Some(conflicts_with(owner, holding, at(&holding.version)?)));
            let conflicts: Vec<_> = conflicts.flatten().collect();
            if !conflicts.is_empty() {
                return Err(TakeError::Conflicts(Conflicts::new(conflicts)));
            }
        }
        for (_, holding) in self.0.iter_mut().filter(|(owner, _)| Some(*owner) != applier) {
            let Some(changes) = at(&holding.version) else { continue };
            let left = std::mem::take(&mut holding.fields);
            let left = left.difference(&changes.modified).difference(&changes.added);
            holding.fields = left.difference(&changes.removed);
        }
        self.drop_empty();
        Ok(changes)
    }
}

/// The owner's fields that the change modifies or adds.
fn conflicts_with(owner: &Owner, holding: &Holding, changes: &Changes) -> Vec<Conflict> {
    let both = |set: &FieldSet| holding.fields.clone().intersection(set);
    let paths = both(&changes.modified).union(both(&changes.added)).paths();
    paths.into_iter().map(|path| Conflict { owner: owner.clone(), path }).collect()
}

fn changes_at(
    target: &Target<'_>,
    live: &Typed<'_>,
    new: &Typed<'_>,
    version: &str,
) -> Result<Option<Changes>, String> {
    let live = target
        .at_version(live, version)
        .map_err(|problem| format!("failed to convert old object: {problem}"))?;
    let new = target
        .at_version(new, version)
        .map_err(|problem| format!("failed to convert new object: {problem}"))?;
    let (Some(live), Some(new)) = (live, new) else { return Ok(None) };
    Ok(Some(Changes::between(&live, &new).through(target.filter(version))))
}
