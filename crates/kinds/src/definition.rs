//! A CustomResourceDefinition in, what the server must know to serve its resource out.
//!
//! | call | what it answers |
//! |---|---|
//! | [`Definition::read`] | what does the definition say? |
//! | [`Definition::resource`] | under which path is a version served, with which verbs and columns? |
//! | [`Version::schema`] | what must an object of that version look like? |
//! | [`accept`] | which names does it get, and which conditions tell so? |
//! | [`condition`] | how is a condition set or found? |
//!
//! A definition can be large, and most of it is its schemas. They stay in the bytes that the store holds anyway, and
//! are read when they are first needed: a definition whose resource is not used costs next to nothing.

mod accept;
pub(crate) mod approval;
pub mod condition;
mod in_use;
mod served;
#[cfg(test)]
mod tests;
mod text;

use bytes::Bytes;
use schema::scan;
use serde_json::Value;
use std::ops::Range;

use crate::resources::Scope;

pub use accept::accept;
pub use in_use::InUse;

/// What a custom resource is called, and how its objects are kept and shown.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The plural and the group: `widgets.example.com`.
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub group: String,
    pub scope: Scope,
    /// What it is served as: the names that were accepted, or as long as none were, those it asks for.
    pub names: DefinitionNames,
    /// The names that it has got; others of its group cannot have them.
    pub accepted: DefinitionNames,
    /// In the order of the definition.
    pub versions: Vec<Version>,
    /// Their text, a slice of the definition's.
    versions_text: Bytes,
    pub conversion: Conversion,
    pub state: State,
    /// Left by definitions from before v1: nothing is pruned.
    pub preserve_unknown_fields: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionNames {
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub names_accepted: bool,
    pub established: bool,
    pub terminating: bool,
    /// [`accept`] has nothing to add, whatever its neighbours do, and it stays.
    pub settled: bool,
}

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    /// The warning to clients that use this version, if it is deprecated.
    pub deprecation: Option<String>,
    pub has_status: bool,
    pub scale: Option<Scale>,
    pub columns: Vec<PrinterColumn>,
    /// JSON paths of the fields that select, `.spec.size`.
    pub selectable: Vec<String>,
    /// The text of its `openAPIV3Schema`, a slice of the definition's.
    schema: Option<Bytes>,
}

/// A column of the table that `kubectl get` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    pub name: String,
    pub type_name: String,
    pub format: String,
    pub description: String,
    pub priority: i32,
    pub json_path: String,
}

/// Where the scale of an object lies in it, as JSON paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// How an object gets from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only its `apiVersion` changes.
    None,
    Webhook(ConversionWebhook),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionWebhook {
    pub address: WebhookAddress,
    /// The PEM of those who may sign its certificate, as base64; empty trusts those of the machine.
    pub ca_bundle: String,
    /// Versions of ConversionReview that it speaks, the preferred one first.
    pub review_versions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAddress {
    Url(String),
    Service { namespace: String, name: String, path: String, port: u16 },
}

impl Definition {
    /// The definition as it is stored, defaulted and valid. What is missing reads as empty; what is of another type
    /// than it should be is an error.
    pub fn read(object: &Value) -> Result<Definition, serde_json::Error> {
        Self::parse(&serde_json::to_vec(object)?.into())
    }

    /// The same from its text, which is kept: the schemas are slices of it.
    pub fn parse(json: &Bytes) -> Result<Definition, serde_json::Error> {
        text::parse(json)
    }

    /// The same of a later state: versions that say what they said are taken over instead of being read.
    pub fn parse_next(&self, json: &Bytes) -> Result<Definition, serde_json::Error> {
        text::parse_next(json, self)?.map_or_else(|| text::parse(json), Ok)
    }

    /// Where in a later state its versions lie, if they are the same: comparing is much quicker than reading.
    pub fn find_same_versions(&self, json: &[u8]) -> Option<Range<usize>> {
        let (start, text) = (scan::start(json, 0, &["spec", "versions"])?, &self.versions_text);
        let is_same = !text.is_empty() && json[start..].starts_with(text);
        is_same.then(|| start..start + text.len())
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version in which objects are kept.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// Only then is there anything behind its paths.
    pub fn is_served(&self) -> bool {
        self.state.names_accepted || self.state.established
    }

    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

impl Version {
    /// Its `openAPIV3Schema`. Read anew each time: keep what is made of it.
    pub fn schema(&self) -> Option<Value> {
        serde_json::from_slice(self.schema.as_ref()?).ok()
    }

    /// The same version in another text of the same versions.
    fn within(&self, text: &Bytes, other: &Bytes) -> Version {
        let schema = self.schema.as_ref().map(|schema| {
            let start = schema.as_ptr().addr() - text.as_ptr().addr();
            other.slice(start..start + schema.len())
        });
        Version { schema, ..self.clone() }
    }

    /// The same as text.
    pub fn schema_text(&self) -> Option<&Bytes> {
        self.schema.as_ref()
    }
}
