//! Decodes, prunes, defaults and validates custom objects by the structural schema of their definition.
//!
//! | file | what happens there |
//! |---|---|
//! | `shape`, `compile` | the compiled `openAPIV3Schema`; equal parts are stored once |
//! | `read`, `metadata` | bytes → an object, with its own and embedded metadata decoded |
//! | `prune`, `default` | unknown fields are removed, defaults are set |
//! | [`validate`] | keywords, embedded objects, list types and rules, with kube-apiserver's messages |
//! | `rules` | `x-kubernetes-validations` |
//! | `table` | the same schema as a table of types, for managedFields |
//! | [`json_path`], [`cells`] | printer columns |
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
    /// Compiles an `openAPIV3Schema` that was found valid. Unknown keywords are ignored.
    #[must_use]
    pub fn compile(schema: &Value) -> Self {
        compile::compile(schema)
    }

    /// Decodes a body: unknown members are pruned, metadata is normalized. Defaults are not set.
    pub fn decode(
        &self,
        body: &[u8],
        encoding: Encoding,
        validation: FieldValidation,
    ) -> Result<Decoded, DecodeError> {
        read::read(self, body, encoding, validation)
    }

    /// As [`Structural::decode`], for an object from a patch; there are no duplicate members. Returns the
    /// strict errors.
    pub fn coerce(&self, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        read::coerce(self, object)
    }

    /// Prepares an object from the store, or from a conversion, for the schema of its version: prunes it,
    /// drops malformed metadata, and sets defaults. Never fails.
    pub fn adopt(&self, object: &mut Value) {
        read::adopt(self, object);
        self.default(object);
    }

    /// Removes unknown fields, and returns their paths, sorted.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self, object)
    }

    /// Sets the defaults of missing fields.
    pub fn default(&self, object: &mut Value) {
        default::default(self, self.root, object);
    }

    /// Validates a whole object, on update with the one before. [`Structural::check`] has more options.
    #[must_use]
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = ErrorList::new();
        let _ = self.check(&Change { new, old, through: Through::Object, scale: None }, &mut errors);
        errors
    }

    /// Validates the object around a default of the schema.
    #[must_use]
    pub fn validate_default(&self, new: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let _ = self.check(&Change { new, old: None, through: Through::Default, scale: None }, &mut errors);
        errors
    }

    /// Validates a change. `errors` holds the errors of earlier checks, such as of the metadata: rules do not
    /// run after severe ones. Returns the errors that are ratcheted: the unchanged value had them before.
    pub fn check(&self, change: &Change<'_>, errors: &mut ErrorList) -> ErrorList {
        validate::check(self, change, errors)
    }

    /// Validates any value against the schema's keywords alone, as for a default. `at` is the path that its
    /// errors begin with.
    #[must_use]
    pub fn check_value(&self, at: &str, value: &Value) -> ErrorList {
        validate::check_value(self, at, value)
    }

    /// The schema as a table of types, and the type of the whole object.
    #[must_use]
    pub fn types(&self, group: &str, version: &str, kind: &str) -> (Types, TypeId) {
        table::types(self, group, version, kind)
    }
}

#[cfg(test)]
mod tests;
