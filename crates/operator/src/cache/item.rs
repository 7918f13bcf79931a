//! One cached object: its JSON, and the metadata that is read most often.

use crate::{
    Key,
    cache::{
        applied_fields::AppliedFields,
        cut::{NotAnObject, Shape, cut},
        pairs::Pairs,
        transform,
    },
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

/// An object of any kind as the cache keeps it. Cheap to clone.
#[derive(Clone)]
pub struct Item(Arc<Fields>);

struct Fields {
    key: Key,
    json: Box<str>,
    resource_version: u64,
    generation: Option<i64>,
    uid: TextRange,
    labels: TextRange,
    annotations: TextRange,
    owners: TextRange,
    applied: Box<[AppliedFields]>,
    is_deleting: bool,
    is_final: bool,
}

/// A range of the JSON, in four bytes each: there may be a hundred thousand objects.
#[derive(Clone, Copy, Default)]
struct TextRange {
    start: u32,
    end: u32,
}

/// One of the owners of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is the one that controls the object.
    #[serde(default)]
    pub controller: bool,
}

/// An object does not fit the Rust type into which it is decoded.
#[derive(Debug, thiserror::Error)]
#[error("{key} does not fit {kind}: {source}")]
pub struct Undecodable {
    /// The object.
    pub key: Key,
    /// The Rust type.
    pub kind: &'static str,
    /// What does not fit.
    pub source: serde_json::Error,
}

/// JSON that is no object of Kubernetes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadObject {
    #[error(transparent)]
    NotAnObject(#[from] NotAnObject),
    #[error("the metadata cannot be read")]
    Metadata(#[source] serde_json::Error),
    #[error("the object cannot be transformed")]
    Transform(#[source] serde_json::Error),
    #[error("{0} has a resourceVersion that is not a number")]
    Version(Key),
}

/// Makes items from JSON; reuses one buffer for all of them.
#[derive(Debug)]
pub(crate) struct Reader {
    shape: Arc<Shape>,
    buffer: String,
}

impl Item {
    /// Its namespace and name.
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.text(self.0.uid)
    }

    /// As a number: later versions are greater.
    pub fn resource_version(&self) -> u64 {
        self.0.resource_version
    }

    /// `metadata.generation`; absent for kinds that do not have it.
    pub fn generation(&self) -> Option<i64> {
        self.0.generation
    }

    /// Whether it has a deletionTimestamp, and waits for its finalizers.
    pub fn is_deleting(&self) -> bool {
        self.0.is_deleting
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> Pairs<'_> {
        Pairs::read(self.text(self.0.labels))
    }

    /// `metadata.annotations`.
    pub fn annotations(&self) -> Pairs<'_> {
        Pairs::read(self.text(self.0.annotations))
    }

    /// `metadata.ownerReferences`.
    pub fn owner_references(&self) -> Vec<Owner> {
        // The server does not store owners without a UID, so a list that cannot be read has none.
        let text = self.text(self.0.owners);
        if text.is_empty() { Vec::new() } else { serde_json::from_str(text).unwrap_or_default() }
    }

    /// The owner with `controller: true`, of which there is one at most.
    pub fn controller_owner(&self) -> Option<Owner> {
        self.owner_references().into_iter().find(|owner| owner.controller)
    }

    /// The UID of [`Item::controller_owner`].
    pub fn controller_uid(&self) -> Option<String> {
        self.controller_owner().map(|owner| owner.uid)
    }

    /// The object as its Rust type.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, Undecodable> {
        serde_json::from_str(&self.0.json).map_err(|source| Undecodable {
            key: self.0.key.clone(),
            kind: std::any::type_name::<K>(),
            source,
        })
    }

    /// The JSON as the cache keeps it: without managed fields, and without fields that the scope drops.
    pub fn json(&self) -> &str {
        &self.0.json
    }

    /// The fields that this manager has applied.
    pub(crate) fn applied_by(&self, manager: &str) -> Option<&AppliedFields> {
        self.0.applied.iter().find(|fields| fields.is_of(manager))
    }

    /// Whether it is being deleted and neither finalizers nor a grace period keep it: then it no longer exists.
    pub(crate) fn is_final(&self) -> bool {
        self.0.is_final
    }

    pub(crate) fn is_same(&self, other: &Item) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn text(&self, range: TextRange) -> &str {
        &self.0.json[range.start as usize..range.end as usize]
    }
}

impl Reader {
    pub(crate) fn new(shape: Arc<Shape>) -> Reader {
        Reader { shape, buffer: String::new() }
    }

    pub(crate) fn read(&mut self, json: &str) -> Result<Item, BadObject> {
        let mut range = cut(json, &self.shape, &mut self.buffer)?;
        if !self.shape.transforms.is_empty() {
            let transformed = transform::apply(&self.shape.transforms, &self.buffer);
            range = cut(&transformed.map_err(BadObject::Transform)?, &self.shape, &mut self.buffer)?;
        }
        let mut fields = read_fields(&self.buffer, range)?;
        // Only whole objects answer applies.
        if !self.shape.metadata_only {
            fields.applied = AppliedFields::read(json);
        }
        Ok(Item(Arc::new(fields)))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Option<&'a str>,
    uid: Option<&'a str>,
    resource_version: &'a str,
    generation: Option<i64>,
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<IgnoredAny>>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    owner_references: Option<&'a RawValue>,
}

fn read_fields(json: &str, metadata: Range<usize>) -> Result<Fields, BadObject> {
    let metadata: Metadata<'_> = serde_json::from_str(&json[metadata]).map_err(BadObject::Metadata)?;
    let key = Key::new(metadata.namespace.filter(|namespace| !namespace.is_empty()), &metadata.name);
    let Ok(resource_version) = metadata.resource_version.parse() else {
        return Err(BadObject::Version(key));
    };
    let raw =
        |value: Option<&RawValue>| value.map_or_else(TextRange::default, |value| range_of(json, value.get()));
    let is_deleting = metadata.deletion_timestamp.is_some();
    let is_held = metadata.finalizers.is_some_and(|held_by| !held_by.is_empty())
        || metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0);
    Ok(Fields {
        key,
        resource_version,
        generation: metadata.generation,
        uid: metadata.uid.map_or_else(TextRange::default, |uid| range_of(json, uid)),
        labels: raw(metadata.labels),
        annotations: raw(metadata.annotations),
        owners: raw(metadata.owner_references),
        applied: Box::default(),
        is_deleting,
        is_final: is_deleting && !is_held,
        json: json.into(),
    })
}

/// The range of `part`, which is a slice of `whole`.
fn range_of(whole: &str, part: &str) -> TextRange {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    let number = |at: usize| u32::try_from(at).expect("an object is smaller than four gigabytes");
    TextRange { start: number(start), end: number(start + part.len()) }
}

impl fmt::Debug for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", self.0.key, self.0.resource_version)
    }
}

#[cfg(test)]
pub(crate) mod tests;
