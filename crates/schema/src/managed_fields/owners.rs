//! The owners of an object's fields, decoded from and encoded to `metadata.managedFields`.

use std::collections::BTreeMap;

use api::go;
use serde_json::{Map, Value, json};

use super::owner::{Operation, Owner};
use crate::field_set::FieldSet;

/// Kubernetes: if more managers own fields by update, the oldest are merged.
const MAX_UPDATERS: usize = 10;

/// The manager that the oldest are merged into.
const ANCIENT: &str = "ancient-changes";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners(pub(super) BTreeMap<Owner, Holding>);

/// The fields of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The version that the field names are in.
    pub version: String,
    pub fields: FieldSet,
    /// When it last changed, as RFC 3339 in UTC, which sorts as text.
    pub time: Option<String>,
}

/// The entries are not valid managedFields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadEntries(String);

impl Owners {
    /// Decodes the entries; absent and null are no owners.
    pub fn decode(entries: Option<&Value>) -> Result<Owners, BadEntries> {
        let entries = match entries {
            None | Some(Value::Null) => &[],
            Some(Value::Array(entries)) => entries.as_slice(),
            Some(other) => return Err(BadEntries(format!("expected a list of entries, got {other}"))),
        };
        let mut owners = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let (owner, holding) = decode_entry(at, entry)?;
            owners.insert(owner, holding);
        }
        Ok(Owners(owners))
    }

    /// Encodes the entries in kube-apiserver's order. `None` where there are none.
    #[must_use]
    pub fn encode(&self) -> Option<Value> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|(owner, holding)| {
            (owner.operation, &holding.time, &owner.manager, &holding.version, &owner.subresource)
        });
        (!entries.is_empty())
            .then(|| entries.into_iter().map(|(owner, holding)| holding.encode(owner)).collect())
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Owner, &Holding)> {
        self.0.iter()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, holding| !holding.fields.is_empty());
    }

    /// Merges the oldest managers by update, version by version, until at most [`MAX_UPDATERS`] are left.
    pub(super) fn cap(&mut self) {
        let is_updater = |(owner, _): &(&Owner, &Holding)| owner.operation == Operation::Update;
        let mut left = self.0.iter().filter(is_updater).count();
        if left <= MAX_UPDATERS {
            return;
        }
        let aged =
            |(owner, holding): (&Owner, &Holding)| (holding.time.clone(), owner.identifier(), owner.clone());
        let mut updaters: Vec<_> = self.0.iter().filter(is_updater).map(aged).collect();
        updaters.sort();
        let mut first_of_version: BTreeMap<String, Owner> = BTreeMap::new();
        let mut merged = Merged::default();
        for (_, _, owner) in updaters {
            if left <= MAX_UPDATERS {
                break;
            }
            let Some(version) = self.0.get(&owner).map(|holding| holding.version.clone()) else { continue };
            let Some(first) = first_of_version.get(&version).cloned() else {
                first_of_version.insert(version, owner);
                continue;
            };
            let bucket = Owner::of_entry(ANCIENT, Operation::Update, &version, "");
            if owner == bucket || !self.0.contains_key(&bucket) {
                self.merge_holdings(&first, &bucket, &mut merged);
            }
            if owner != bucket {
                self.merge_holdings(&owner, &bucket, &mut merged);
            }
            left -= 1;
        }
        for (owner, sets) in merged {
            if let Some(holding) = self.0.get_mut(&owner) {
                holding.fields = FieldSet::union_of(sets);
            }
        }
    }

    /// Moves the fields of one owner to another, with the time of the first. They are collected in `merged`.
    fn merge_holdings(&mut self, from: &Owner, into: &Owner, merged: &mut Merged) {
        let Some(Holding { version, fields, time }) = self.0.remove(from) else { return };
        let sets = merged.entry(into.clone()).or_default();
        sets.push(fields);
        let before = self.0.insert(into.clone(), Holding { version, fields: FieldSet::default(), time });
        sets.extend(before.map(|before| before.fields));
    }
}

/// The fields of owners that others were merged into.
type Merged = BTreeMap<Owner, Vec<FieldSet>>;

fn decode_entry(at: usize, entry: &Value) -> Result<(Owner, Holding), BadEntries> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let bad = |problem: &str| BadEntries(problem.to_owned());
    let operation = Operation::from_text(text("operation"))
        .ok_or_else(|| bad("operation must be `Apply` or `Update`"))?;
    let version = text("apiVersion");
    if version.is_empty() {
        return Err(bad("apiVersion must not be empty"));
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(BadEntries(format!("missing fieldsType in managed fields entry {at}"))),
        other => {
            let other = go::quote(other);
            return Err(BadEntries(format!("invalid fieldsType {other} in managed fields entry {at}")));
        }
    }
    let fields = entry.get("fieldsV1").map_or(Ok(FieldSet::default()), FieldSet::from_value);
    let fields = fields.map_err(|problem| {
        BadEntries(format!("error decoding versioned set from {entry}: error decoding set: {problem}"))
    })?;
    let owner = Owner::of_entry(text("manager"), operation, version, text("subresource"));
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((owner, Holding { version: version.to_owned(), fields, time }))
}

impl Holding {
    fn encode(&self, owner: &Owner) -> Value {
        encode_entry(owner, &self.version, self.time.as_deref(), self.fields.to_value())
    }
}

/// The entry of one owner.
pub(super) fn encode_entry(owner: &Owner, version: &str, time: Option<&str>, fields: Value) -> Value {
    let mut entry = Map::new();
    let texts = [
        ("manager", Some(owner.manager.as_str())),
        ("operation", Some(owner.operation.text())),
        ("apiVersion", Some(version)),
        ("time", time),
        ("fieldsType", Some("FieldsV1")),
        ("subresource", Some(owner.subresource.as_str())),
    ];
    for (name, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            entry.insert(name.to_owned(), json!(text));
        }
    }
    entry.insert("fieldsV1".to_owned(), fields);
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, time: &str, subresource: &str) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}, "subresource": subresource,
        })
    }

    #[test]
    fn entries_round_trip_in_kube_apiserver_order() {
        let sorted = json!([
            entry("z", "Apply", "2026-01-01T00:00:01Z", "scale"),
            entry("a", "Apply", "2026-01-01T00:00:02Z", "status"),
            entry("a", "Update", "2026-01-01T00:00:00Z", "scale"),
            entry("a", "Update", "2026-01-01T00:00:00Z", "status"),
            entry("b", "Update", "2026-01-01T00:00:00Z", "status"),
        ]);
        let mut shuffled = sorted.clone();
        shuffled.as_array_mut().unwrap().reverse();
        let owners = Owners::decode(Some(&shuffled)).unwrap();
        assert_eq!(owners.encode(), Some(sorted));
        assert_eq!(Owners::decode(Some(&Value::Null)).unwrap().encode(), None);
    }

    #[test]
    fn malformed_entries_are_rejected() {
        let with = |name: &str, value: Value| {
            let mut wrong = entry("m", "Apply", "2026-01-01T00:00:00Z", "");
            wrong[name] = value;
            json!([entry("fine", "Apply", "2026-01-01T00:00:00Z", ""), wrong])
        };
        for (entries, expected) in [
            (with("operation", json!("Patch")), "operation must be `Apply` or `Update`"),
            (with("apiVersion", json!("")), "apiVersion must not be empty"),
            (with("fieldsType", json!(null)), "missing fieldsType in managed fields entry 1"),
            (with("fieldsType", json!("V2")), "invalid fieldsType \"V2\" in managed fields entry 1"),
        ] {
            assert_eq!(Owners::decode(Some(&entries)).unwrap_err().to_string(), expected);
        }
        assert!(Owners::decode(Some(&with("fieldsV1", json!({"x": {}})))).is_err());
    }
}
