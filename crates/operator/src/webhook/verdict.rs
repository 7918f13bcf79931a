//! The response of an AdmissionReview: allowed or denied, with warnings and a patch.

use api::{field::ErrorList, kind::GroupKind, status::Status};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Kubernetes: longer warnings are cut.
const MAX_WARNING_CHARACTERS: usize = 256;

/// Whether a change is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    denial: Option<Denial>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Denial {
    Message { code: u16, reason: &'static str, message: String },
    Fields(ErrorList),
}

impl Verdict {
    /// Lets the request pass.
    pub fn allow() -> Verdict {
        Verdict::default()
    }

    /// The message is shown to the user.
    pub fn deny(message: impl Into<String>) -> Verdict {
        Verdict::refuse(403, "Forbidden", message)
    }

    /// Denies with a list of invalid fields, as Kubernetes does for its own kinds. Allows if there are none.
    pub fn fields(errors: ErrorList) -> Verdict {
        Verdict { denial: (!errors.is_empty()).then_some(Denial::Fields(errors)), warnings: Vec::new() }
    }

    /// Adds a warning, which clients print.
    /// ```
    /// use operator::webhook::{Verdict, field::{Error, ErrorList, Path}};
    ///
    /// let mut errors = ErrorList::new();
    /// assert!(Verdict::fields(errors.clone()).warn("sizes above 10 are slow").is_allowed());
    /// errors.push(Error::required(&Path::new("spec").child("size"), "a bucket has a size"));
    /// assert!(!Verdict::fields(errors).is_allowed());
    /// ```
    pub fn warn(mut self, warning: impl Into<String>) -> Verdict {
        self.warnings.push(warning.into().chars().take(MAX_WARNING_CHARACTERS).collect());
        self
    }

    /// Whether the request passes.
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none()
    }

    pub(super) fn refuse(code: u16, reason: &'static str, message: impl Into<String>) -> Verdict {
        let denial = Denial::Message { code, reason, message: message.into() };
        Verdict { denial: Some(denial), warnings: Vec::new() }
    }
}

/// A verdict with what the response needs beside it.
#[derive(Debug)]
pub(super) struct ReviewResponse {
    pub(super) verdict: Verdict,
    pub(super) patch: Option<json_patch::Patch>,
    /// The kind and name of the object, for messages about its fields.
    pub(super) kind: GroupKind,
    pub(super) name: String,
}

impl ReviewResponse {
    /// The `response` of the review.
    pub(super) fn into_json(self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.verdict.is_allowed()});
        match self.verdict.denial {
            Some(Denial::Message { code, reason, message }) => {
                response["status"] = json!({"code": code, "reason": reason, "message": message});
            }
            Some(Denial::Fields(errors)) => {
                let status = Status::invalid(&self.kind, &self.name, &errors);
                response["status"] = json!(status);
            }
            None => {
                if let Some(patch) = self.patch.filter(|patch| !patch.0.is_empty()) {
                    let bytes = serde_json::to_vec(&patch).unwrap_or_default();
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(ByteString(bytes));
                }
            }
        }
        if !self.verdict.warnings.is_empty() {
            response["warnings"] = json!(self.verdict.warnings);
        }
        response
    }
}
