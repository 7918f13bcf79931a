//! What a webhook answers: yes, or no and why, and what else the caller should know.

use api::{field::ErrorList, kind::GroupKind, status::Status};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Kubernetes cuts longer warnings.
const MAX_WARNING_CHARACTERS: usize = 256;

/// Whether a change may happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    refusal: Option<Refusal>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    Said { code: u16, reason: &'static str, message: String },
    Fields(ErrorList),
}

impl Verdict {
    pub fn allow() -> Verdict {
        Verdict::default()
    }

    /// The message is for the person who asked.
    pub fn deny(message: impl Into<String>) -> Verdict {
        Verdict::refuse(403, "Forbidden", message)
    }

    /// Says which fields are wrong, as Kubernetes does for its own kinds. Without errors, allows.
    pub fn fields(errors: ErrorList) -> Verdict {
        Verdict { refusal: (!errors.is_empty()).then_some(Refusal::Fields(errors)), warnings: Vec::new() }
    }

    /// Adds a warning, which clients print beside the answer.
    pub fn warn(mut self, warning: impl Into<String>) -> Verdict {
        self.warnings.push(warning.into().chars().take(MAX_WARNING_CHARACTERS).collect());
        self
    }

    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none()
    }

    pub(super) fn refuse(code: u16, reason: &'static str, message: impl Into<String>) -> Verdict {
        let refusal = Refusal::Said { code, reason, message: message.into() };
        Verdict { refusal: Some(refusal), warnings: Vec::new() }
    }
}

/// What became of a review.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) patch: Option<json_patch::Patch>,
    /// What was judged, for messages about its fields.
    pub(super) kind: GroupKind,
    pub(super) name: String,
}

impl Outcome {
    /// The response half of a review.
    pub(super) fn response(self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.verdict.is_allowed()});
        match self.verdict.refusal {
            Some(Refusal::Said { code, reason, message }) => {
                response["status"] = json!({"code": code, "reason": reason, "message": message});
            }
            Some(Refusal::Fields(errors)) => {
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
