//! kube-apiserver's responses to wrong versions, kinds and methods.

use crate::real_answers::{APPLY, JSON, LEASES, MAPS, MERGE, Step, run, step};
use serde_json::{Value, json};

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn named(version: &str) -> Value {
    json!({"metadata": {"name": "a", "resourceVersion": version}})
}

#[test]
fn resource_version_zero_means_none() {
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "0"}, "data": {"k": "v"},
    });
    run(vec![
        step(
            "POST",
            MAPS,
            named("5"),
            500,
            &[("/message", "resourceVersion should not be set on objects to be created")],
        ),
        step("POST", MAPS, named("0"), 201, &[]),
        step("PUT", format!("{MAPS}/a"), named("0"), 200, &[]),
        step("PUT", format!("{MAPS}/a"), named("1"), 409, &[]),
        step(
            "PATCH",
            format!("{MAPS}/a"),
            json!({"metadata": {"resourceVersion": "0"}, "data": {"a": "b"}}),
            200,
            &[],
        ),
        Step("PATCH", format!("{MAPS}/a?fieldManager=m"), APPLY, applied, 200, &[]),
        step(
            "PATCH",
            format!("{MAPS}/a"),
            json!({"metadata": {"resourceVersion": "99999999999999999999"}}),
            500,
            &[("/message", "strconv.ParseUint: parsing \"99999999999999999999\": value out of range")],
        ),
        step(
            "PUT",
            format!("{LEASES}/a"),
            named("x"),
            500,
            &[("/message", "strconv.ParseUint: parsing \"x\": invalid syntax")],
        ),
        step("PUT", format!("{LEASES}/a"), named("1"), 201, &[]),
        step(
            "PUT",
            format!("{LEASES}/a"),
            named("0"),
            422,
            &[("/details/causes/0/message", "Invalid value: 0: must be specified for an update")],
        ),
    ]);
}

#[test]
fn an_object_of_another_kind_is_rejected() {
    let of =
        |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
    run(vec![
        step(
            "POST",
            MAPS,
            of("apps/v1", "Deployment"),
            400,
            &[(
                "/message",
                "Deployment in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Deployment) to \
                 (core.ConfigMap): unknown conversion",
            )],
        ),
        step(
            "POST",
            ROLES,
            of("v1", "Role"),
            400,
            &[(
                "/message",
                "Role in version \"v1\" cannot be handled as a Role: no kind \"Role\" is registered for version \
                 \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            )],
        ),
        step(
            "POST",
            MAPS,
            json!({"kind": "Foo"}),
            400,
            &[(
                "/message",
                "Foo in version \"v1\" cannot be handled as a ConfigMap: no kind \"Foo\" is registered for version \
                 \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            )],
        ),
        step(
            "POST",
            DEFINITIONS,
            of("v1", "Pod"),
            400,
            &[(
                "/message",
                "Pod in version \"v1\" cannot be handled as a CustomResourceDefinition: no kind \"Pod\" is registered \
                 for version \"v1\" in scheme \"k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55\"",
            )],
        ),
        step(
            "POST",
            "/api/v1/namespaces/default/events",
            of("events.k8s.io/v1", "Event"),
            400,
            &[(
                "/message",
                "the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)",
            )],
        ),
        step(
            "POST",
            "/apis/apps/v1/namespaces/default/deployments",
            of("extensions/v1beta1", "Deployment"),
            400,
            &[(
                "/message",
                "the API version in the data (extensions/v1beta1) does not match the expected API version (apps/v1)",
            )],
        ),
        step("POST", MAPS, of("v1", "ConfigMap"), 201, &[]),
        // A strategic patch cannot change the kind.
        Step(
            "PATCH",
            format!("{MAPS}/a"),
            STRATEGIC,
            json!({"kind": "X", "apiVersion": "y"}),
            200,
            &[("/kind", "ConfigMap")],
        ),
        Step("PATCH", format!("{MAPS}/a"), MERGE, json!({"kind": "X"}), 422, &[]),
        step(
            "POST",
            format!("{MAPS}?dryRun=All"),
            json!({"metadata": {"name": "b"}, "data": {"a": null}}),
            201,
            &[("/data/a", "")],
        ),
        Step(
            "POST",
            "/api/v1/namespaces/default/secrets?dryRun=All".to_owned(),
            JSON,
            json!({"metadata": {"name": "b"}, "data": {"a": null}}),
            201,
            &[("/data/a", "")],
        ),
    ]);
}

#[test]
fn unsupported_methods_on_custom_resources_are_rejected_with_an_empty_verb() {
    let definition = json!({
        "metadata": {"name": "foos.a.io"},
        "spec": {
            "group": "a.io", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
                }}},
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }}},
            ],
        },
    });
    let foo = json!({"apiVersion": "a.io/v2", "kind": "Foo", "metadata": {"name": "a"}, "spec": {}});
    run(vec![
        step("POST", DEFINITIONS, definition, 201, &[]),
        step(
            "OPTIONS",
            "/apis/a.io/v1/foos",
            Value::Null,
            405,
            &[
                ("/message", " is not supported on resources of kind \"foos.a.io\""),
                ("/details/kind", "foos"),
            ],
        ),
        step("OPTIONS", MAPS, Value::Null, 405, &[("/details", "{}")]),
        // An object stored in another version has the defaults of that version.
        step("POST", "/apis/a.io/v2/foos", foo, 201, &[]),
        step("GET", "/apis/a.io/v1/foos/a", Value::Null, 200, &[("/spec/a", "x")]),
        step("GET", "/apis/a.io/v1/foos", Value::Null, 200, &[("/items/0/spec/a", "x")]),
    ]);
}

#[test]
fn a_dry_run_of_a_service_allocates_nothing() {
    let service = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let ports =
        json!([{"port": 53, "name": "a", "nodePort": 30123}, {"port": 53, "name": "b", "protocol": "UDP"}]);
    let services = "/api/v1/namespaces/default/services";
    let dry = format!("{services}?dryRun=All");
    run(vec![
        step(
            "POST",
            services,
            service("a", json!({"type": "NodePort", "ports": ports})),
            201,
            &[("/spec/ports/1/nodePort", "30123")],
        ),
        step(
            "POST",
            &*dry,
            service("b", json!({"type": "NodePort", "ports": ports})),
            422,
            &[("/details/causes/0/message", "Invalid value: 30123: provided port is already allocated")],
        ),
        step(
            "POST",
            &*dry,
            service("b", json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]})),
            201,
            &[("/spec/clusterIP", "10.96.0.0")],
        ),
        step(
            "POST",
            &*dry,
            service(
                "b",
                json!({
                    "type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 1}],
                }),
            ),
            201,
            &[("/spec/ports/0/nodePort", "32769"), ("/spec/healthCheckNodePort", "32770")],
        ),
        step(
            "POST",
            &*dry,
            service("b", json!({"clusterIP": "1.2.3.4", "ports": [{"port": 1}]})),
            422,
            &[(
                "/details/causes/0/message",
                "Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: the provided IP (1.2.3.4) is not in \
                 the valid range. The range of valid IPs is 10.96.0.0/16",
            )],
        ),
    ]);
}
