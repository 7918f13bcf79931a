//! Patches: an object and a patch in, the patched object out.
//!
//! | room | content type | what it is |
//! |---|---|---|
//! | [`json`] | `json-patch+json` | a list of operations (RFC 6902) |
//! | [`merge`] | `merge-patch+json` | an object laid over another (RFC 7386) |
//! | [`strategic`] | `strategic-merge-patch+json` | the same, but the types say which lists are merged |
//!
//! Server-side apply is in [`managed_fields`](crate::managed_fields). Texts of errors are those of the real
//! server, because clients and webhooks show them.

use crate::depth::{MAX_DEPTH, depth};
use serde_json::Value;

pub mod json;
pub mod merge;
pub(crate) mod print;
pub mod strategic;

#[cfg(test)]
pub(crate) mod samples;

/// How Go prints a patch in the server's error messages.
#[must_use]
pub fn printed(patch: &Value) -> String {
    print::plain(patch)
}

/// Why a patch fails. A variant for each answer to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed: 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit this object. Kubernetes: clients get a 422 without this text.
    #[error("{0}")]
    Unfit(String),
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {got}")]
    TooManyOperations { limit: usize, got: usize },
    /// Kubernetes: kube-apiserver answers 500 with this text.
    #[error("{0}")]
    Unexpected(String),
}

impl PatchError {
    pub(crate) fn too_deep() -> Self {
        PatchError::Malformed("exceeded max depth".into())
    }
}

/// Whether a value nests deeper than [`MAX_DEPTH`]. Not recursive, so that recursive walks after it are safe.
pub(crate) fn is_too_deep(value: &Value) -> bool {
    depth(value) > MAX_DEPTH
}
