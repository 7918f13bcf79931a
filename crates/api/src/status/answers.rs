//! One constructor for each answer of the real server.
//!
//! Kubernetes: clients match on these texts; none of them is ours to improve.

use std::fmt::Display;

use super::{Cause, Details, Metadata, Outcome, Reason, Status};
use crate::field::ErrorList;
use crate::go;
use crate::kind::{GroupKind, GroupResource};

/// What a caller tried to do and may not.
#[derive(Clone, Copy, Debug)]
pub enum Attempt<'a> {
    /// Empty texts stand for: no subresource, no namespace (the whole cluster), no single object.
    Resource {
        verb: &'a str,
        resource: &'a GroupResource,
        subresource: &'a str,
        namespace: &'a str,
        name: &'a str,
    },
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

impl Status {
    pub fn success() -> Self {
        Status { status: Outcome::Success, ..Status::default() }
    }

    /// The object is gone at once: a delete that had nothing to wait for.
    pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Self {
        let details = Details { uid: uid.to_owned(), ..about(resource, name) };
        Status { details: Some(Box::new(details)), ..Status::success() }
    }

    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} not found", go::quote(name));
        failure(Reason::NotFound, message).with(about(resource, name))
    }

    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", go::quote(name));
        failure(Reason::AlreadyExists, message).with(about(resource, name))
    }

    /// Every generated name was taken.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str, retry_after_seconds: u32) -> Self {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            go::quote(name)
        );
        failure(Reason::AlreadyExists, message).with(Details { retry_after_seconds, ..about(resource, name) })
    }

    pub fn unauthorized(message: impl Into<String>) -> Self {
        failure(Reason::Unauthorized, message)
    }

    pub fn forbidden(resource: &GroupResource, name: &str, cause: impl Display) -> Self {
        let message = match (resource.is_none(), name) {
            (true, _) => format!("forbidden: {cause}"),
            (false, "") => format!("{resource} is forbidden: {cause}"),
            (false, name) => format!("{resource} {} is forbidden: {cause}", go::quote(name)),
        };
        failure(Reason::Forbidden, message).with(about(resource, name))
    }

    /// No authorizer allowed the attempt. `why` is what they said, often nothing.
    pub fn denied(user: &str, attempt: Attempt<'_>, why: &str) -> Self {
        let none = GroupResource::none();
        let (resource, name) = match attempt {
            Attempt::Resource { resource, name, .. } => (resource, name),
            Attempt::Path { .. } => (&none, ""),
        };
        // Kubernetes: a message must not look like HTML. Quotes are fine.
        let text = attempt.refusal(user).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Status::forbidden(resource, name, if why.is_empty() { text } else { format!("{text}: {why}") })
    }

    pub fn conflict(resource: &GroupResource, name: &str, cause: impl Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {cause}", go::quote(name));
        failure(Reason::Conflict, message).with(about(resource, name))
    }

    /// The write was made from an older version of the object.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let cause =
            "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(resource, name, cause)
    }

    /// A delete expected another object of that name.
    pub fn uid_mismatch(kind: &GroupKind, name: &str, expected: &str, found: &str) -> Self {
        Status::conflict(
            &GroupResource::new(kind.group.clone(), kind.kind.clone()),
            name,
            format_args!(
                "the UID in the precondition ({expected}) does not match the UID in record ({found}). \
                 The object might have been deleted and then recreated"
            ),
        )
    }

    /// A delete expected another version of the object.
    pub fn resource_version_mismatch(kind: &GroupKind, name: &str, expected: &str, found: &str) -> Self {
        Status::conflict(
            &GroupResource::new(kind.group.clone(), kind.kind.clone()),
            name,
            format_args!(
                "the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion \
                 in record ({found}). The object might have been modified"
            ),
        )
    }

    /// Other field managers own what an apply wants to change.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Cause>) -> Self {
        failure(Reason::Conflict, message).with(Details { causes, ..Details::default() })
    }

    pub fn gone(message: impl Into<String>) -> Self {
        failure(Reason::Gone, message)
    }

    pub fn expired(message: impl Into<String>) -> Self {
        failure(Reason::Expired, message)
    }

    /// A watch asked for changes that the window no longer holds; `oldest` is the last one before it.
    pub fn too_old_resource_version(requested: u64, oldest: u64) -> Self {
        Status::expired(format!("too old resource version: {requested} ({oldest})"))
    }

    /// The history that a watch asked for has been compacted.
    pub fn watch_expired() -> Self {
        Status::expired("The resourceVersion for the provided watch is too old.")
    }

    /// The history that a list asked for has been compacted.
    pub fn list_expired() -> Self {
        Status::expired("The resourceVersion for the provided list is too old.")
    }

    /// A list cannot go on as it began; with the new token it goes on at the newest revision.
    pub fn continue_expired(new_token: impl Into<String>) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
            You can start a new list without the continue parameter, or use the continue token in this response \
            to retrieve the remainder of the results. Continuing with the provided token results in an \
            inconsistent list - objects that were created, modified, or deleted between the time the first chunk \
            was returned and now may show up in the list.";
        Status { metadata: Metadata { continue_token: new_token.into() }, ..Status::expired(message) }
    }

    pub fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Self {
        let mut message = format!("{kind} {} is invalid", go::quote(name));
        if !errors.is_empty() {
            message.push_str(&format!(": {errors}"));
        }
        failure(Reason::Invalid, message).with(Details {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes: errors.iter().map(Cause::from).collect(),
            ..Details::default()
        })
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        failure(Reason::BadRequest, message)
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        failure(Reason::TooManyRequests, message).with(Details { retry_after_seconds, ..Details::default() })
    }

    /// Flow control has no seat for the request.
    pub fn overloaded(message: impl Display) -> Self {
        failure(Reason::TooManyRequests, format!("Too many requests: {message}"))
    }

    pub fn service_unavailable(message: impl Into<String>) -> Self {
        failure(Reason::ServiceUnavailable, message)
    }

    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let message =
            format!("{action} is not supported on resources of kind {}", go::quote(&resource.to_string()));
        failure(Reason::MethodNotAllowed, message).with(about(resource, ""))
    }

    /// A transient problem; the client should try again.
    pub fn server_timeout(resource: &GroupResource, operation: &str, retry_after_seconds: u32) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        failure(Reason::ServerTimeout, message)
            .with(Details { retry_after_seconds, ..about(resource, operation) })
    }

    /// The time was up; the operation may still complete.
    pub fn timeout(message: impl Display, retry_after_seconds: u32) -> Self {
        failure(Reason::Timeout, format!("Timeout: {message}"))
            .with(Details { retry_after_seconds, ..Details::default() })
    }

    /// A read asked for a revision that the server has not seen yet.
    pub fn too_large_resource_version(requested: u64, current: u64, retry_after_seconds: u32) -> Self {
        let message = format_args!("Too large resource version: {requested}, current: {current}");
        Status::timeout(message, retry_after_seconds)
            .with_cause(Cause::new("ResourceVersionTooLarge", "Too large resource version"))
    }

    pub fn internal_error(cause: impl Display) -> Self {
        failure(Reason::InternalError, format!("Internal error occurred: {cause}"))
            .with_cause(Cause::new("", cause.to_string()))
    }

    /// An error that Kubernetes never gave a reason: 500 and the bare text.
    pub fn unclassified(message: impl Into<String>) -> Self {
        failure(Reason::Unknown, message)
    }

    pub fn request_entity_too_large(message: impl Display) -> Self {
        failure(Reason::RequestEntityTooLarge, format!("Request entity too large: {message}"))
    }

    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        failure(Reason::NotAcceptable, format!("only the following media types are accepted: {accepted}"))
    }

    pub fn not_acceptable_conversion(target: impl Display, accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message =
            format!("only the following media types are accepted when converting to {target}: {accepted}");
        failure(Reason::NotAcceptable, message)
    }

    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        failure(Reason::UnsupportedMediaType, message)
    }

    /// The answer to a bare HTTP status: what the router says, and what a client makes of a foreign answer.
    pub fn generic(
        code: u16,
        verb: &str,
        resource: &GroupResource,
        name: &str,
        server_message: &str,
    ) -> Self {
        let (reason, mut message) = generic_text(code, verb, server_message);
        let verb = verb.to_lowercase();
        match (resource.is_none(), name) {
            (true, _) => {}
            (false, "") => message.push_str(&format!(" ({verb} {resource})")),
            (false, name) => message.push_str(&format!(" ({verb} {resource} {name})")),
        }
        failure(reason, message).with(about(resource, name)).with_code(code)
    }

    fn with(self, details: Details) -> Self {
        Status { details: Some(Box::new(details)), ..self }
    }
}

impl Attempt<'_> {
    fn refusal(&self, user: &str) -> String {
        let user = go::quote(user);
        match *self {
            Attempt::Path { verb, path } => format!("User {user} cannot {verb} path {}", go::quote(path)),
            Attempt::Resource { verb, resource, subresource, namespace, .. } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let target = go::quote(&format!("{}{slash}{subresource}", resource.resource));
                let group = go::quote(&resource.group);
                let scope = match namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", go::quote(namespace)),
                };
                format!("User {user} cannot {verb} resource {target} in API group {group} {scope}")
            }
        }
    }
}

fn failure(reason: Reason, message: impl Into<String>) -> Status {
    Status { code: reason.code(), reason, message: message.into(), ..Status::default() }
}

fn about(resource: &GroupResource, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.to_string(),
        kind: resource.resource.to_string(),
        ..Details::default()
    }
}

fn generic_text(code: u16, verb: &str, server_message: &str) -> (Reason, String) {
    let (reason, message) = match code {
        400 => (Reason::BadRequest, "the server rejected our request for an unknown reason"),
        401 => (Reason::Unauthorized, "the server has asked for the client to provide credentials"),
        403 => (Reason::Forbidden, server_message),
        404 => (Reason::NotFound, "the server could not find the requested resource"),
        405 => (Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        406 => match server_message {
            "" | "unknown" => (
                Reason::NotAcceptable,
                "the server was unable to respond with a content type that the client supports",
            ),
            told => (Reason::NotAcceptable, told),
        },
        409 if verb == "POST" => (Reason::AlreadyExists, "the server reported a conflict"),
        409 => (Reason::Conflict, "the server reported a conflict"),
        415 => (Reason::UnsupportedMediaType, server_message),
        422 => (Reason::Invalid, "the server rejected our request due to an error in our request"),
        429 => (
            Reason::TooManyRequests,
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (Reason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (
            Reason::Timeout,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => {
            let told = go::quote(server_message);
            let message =
                format!("an error on the server ({told}) has prevented the request from succeeding");
            return (Reason::InternalError, message);
        }
        _ => {
            let message = format!(
                "the server responded with the status code {code} but did not return more information"
            );
            return (Reason::Unknown, message);
        }
    };
    (reason, message.to_owned())
}
