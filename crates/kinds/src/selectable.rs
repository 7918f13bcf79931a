//! Which fields a `fieldSelector` may ask for, by resource, and what they are worth in an object.
//!
//! Kubernetes: every resource takes `metadata.name` and `metadata.namespace`; few take more. A resource says in its
//! own words that it does not know a field.

mod field;

use std::borrow::Cow;
use std::fmt;

use api::go;
use serde_json::Value;

use crate::built_in;
pub(crate) use field::{Selectable, SelectableField};

/// The field that a label means, or the refusal.
pub fn field(group: &str, resource: &str, label: &str) -> Result<&'static str, UnknownField> {
    selectable(group, resource).field(label)
}

fn selectable(group: &str, resource: &str) -> &'static Selectable {
    static METADATA: Selectable = Selectable::METADATA;
    built_in::of_resource(group, resource).map_or(&METADATA, |it| &it.selectable)
}

/// What a field is worth in an object, whether that is in the version that was asked for or in the stored one.
/// Empty where it is not set.
pub fn value<'a>(group: &str, resource: &str, field: &str, object: &'a Value) -> Cow<'a, str> {
    selectable(group, resource).value(field, object)
}

/// A selector names a field that cannot be selected by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    label: String,
    refusal: Refusal,
}

/// How a kind words that a field cannot be selected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Plain,
    MetadataOnly,
    Job,
    ResourceSlice,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = &self.label;
        match self.refusal {
            Refusal::Plain => write!(f, "field label not supported: {label}"),
            Refusal::MetadataOnly => write!(
                f,
                r#"{} is not a known field selector: only "metadata.name", "metadata.namespace""#,
                go::quote(label)
            ),
            Refusal::Job => write!(f, "field label {} not supported for Job", go::quote(label)),
            Refusal::ResourceSlice => {
                write!(f, "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}")
            }
        }
    }
}

impl std::error::Error for UnknownField {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_resource_knows_its_fields_and_refuses_others_in_its_own_words() {
        for (group, resource, label, expected) in [
            ("", "pods", "spec.nodeName", "spec.nodeName"),
            ("", "pods", "spec.host", "spec.nodeName"),
            ("", "pods", "spec.color", "! field label not supported: spec.color"),
            ("", "secrets", "type", "type"),
            ("", "secrets", "spec.color", "! field label not supported: spec.color"),
            ("", "nodes", "metadata.namespace", "! field label not supported: metadata.namespace"),
            ("", "configmaps", "metadata.name", "metadata.name"),
            (
                "",
                "configmaps",
                "data.x",
                r#"! "data.x" is not a known field selector: only "metadata.name", "metadata.namespace""#,
            ),
            (
                "apps",
                "replicasets",
                "status.replicas",
                r#"! "status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace""#,
            ),
            ("batch", "jobs", "a", r#"! field label "a" not supported for Job"#),
            (
                "resource.k8s.io",
                "resourceslices",
                "a",
                "! field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a",
            ),
            ("events.k8s.io", "events", "regarding.kind", "regarding.kind"),
            ("events.k8s.io", "events", "source", "! field label not supported: source"),
        ] {
            let answer = match field(group, resource, label) {
                Ok(field) => field.to_owned(),
                Err(unknown) => format!("! {unknown}"),
            };
            assert_eq!(answer, expected, "{group} {resource} {label}");
        }
    }

    #[test]
    fn fields_are_worth_what_the_object_says() {
        let pod = json!({
            "metadata": { "name": "p", "namespace": "n" },
            "spec": { "nodeName": "m", "hostNetwork": true },
            "status": { "phase": "Running", "podIPs": [{ "ip": "10.0.0.1" }] },
        });
        let event = json!({
            "involvedObject": { "kind": "Pod", "name": "p" },
            "reportingComponent": "kubelet",
            "type": "Warning",
        });
        let newer = json!({ "regarding": { "kind": "Pod" }, "reportingController": "k", "note": "x" });
        let empty = json!({});
        for (group, resource, field, object, expected) in [
            ("", "pods", "metadata.name", &pod, "p"),
            ("", "pods", "metadata.namespace", &pod, "n"),
            ("", "pods", "spec.nodeName", &pod, "m"),
            ("", "pods", "spec.hostNetwork", &pod, "true"),
            ("", "pods", "spec.hostNetwork", &empty, "false"),
            ("", "pods", "status.phase", &pod, "Running"),
            ("", "pods", "status.podIP", &pod, "10.0.0.1"),
            ("", "pods", "status.podIPs", &pod, ""),
            ("", "nodes", "spec.unschedulable", &empty, "false"),
            ("", "events", "involvedObject.kind", &event, "Pod"),
            ("", "events", "source", &event, "kubelet"),
            ("", "events", "involvedObject.kind", &newer, "Pod"),
            ("events.k8s.io", "events", "regarding.kind", &event, "Pod"),
            ("events.k8s.io", "events", "reportingController", &event, "kubelet"),
            ("events.k8s.io", "events", "reportingController", &newer, "k"),
            ("batch", "jobs", "status.successful", &json!({ "status": { "succeeded": 3 } }), "3"),
            ("batch", "jobs", "status.successful", &empty, "0"),
            ("", "replicationcontrollers", "status.replicas", &empty, "0"),
            ("", "secrets", "type", &json!({ "type": "Opaque" }), "Opaque"),
        ] {
            assert_eq!(value(group, resource, field, object), expected, "{resource} {field}");
        }
    }
}
