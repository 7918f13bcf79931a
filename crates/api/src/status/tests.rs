//! Answers against what the real server sends, byte for byte.

use super::*;
use crate::field::{Error, ErrorList, Path};
use crate::kind::{GroupKind, GroupResource};

fn check(cases: &[(Status, &str)]) {
    for (status, expected) in cases {
        let written = serde_json::to_string(status).unwrap();
        assert_eq!(&written, expected);
        assert_eq!(serde_json::from_str::<Status>(&written).unwrap(), *status);
    }
}

#[test]
fn answers_are_written_as_the_real_server_writes_them() {
    let configmaps = GroupResource::new("", "configmaps");
    let deployments = GroupResource::new("apps", "deployments");
    let none = GroupResource::none();
    check(&[
        (
            Status::not_found(&deployments, "none"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"none\" not found","reason":"NotFound","details":{"name":"none","group":"apps","kind":"deployments"},"code":404}"#,
        ),
        (
            Status::deleted(&configmaps, "one", "0815"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"one","kind":"configmaps","uid":"0815"}}"#,
        ),
        (
            Status::success().with_code(201),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}"#,
        ),
        (
            Status::generic(404, "GET", &none, "", ""),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#,
        ),
        (
            Status::unclassified("resourceVersion should not be set on objects to be created"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"resourceVersion should not be set on objects to be created","code":500}"#,
        ),
        (
            Status::internal_error("boom"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: boom","reason":"InternalError","details":{"causes":[{"message":"boom"}]},"code":500}"#,
        ),
        (
            Status::too_large_resource_version(9, 5, 1),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#,
        ),
        (
            Status {
                reason: "Teapot".into(),
                message: "short and stout".into(),
                code: 418,
                ..Status::default()
            },
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"short and stout","reason":"Teapot","code":418}"#,
        ),
        (
            Status::forbidden(&configmaps, "late", "it ends").with_cause(
                Cause::new("NamespaceTerminating", "namespace n is being terminated")
                    .at("metadata.namespace"),
            ),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"late\" is forbidden: it ends","reason":"Forbidden","details":{"name":"late","kind":"configmaps","causes":[{"reason":"NamespaceTerminating","message":"namespace n is being terminated","field":"metadata.namespace"}]},"code":403}"#,
        ),
    ]);
}

#[test]
fn invalid_objects_list_their_causes() {
    let kind = GroupKind::new("apps", "Deployment");
    let replicas = Error::invalid(&Path::new("spec.replicas"), -1, "must be greater than or equal to 0");
    let name = Error::required(&Path::new("metadata.name"), "");
    check(&[
        (
            Status::invalid(&kind, "web", &ErrorList::from(replicas.clone())),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0","reason":"Invalid","details":{"name":"web","group":"apps","kind":"Deployment","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -1: must be greater than or equal to 0","field":"spec.replicas"}]},"code":422}"#,
        ),
        (
            Status::invalid(&kind, "", &ErrorList::from_iter([name, replicas])),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Deployment.apps \"\" is invalid: [metadata.name: Required value, spec.replicas: Invalid value: -1: must be greater than or equal to 0]","reason":"Invalid","details":{"group":"apps","kind":"Deployment","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"metadata.name"},{"reason":"FieldValueInvalid","message":"Invalid value: -1: must be greater than or equal to 0","field":"spec.replicas"}]},"code":422}"#,
        ),
        (
            Status::invalid(&kind, "web", &ErrorList::new()),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Deployment.apps \"web\" is invalid","reason":"Invalid","details":{"name":"web","group":"apps","kind":"Deployment"},"code":422}"#,
        ),
    ]);
}

fn check_texts(cases: &[(Status, u16, &str, &str)]) {
    for (status, code, reason, message) in cases {
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.as_str()),
            (*code, *reason, *message)
        );
    }
}

#[test]
fn refusals_have_the_real_texts() {
    let configmaps = GroupResource::new("", "configmaps");
    let deployments = GroupResource::new("apps", "deployments");
    let none = GroupResource::none();
    let to = |subresource, namespace, name| Attempt::Resource {
        verb: "get",
        resource: &deployments,
        subresource,
        namespace,
        name,
    };
    check_texts(&[
        (
            Status::already_exists(&configmaps, "one"),
            409,
            "AlreadyExists",
            r#"configmaps "one" already exists"#,
        ),
        (
            Status::generate_name_conflict(&configmaps, "a-x", 1),
            409,
            "AlreadyExists",
            r#"configmaps "a-x" already exists, the server was not able to generate a unique name for the object"#,
        ),
        (Status::unauthorized("Unauthorized"), 401, "Unauthorized", "Unauthorized"),
        (Status::forbidden(&none, "", "no"), 403, "Forbidden", "forbidden: no"),
        (Status::forbidden(&configmaps, "", "no"), 403, "Forbidden", "configmaps is forbidden: no"),
        (
            Status::denied("alice", to("scale", "ns", "a"), ""),
            403,
            "Forbidden",
            r#"deployments.apps "a" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" in the namespace "ns""#,
        ),
        (
            Status::denied("<b>", to("", "", ""), "because"),
            403,
            "Forbidden",
            r#"deployments.apps is forbidden: User "&lt;b&gt;" cannot get resource "deployments" in API group "apps" at the cluster scope: because"#,
        ),
        (
            Status::denied("alice", Attempt::Path { verb: "get", path: "/metrics" }, ""),
            403,
            "Forbidden",
            r#"forbidden: User "alice" cannot get path "/metrics""#,
        ),
    ]);
}

#[test]
fn conflicts_have_the_real_texts() {
    let deployments = GroupResource::new("apps", "deployments");
    let kind = GroupKind::new("", "ConfigMap");
    check_texts(&[
        (
            Status::modified(&deployments, "web"),
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again"#,
        ),
        (
            Status::uid_mismatch(&kind, "one", "a", "b"),
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated"#,
        ),
        (
            Status::resource_version_mismatch(&kind, "one", "1", "2"),
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). The object might have been modified"#,
        ),
    ]);
}

#[test]
fn other_failures_have_the_real_texts() {
    let configmaps = GroupResource::new("", "configmaps");
    let deployments = GroupResource::new("apps", "deployments");
    let none = GroupResource::none();
    check_texts(&[
        (Status::too_old_resource_version(3, 7), 410, "Expired", "too old resource version: 3 (7)"),
        (Status::watch_expired(), 410, "Expired", "The resourceVersion for the provided watch is too old."),
        (Status::gone("gone"), 410, "Gone", "gone"),
        (Status::overloaded("queue full"), 429, "TooManyRequests", "Too many requests: queue full"),
        (
            Status::method_not_supported(&deployments, "watch"),
            405,
            "MethodNotAllowed",
            r#"watch is not supported on resources of kind "deployments.apps""#,
        ),
        (
            Status::server_timeout(&deployments, "list", 2),
            500,
            "ServerTimeout",
            "The list operation against deployments.apps could not be completed at this time, please try again.",
        ),
        (
            Status::request_entity_too_large("limit is 3145728"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
        ),
        (
            Status::not_acceptable(&["application/json", "application/yaml"]),
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        ),
        (
            Status::unsupported_media_type(&["application/json"]),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json",
        ),
        (
            Status::generic(409, "POST", &configmaps, "one", ""),
            409,
            "AlreadyExists",
            "the server reported a conflict (post configmaps one)",
        ),
        (
            Status::generic(502, "GET", &configmaps, "", "unknown"),
            502,
            "InternalError",
            r#"an error on the server ("unknown") has prevented the request from succeeding (get configmaps)"#,
        ),
        (
            Status::generic(415, "", &none, "", "415: Unsupported Media Type"),
            415,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        ),
        (
            Status::generic(302, "", &none, "", ""),
            302,
            "",
            "the server responded with the status code 302 but did not return more information",
        ),
    ]);
}

#[test]
fn an_expired_list_hands_out_a_new_token() {
    let status = Status::continue_expired("t0ken");
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!(written["metadata"], serde_json::json!({"continue": "t0ken"}));
    assert_eq!(
        status.message,
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list."
    );
}

#[test]
fn reasons_survive_the_wire() {
    for reason in Reason::KNOWN {
        assert_eq!(Reason::from(reason.as_str()), reason);
    }
}
