//! What the structural schema of a definition does to a custom object.
//!
//! | file | what happens there |
//! |---|---|
//! | `shape`, `compile` | the schema itself, from `openAPIV3Schema`, small: equal parts are one part |
//! | `read`, `metadata` | bytes → an object, with its own and embedded metadata in order |
//! | `prune`, `default` | what the schema does not know goes, what it presets comes |
//! | [`validate`] | keywords, embedded objects, list types and rules, in the real server's words |
//! | `rules` | `x-kubernetes-validations` |
//! | `table` | the same schema as a table of types, for field owners |
//! | [`json_path`], [`cells`] | what the definition says about printing |
//!
//! ```
//! use schema::decode::FieldValidation;
//! use schema::structural::{Encoding, Structural};
//! use serde_json::json;
//!
//! let size = json!({"type": "string", "enum": ["small", "large"], "default": "small"});
//! let spec = json!({"type": "object", "properties": {"size": size, "name": {"type": "string"}}});
//! let schema = Structural::compile(&json!({"type": "object", "properties": {"spec": spec}}));
//!
//! let body = br#"{"metadata": {"name": "a"}, "spec": {"odd": 1, "name": "x"}}"#;
//! let mut read = schema.decode(body, Encoding::Json, FieldValidation::Warn)?;
//! assert_eq!(read.warnings, [r#"unknown field "spec.odd""#]);
//! schema.default(&mut read.value);
//! assert_eq!(read.value["spec"], json!({"size": "small", "name": "x"}));
//!
//! read.value["spec"]["size"] = "huge".into();
//! let says = r#"spec.size: Unsupported value: "huge": supported values: "small", "large""#;
//! assert_eq!(schema.validate(&read.value, None).to_string(), says);
//! # Ok::<(), schema::decode::DecodeError>(())
//! ```

use api::field::ErrorList;
use serde_json::Value;

use crate::decode::{DecodeError, Decoded, FieldValidation};
use crate::types::{TypeId, Types};

pub mod cells;
mod compile;
mod default;
pub mod json_path;
mod metadata;
mod prune;
mod read;
mod rules;
mod shape;
mod table;
pub mod validate;

pub use metadata::{check_metadata, drop_malformed_metadata, tidy_metadata};
pub use read::Encoding;
pub use shape::Structural;
pub use validate::{Change, ScalePaths, Through, format::is_checked as is_checked_format};

impl Structural {
    /// Takes over an `openAPIV3Schema` that was found valid. What it does not understand it leaves out.
    #[must_use]
    pub fn compile(schema: &Value) -> Self {
        compile::compile(schema)
    }

    /// Reads a body: members that the schema does not know are gone, metadata is in order. Defaults are not set.
    pub fn decode(
        &self,
        body: &[u8],
        encoding: Encoding,
        validation: FieldValidation,
    ) -> Result<Decoded, DecodeError> {
        read::read(self, body, encoding, validation)
    }

    /// Does to an object from a patch what [`Structural::decode`] does to one from a body, but for members that
    /// come twice. Returns what a strict reader says.
    pub fn coerce(&self, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        read::coerce(self, object)
    }

    /// Brings an object from the store, or from a conversion, in line with the schema of its version: prunes,
    /// drops metadata that cannot be read, and sets defaults. Nothing is refused.
    pub fn adopt(&self, object: &mut Value) {
        read::adopt(self, object);
        self.default(object);
    }

    /// Removes what the schema does not know, and returns the paths of it, sorted.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self, object)
    }

    /// Sets what is not there and has a default.
    pub fn default(&self, object: &mut Value) {
        default::default(self, self.root, object);
    }

    /// Checks a whole object, on update against the one before. See [`Structural::check`] for more.
    #[must_use]
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = ErrorList::new();
        let _ = self.check(&Change { new, old, through: Through::Object, scale: None }, &mut errors);
        errors
    }

    /// Checks an object that is there for a default that it holds.
    #[must_use]
    pub fn validate_default(&self, new: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let _ = self.check(&Change { new, old: None, through: Through::Default, scale: None }, &mut errors);
        errors
    }

    /// Checks a change. `errors` holds what was found wrong before, such as in the metadata: rules are left out
    /// where it is grave. Returns what is let pass because it was as wrong before.
    pub fn check(&self, change: &Change<'_>, errors: &mut ErrorList) -> ErrorList {
        validate::check(self, change, errors)
    }

    /// Checks any value against the schema's keywords alone, as for a default. `at` is the path that its errors
    /// begin with.
    #[must_use]
    pub fn check_value(&self, at: &str, value: &Value) -> ErrorList {
        validate::check_value(self, at, value)
    }

    /// The schema as a table of types, with that of the whole object.
    #[must_use]
    pub fn types(&self, group: &str, version: &str, kind: &str) -> (Types, TypeId) {
        table::types(self, group, version, kind)
    }
}

#[cfg(test)]
mod tests;
