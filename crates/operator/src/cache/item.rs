//! One cached object: its JSON, and the few facts about it that everybody asks for.

use crate::{
    Key,
    cache::{
        cut::{NoObject, Range, Shape, cut},
        pairs::Pairs,
    },
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, sync::Arc};

/// An object of any kind as the cache keeps it. Cheap to clone.
#[derive(Clone)]
pub struct Item(Arc<Facts>);

struct Facts {
    key: Key,
    json: Box<str>,
    resource_version: u64,
    generation: Option<i64>,
    uid: Part,
    labels: Part,
    annotations: Part,
    owners: Part,
    is_deleting: bool,
    is_final: bool,
}

/// Where in the JSON something stands: four bytes each keep a hundred thousand objects small.
#[derive(Clone, Copy, Default)]
struct Part {
    start: u32,
    end: u32,
}

/// One of the owners of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    /// Whether it is the one that controls the object.
    #[serde(default)]
    pub controller: bool,
}

/// An object does not fit the Rust type that it should be read as.
#[derive(Debug, thiserror::Error)]
#[error("{key} does not fit {kind}: {source}")]
pub struct Undecodable {
    pub key: Key,
    pub kind: &'static str,
    pub source: serde_json::Error,
}

/// A text that should be an object, and is not one that can be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    NoObject(#[from] NoObject),
    #[error("the metadata cannot be read")]
    Metadata(#[source] serde_json::Error),
    #[error("{0} has a resourceVersion that is not a number")]
    Version(Key),
}

/// Makes items; keeps a buffer between them.
#[derive(Debug)]
pub(crate) struct Reader {
    shape: Arc<Shape>,
    buffer: String,
}

impl Item {
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    pub fn uid(&self) -> &str {
        self.part(self.0.uid)
    }

    /// As the number that it is: later versions are greater.
    pub fn resource_version(&self) -> u64 {
        self.0.resource_version
    }

    /// Counts changes of what is desired; absent where a kind does not count them.
    pub fn generation(&self) -> Option<i64> {
        self.0.generation
    }

    /// Whether it has been told to go and waits for its finalizers.
    pub fn is_deleting(&self) -> bool {
        self.0.is_deleting
    }

    pub fn labels(&self) -> Pairs<'_> {
        Pairs::read(self.part(self.0.labels))
    }

    pub fn annotations(&self) -> Pairs<'_> {
        Pairs::read(self.part(self.0.annotations))
    }

    pub fn owner_references(&self) -> Vec<Owner> {
        // An owner without a UID owns nothing, so a list that cannot be read is an empty one.
        let text = self.part(self.0.owners);
        if text.is_empty() { Vec::new() } else { serde_json::from_str(text).unwrap_or_default() }
    }

    /// The owner that controls it, of which there is one at most.
    pub fn controller_owner(&self) -> Option<Owner> {
        self.owner_references().into_iter().find(|owner| owner.controller)
    }

    pub fn controller_uid(&self) -> Option<String> {
        self.controller_owner().map(|owner| owner.uid)
    }

    /// The object in its own type.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, Undecodable> {
        serde_json::from_str(&self.0.json).map_err(|source| Undecodable {
            key: self.0.key.clone(),
            kind: std::any::type_name::<K>(),
            source,
        })
    }

    /// The JSON as it is kept: without managed fields, and without what the scope leaves out.
    pub fn json(&self) -> &str {
        &self.0.json
    }

    /// Whether nothing holds the object any longer once it is deleted: the write that left it so was its last.
    pub(crate) fn is_final(&self) -> bool {
        self.0.is_final
    }

    pub(crate) fn is_same(&self, other: &Item) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn part(&self, part: Part) -> &str {
        &self.0.json[part.start as usize..part.end as usize]
    }
}

impl Reader {
    pub(crate) fn new(shape: Arc<Shape>) -> Reader {
        Reader { shape, buffer: String::new() }
    }

    pub(crate) fn read(&mut self, json: &str) -> Result<Item, Unreadable> {
        let range = cut(json, &self.shape, &mut self.buffer)?;
        let facts = read_facts(&self.buffer, range)?;
        Ok(Item(Arc::new(facts)))
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

fn read_facts(json: &str, metadata: Range) -> Result<Facts, Unreadable> {
    let metadata: Metadata<'_> = serde_json::from_str(&json[metadata]).map_err(Unreadable::Metadata)?;
    let key = Key::new(metadata.namespace.filter(|namespace| !namespace.is_empty()), &metadata.name);
    let Ok(resource_version) = metadata.resource_version.parse() else {
        return Err(Unreadable::Version(key));
    };
    let raw = |value: Option<&RawValue>| value.map_or_else(Part::default, |value| part_of(json, value.get()));
    let is_deleting = metadata.deletion_timestamp.is_some();
    let is_held = metadata.finalizers.is_some_and(|held_by| !held_by.is_empty())
        || metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0);
    Ok(Facts {
        key,
        resource_version,
        generation: metadata.generation,
        uid: metadata.uid.map_or_else(Part::default, |uid| part_of(json, uid)),
        labels: raw(metadata.labels),
        annotations: raw(metadata.annotations),
        owners: raw(metadata.owner_references),
        is_deleting,
        is_final: is_deleting && !is_held,
        json: json.into(),
    })
}

/// `part` is a slice of `whole`: this says which.
fn part_of(whole: &str, part: &str) -> Part {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    let number = |at: usize| u32::try_from(at).expect("an object is smaller than four gigabytes");
    Part { start: number(start), end: number(start + part.len()) }
}

impl fmt::Debug for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", self.0.key, self.0.resource_version)
    }
}

#[cfg(test)]
mod tests;
