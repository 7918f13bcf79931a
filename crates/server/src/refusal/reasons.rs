//! Kubernetes' rejections, in its words.

use super::Refusal;
use api::{
    field::ErrorList,
    kind::{GroupKind, GroupResource},
    status::{Attempt, Cause, Outcome, Reason, Status},
};
use schema::managed_fields::ApplyError;
use serde_json::Value;
use std::fmt::Display;

impl Refusal {
    pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
        Status::bad_request(message).into()
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Refusal {
        Status::unauthorized(message).into()
    }

    pub(crate) fn forbidden(resource: &GroupResource, name: &str, cause: impl Display) -> Refusal {
        Status::forbidden(resource, name, cause).into()
    }

    /// By an authorizer.
    pub(crate) fn denied(user: &str, attempt: Attempt<'_>, why: &str) -> Refusal {
        Status::denied(user, attempt, why).into()
    }

    pub(crate) fn not_found(resource: &GroupResource, name: &str) -> Refusal {
        Status::not_found(resource, name).into()
    }

    /// Nothing is served at this path.
    pub(crate) fn not_served() -> Refusal {
        Refusal::by_router(404, "the server could not find the requested resource")
    }

    pub(crate) fn method_not_allowed() -> Refusal {
        Refusal::by_router(405, "the server does not allow this method on the requested resource")
    }

    /// By the router, which knows only the code.
    pub(crate) fn by_router(code: u16, message: &str) -> Refusal {
        let mut status = Status::generic(code, "", &GroupResource::none(), "", "");
        status.message = message.to_owned();
        status.details = Some(Box::default());
        status.into()
    }

    /// By a kubelet, in words for its code.
    pub(crate) fn by_kubelet(code: u16, resource: &GroupResource, name: &str, text: &str) -> Refusal {
        Status::generic(code, "", resource, name, text).into()
    }

    pub(crate) fn method_not_supported(resource: &GroupResource, action: &str) -> Refusal {
        Status::method_not_supported(resource, action).into()
    }

    pub(crate) fn not_acceptable(accepted: &[&str]) -> Refusal {
        Status::not_acceptable(accepted).into()
    }

    pub(crate) fn already_exists(resource: &GroupResource, name: &str) -> Refusal {
        Status::already_exists(resource, name).into()
    }

    pub(crate) fn generate_name_conflict(resource: &GroupResource, name: &str, seconds: u32) -> Refusal {
        Status::generate_name_conflict(resource, name, seconds).into()
    }

    pub(crate) fn conflict(resource: &GroupResource, name: &str, cause: impl Display) -> Refusal {
        Status::conflict(resource, name, cause).into()
    }

    /// Another writer was faster.
    pub(crate) fn modified(resource: &GroupResource, name: &str) -> Refusal {
        Status::modified(resource, name).into()
    }

    pub(crate) fn uid_mismatch(kind: &GroupKind, name: &str, expected: &str, found: &str) -> Refusal {
        Status::uid_mismatch(kind, name, expected, found).into()
    }

    pub(crate) fn resource_version_mismatch(
        kind: &GroupKind,
        name: &str,
        expected: &str,
        found: &str,
    ) -> Refusal {
        Status::resource_version_mismatch(kind, name, expected, found).into()
    }

    pub(crate) fn too_old_resource_version(requested: u64, oldest: u64) -> Refusal {
        Status::too_old_resource_version(requested, oldest).into()
    }

    pub(crate) fn too_large_resource_version(requested: u64, current: u64, seconds: u32) -> Refusal {
        Status::too_large_resource_version(requested, current, seconds).into()
    }

    pub(crate) fn list_expired() -> Refusal {
        Status::list_expired().into()
    }

    pub(crate) fn continue_expired(new_token: impl Into<String>) -> Refusal {
        Status::continue_expired(new_token).into()
    }

    pub(crate) fn request_entity_too_large(message: impl Display) -> Refusal {
        Status::request_entity_too_large(message).into()
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Refusal {
        Status::unsupported_media_type(accepted).into()
    }

    pub(crate) fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Refusal {
        Status::invalid(kind, name, errors).into()
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, seconds: u32) -> Refusal {
        Status::too_many_requests(message, seconds).into()
    }

    pub(crate) fn internal_error(cause: impl Display) -> Refusal {
        Status::internal_error(cause).into()
    }

    /// 500 without a reason. Kubernetes: its response where an error has no code.
    pub(crate) fn unclassified(message: impl Into<String>) -> Refusal {
        Status::unclassified(message).into()
    }

    pub(crate) fn service_unavailable(message: impl Into<String>) -> Refusal {
        Status::service_unavailable(message).into()
    }

    pub(crate) fn timeout(message: impl Display, seconds: u32) -> Refusal {
        Status::timeout(message, seconds).into()
    }

    /// By an admission webhook: mostly in its own words.
    pub(crate) fn by_webhook(name: &str, said: Option<Value>) -> Refusal {
        let mut said: Status = said.and_then(|said| serde_json::from_value(said).ok()).unwrap_or_default();
        let denied = format!("admission webhook {name} denied the request");
        said.message = match (said.message.as_str(), said.reason.as_str()) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        said.code = said.code.max(400);
        said.status = Outcome::Failure;
        said.into()
    }

    /// With the reason and code that a policy names.
    pub(crate) fn with_reason(self, reason: Reason, code: Option<u16>) -> Refusal {
        self.edit(|status| {
            status.reason = reason;
            status.code = code.unwrap_or(status.code);
        })
    }
}

/// A conflict or error of an apply.
impl From<ApplyError> for Refusal {
    fn from(error: ApplyError) -> Refusal {
        match error {
            ApplyError::BadRequest(text) => Refusal::bad_request(text),
            ApplyError::Failed(text) => Refusal::unclassified(text),
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts.iter().map(|conflict| Cause {
                    reason: "FieldManagerConflict".into(),
                    message: conflict.message(),
                    field: conflict.path.to_string(),
                });
                Status::apply_conflict(conflicts.to_string(), causes.collect()).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn clients_get_the_webhooks_message() {
        for (said, code, message) in [
            (None, 400, "admission webhook \"a\" denied the request without explanation"),
            (Some(json!({"message": "no"})), 400, "admission webhook \"a\" denied the request: no"),
            (
                Some(json!({"reason": "Teapot", "code": 418})),
                418,
                "admission webhook \"a\" denied the request: Teapot",
            ),
            (
                Some(json!({"code": 200, "status": "Success"})),
                400,
                "admission webhook \"a\" denied the request without explanation",
            ),
        ] {
            let status = Refusal::by_webhook("\"a\"", said).into_status();
            assert_eq!((status.code, status.message.as_str()), (code, message));
        }
    }
}
