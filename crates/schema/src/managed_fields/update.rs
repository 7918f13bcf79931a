//! Create, update and patch: a manager that changes a field comes to own it, and the others lose it.

use serde_json::Value;

use super::owner::{Operation, Owner};
use super::owners::{Holding, Owners, encode_entry};
use super::take::{OnConflict, TakeError};
use super::typed::DuplicateItems;
use super::{Target, empty_object, entries_of, fresh, set_entries};

/// Sets the managedFields of an object that is about to be created.
pub fn create(target: &Target<'_>, new: &mut Value, manager: &str, now: &str) {
    let empty = empty_object(target);
    let fields = entries_of(new).is_none().then(|| fresh::fields(target, &empty, new)).flatten();
    let Some(fields) = fields else { return update(target, &empty, new, manager, now) };
    let owner = Owner::new(manager, Operation::Update, target.version, target.subresource);
    let is_owned = fields.as_object().is_some_and(|fields| !fields.is_empty());
    let entry = is_owned.then(|| encode_entry(&owner, target.version, Some(now), fields));
    set_entries(new, entry.map(|entry| vec![entry].into()));
}

/// Sets the managedFields of an object that is about to replace `live`. Both are in the version of the
/// request, defaulted, and as [`encode::normalize`](crate::encode::normalize) leaves them.
///
/// An object without owners stays without, unless it is new: a client emptied its managedFields on purpose.
/// Where owners cannot be settled, say because an object does not fit the version that one of them wrote, they are
/// forgotten.
pub fn update(target: &Target<'_>, live: &Value, new: &mut Value, manager: &str, now: &str) {
    let owners = owners_of(target, live, new);
    set_entries(new, None);
    let is_new = live.pointer("/metadata/uid").and_then(Value::as_str).is_none_or(str::is_empty);
    if owners.is_empty() && !is_new {
        return;
    }
    let entries = match track(target, live, new, owners, manager, now) {
        Ok(owners) => owners.encode(),
        Err(_) => None,
    };
    set_entries(new, entries);
}

/// Takes over the times of `live` where nothing but times differs, so that such a write is a no-op. `is_same`
/// compares an object with `live`.
pub fn keep_times(live: &Value, new: &mut Value, is_same: impl Fn(&Value) -> bool) {
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (entries_of(live), entries_of(new)) else {
        return;
    };
    let timeless = |entries: &[Value]| -> Vec<Value> {
        let mut entries = entries.to_vec();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries
    };
    if before == after || timeless(before) != timeless(after) {
        return;
    }
    let entries = Some(Value::Array(before.clone()));
    let mut candidate = new.clone();
    set_entries(&mut candidate, entries);
    if is_same(&candidate) {
        *new = candidate;
    }
}

/// The owners before the write. Clients may send their own managedFields, but not through a subresource; a
/// client that sends none does not lose those of `live`.
fn owners_of(target: &Target<'_>, live: &Value, new: &Value) -> Owners {
    let sent = entries_of(new);
    let of_live = || Owners::decode(entries_of(live)).unwrap_or_default();
    if !target.subresource.is_empty() {
        return of_live();
    }
    if is_reset(sent) {
        return Owners::default();
    }
    Owners::decode(sent).ok().filter(|owners| !owners.is_empty()).unwrap_or_else(of_live)
}

/// Whether a client asks to have the managedFields emptied: by an empty list, or by one empty entry.
fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_none_or(serde_json::Map::is_empty),
        _ => false,
    }
}

/// The owners after the write.
pub(super) fn track(
    target: &Target<'_>,
    live: &Value,
    new: &Value,
    mut owners: Owners,
    manager: &str,
    now: &str,
) -> Result<Owners, String> {
    let live = target.typed(live, DuplicateItems::Allowed)?;
    let new = target.typed(new, DuplicateItems::Allowed)?;
    owners.reconcile(target, &live)?;
    let changes = owners.take_changed_fields(target, &live, &new, None, OnConflict::Take).map_err(
        |error| match error {
            TakeError::Conflicts(conflicts) => conflicts.to_string(),
            TakeError::Failed(problem) => problem,
        },
    )?;
    let taken = target.ownable(changes.modified.union(changes.added));
    if !taken.is_empty() {
        let owner = Owner::new(manager, Operation::Update, target.version, target.subresource);
        let before = owners.0.remove(&owner).map(|holding| holding.fields).unwrap_or_default();
        let fields = before.union(taken);
        let holding = Holding { version: target.version.to_owned(), fields, time: Some(now.to_owned()) };
        owners.0.insert(owner, holding);
    }
    owners.cap();
    Ok(owners)
}
