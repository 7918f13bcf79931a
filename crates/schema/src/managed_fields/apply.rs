//! Server-side apply: merges a configuration into an object, unless other managers own what it changes.
//!
//! The applier owns what it applies. Fields that it applied before and no longer does are removed, unless
//! another manager owns them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::conflict::Conflicts;
use super::owner::{Operation, Owner};
use super::owners::{Holding, Owners};
use super::take::{OnConflict, TakeError};
use super::typed::{DuplicateItems, Typed};
use super::{Target, empty_object, entries_of, last_applied, set_entries, update};
use crate::field_set::{FieldSet, compare_values};

/// Kubernetes: the manager of existing fields when an object without managedFields is first applied to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager whose last-applied annotation of client-side apply is kept up to date.
const KUBECTL: &str = "kubectl";

/// The result of an apply. Either way the object has its managedFields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The configuration changes no field; its owners may have changed.
    Unchanged(Value),
    /// Merged, but neither defaulted nor pruned of nulls.
    Changed(Value),
}

impl Applied {
    pub fn into_value(self) -> Value {
        match self {
            Applied::Unchanged(value) | Applied::Changed(value) => value,
        }
    }
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The configuration does not belong to this object.
    #[error("{0}")]
    BadRequest(String),
    #[error("{0}")]
    Conflicts(Conflicts),
    /// Kubernetes: kube-apiserver answers 500 with this text.
    #[error("{0}")]
    Failed(String),
}

/// Applies a configuration to `live`, or creates the object where that is `None`.
pub fn apply(
    target: &Target<'_>,
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
    now: &str,
) -> Result<Applied, ApplyError> {
    let nothing = Value::Object(serde_json::Map::new());
    let live = live.unwrap_or(&nothing);
    let failed = |problem: String| ApplyError::Failed(problem);
    let owners = Owners::decode(entries_of(live));
    let owners = owners.map_err(|problem| failed(format!("failed to decode managed fields: {problem}")))?;
    check_kind(target, applied)?;
    let owners = if owners.is_empty() { first_owners(target, live, now).map_err(failed)? } else { owners };
    if entries_of(applied).is_some_and(Value::is_array) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    let attempt = Attempt { target, live, applied, owners, manager, now };
    let on_conflict = if force { OnConflict::Take } else { OnConflict::Fail };
    match attempt.run(on_conflict) {
        Err(ApplyError::Conflicts(conflicts)) if manager == KUBECTL => {
            match last_applied::excused(target, live).map(|excused| conflicts.outside(&excused)) {
                Some(None) => attempt.run(OnConflict::Take),
                Some(Some(others)) => Err(ApplyError::Conflicts(others)),
                None => Err(ApplyError::Conflicts(conflicts)),
            }
        }
        other => other,
    }
}

/// Checks that the configuration has apiVersion and kind, and that they are the object's.
fn check_kind(target: &Target<'_>, applied: &Value) -> Result<(), ApplyError> {
    let said = ObjectKind::of(applied);
    let expected = target.types.get(target.of).kind.as_deref();
    if expected.is_some_and(|kind| {
        said != (ObjectKind { group: &kind.group, version: &kind.version, kind: &kind.kind })
    }) {
        return Err(ApplyError::BadRequest(format!("invalid object type: {said}")));
    }
    Ok(())
}

/// apiVersion and kind of an object.
#[derive(PartialEq, Eq)]
struct ObjectKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl<'a> ObjectKind<'a> {
    fn of(object: &'a Value) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("apiVersion").split('/').collect::<Vec<_>>().as_slice() {
            [version] => ObjectKind { group: "", version, kind: text("kind") },
            [group, version] => ObjectKind { group, version, kind: text("kind") },
            _ => ObjectKind { group: "", version: "", kind: "" },
        }
    }
}

impl std::fmt::Display for ObjectKind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// An object without owners is taken to be the work of an earlier manager.
fn first_owners(target: &Target<'_>, live: &Value, now: &str) -> Result<Owners, String> {
    if live.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(Owners::default());
    }
    let owners =
        update::track(target, &empty_object(target), live, Owners::default(), BEFORE_FIRST_APPLY, now);
    owners.map_err(|problem| {
        let (of, namespace, name) = (ObjectKind::of(live), api::object::namespace(live), api::object::name(live));
        format!(
            "failed to create manager for existing fields: failed to convert new object ({namespace}/{name}; {of}) to \
             smd typed: {problem}"
        )
    })
}

struct Attempt<'a, 't> {
    target: &'a Target<'t>,
    live: &'a Value,
    applied: &'a Value,
    owners: Owners,
    manager: &'a str,
    now: &'a str,
}

/// Why a configuration does not fit its type, if so.
#[must_use]
pub fn misfit(target: &Target<'_>, config: &Value) -> Option<String> {
    target.typed(config, DuplicateItems::Refused).err()
}

impl Attempt<'_, '_> {
    fn run(&self, on_conflict: OnConflict) -> Result<Applied, ApplyError> {
        let target = self.target;
        let config = target.typed(self.applied, DuplicateItems::Refused);
        let config = config
            .map_err(|problem| self.failed("failed to create typed patch object", self.applied, &problem))?;
        let live = target.typed(self.live, DuplicateItems::Allowed);
        let live =
            live.map_err(|problem| self.failed("failed to create typed live object", self.live, &problem))?;

        let mut owners = self.owners.clone();
        owners.reconcile(target, &live).map_err(ApplyError::Failed)?;
        let applier = Owner::new(self.manager, Operation::Apply, target.version, target.subresource);
        let last = owners.0.remove(&applier);
        let fields = target.filter(target.version).apply(config.fields());
        let time = last.as_ref().and_then(|last| last.time.clone());
        owners.0.insert(applier.clone(), Holding { version: target.version.to_owned(), fields, time });

        let merged = live.merge(&config);
        let merged = prune(target, merged, &owners, last.as_ref());
        let merged =
            merged.map_err(|problem| ApplyError::Failed(format!("failed to prune fields: {problem}")))?;
        let taken = owners.take_changed_fields(target, &live, &merged, Some(&applier), on_conflict);
        taken.map_err(|error| match error {
            TakeError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            TakeError::Failed(problem) => ApplyError::Failed(problem),
        })?;
        let changed = compare_values(&live.value, &merged.value).is_ne();
        if let Some(holding) = owners.0.get_mut(&applier) {
            holding.fields = target.ownable(std::mem::take(&mut holding.fields));
            if changed {
                holding.time = Some(self.now.to_owned());
            }
        }
        owners.drop_empty();
        Ok(self.finish(merged.value.into_owned(), changed, &owners))
    }

    fn finish(&self, merged: Value, changed: bool, owners: &Owners) -> Applied {
        let mut object = if changed { merged } else { self.live.clone() };
        set_entries(&mut object, owners.encode());
        if self.manager == KUBECTL {
            last_applied::carry(&mut object, self.applied);
        }
        if changed { Applied::Changed(object) } else { Applied::Unchanged(object) }
    }

    fn failed(&self, what: &str, object: &Value, problem: &str) -> ApplyError {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        ApplyError::Failed(format!("{what} ({namespace}/{name}; {}): {problem}", ObjectKind::of(object)))
    }
}

/// Removes what the applier applied last time, unless it applies it again or another manager owns it.
fn prune<'t: 'v, 'v>(
    target: &Target<'t>,
    merged: Typed<'v>,
    owners: &Owners,
    last: Option<&Holding>,
) -> Result<Typed<'v>, String> {
    let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return Ok(merged) };
    let Some(whole) = target.at_version(&merged, &last.version)? else { return Ok(merged) };
    let mut pruned = whole.without(&whole.with_named_fields(last.fields.clone()));

    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for holding in owners.0.values() {
        let fields = owned.remove(holding.version.as_str()).unwrap_or_default();
        owned.insert(&holding.version, fields.union(holding.fields.clone()));
    }
    // First in the request's version: another version may need the pruned object for its conversion.
    let at_hand = owned.remove_entry(last.version.as_str());
    for (version, fields) in at_hand.into_iter().chain(owned) {
        let Some(whole) = target.at_version(&whole, version)? else { continue };
        let Some(bare) = target.at_version(&pruned, version)? else { continue };
        pruned = whole.with_owned(&bare, fields);
    }
    let Some(bare) = target.at_version(&pruned, &last.version)? else { return Ok(whole.into_owned()) };
    let pruned = whole.with_unapplied(&bare, last.fields.clone());
    let pruned = target.at_version(&pruned, target.version)?.map(Cow::into_owned);
    pruned.ok_or_else(|| format!("no version {}", target.version))
}
