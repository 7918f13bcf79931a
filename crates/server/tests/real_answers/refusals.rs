//! The order of checks when several things are wrong with a request, and the texts of rejections.

use super::{APPLY, JSON, MAPS, MERGE, Step, run, step};
use crate::client::{send, send_with};
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;

const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

fn thing(metadata: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata})
}

/// A definition that preserves unknown fields.
fn define() -> Step {
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "any": {"type": "number"}}}}}}}],
        },
    });
    step("POST", DEFINITIONS, definition, 201, &[])
}

#[test]
fn media_types_are_checked_before_options() {
    let one = |query: &str| format!("{MAPS}/a?{query}");
    let custom = |query: &str| format!("{THINGS}/a?{query}");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    run(vec![
        define(),
        Step(
            "PATCH",
            one("fieldManager=x%00y"),
            JSON,
            map.clone(),
            415,
            &[("/message", "415: Unsupported Media Type")],
        ),
        Step("POST", format!("{MAPS}?dryRun=Maybe"), APPLY, map.clone(), 415, &[]),
        Step("PATCH", custom("fieldValidation=Wrong"), STRATEGIC, json!({}), 415, &[]),
        // Custom resources have no protobuf.
        Step("POST", THINGS.to_owned(), PROTOBUF, thing(json!({"name": "p"})), 415, &[]),
        Step("PUT", custom(""), PROTOBUF, thing(json!({"name": "a"})), 415, &[]),
        // An update is decoded after its options are checked.
        Step("PUT", one("fieldManager=x%00y"), JSON_PATCH, map.clone(), 422, &[]),
        Step("PUT", one(""), JSON_PATCH, map.clone(), 415, &[]),
        // All errors of the options are reported at once.
        Step(
            "PATCH",
            one("fieldValidation=Wrong"),
            APPLY,
            map,
            422,
            &[("/details/causes/0/field", "fieldManager"), ("/details/causes/1/field", "fieldValidation")],
        ),
        Step("PATCH", one("force=false"), MERGE, json!({}), 422, &[("/details/causes/0/field", "force")]),
    ]);
}

#[test]
fn an_apply_is_merged_before_its_name_and_version_are_checked() {
    let apply = |body: Value, code, holds| {
        Step("PATCH", format!("{MAPS}/a?fieldManager=m"), APPLY, body, code, holds)
    };
    let map = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    run(vec![
        apply(
            map(json!({"name": "b", "managedFields": []})),
            400,
            &[("/message", "metadata.managedFields must be nil")],
        ),
        apply(
            map(json!({"labels": {"b": {}}, "resourceVersion": "a/b"})),
            500,
            &[(
                "/message",
                "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata.labels.b: expected string, got \
             &value.valueUnstructured{Value:map[string]interface {}{}}",
            )],
        ),
        apply(map(json!({"name": "b", "uid": "u"})), 409, &[]),
        apply(
            map(json!({"name": "b", "namespace": "other"})),
            400,
            &[(
                "/message",
                "the namespace of the provided object does not match the namespace sent on the request",
            )],
        ),
        apply(
            map(json!({"name": "b"})),
            400,
            &[("/message", "the name of the object (b) does not match the name on the URL (a)")],
        ),
        apply(
            map(json!({})),
            400,
            &[(
                "/message",
                "the name of the object (a based on URL) was undeterminable: name must be provided",
            )],
        ),
        apply(map(json!({"name": "a"})), 201, &[]),
        apply(map(json!({"resourceVersion": "1"})), 409, &[]),
        Step("PATCH", format!("{THINGS}/a/status?fieldManager=m"), APPLY, json!(7), 404, &[]),
    ]);
}

#[test]
fn a_patch_that_removes_apiversion_or_kind_is_rejected() {
    let patch = |path: String, body: Value, code, holds| Step("PATCH", path, MERGE, body, code, holds);
    run(vec![
        define(),
        step("POST", MAPS, json!({"metadata": {"name": "a"}}), 201, &[]),
        step("POST", THINGS, thing(json!({"name": "a"})), 201, &[]),
        patch(
            format!("{MAPS}/a"),
            json!({"apiVersion": null}),
            400,
            &[(
                "/message",
                "the name of the object (a based on URL) was undeterminable: name must be provided",
            )],
        ),
        patch(
            format!("{THINGS}/a"),
            json!({"apiVersion": null}),
            500,
            &[(
                "/message",
                "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'",
            )],
        ),
        Step(
            "PATCH",
            format!("{THINGS}/a"),
            JSON_PATCH,
            json!([{"op": "replace", "path": "", "value": []}]),
            422,
            &[(
                "/details/causes/0/message",
                "Invalid value: \"[]\": couldn't get version/kind; json parse error: json: cannot unmarshal array into Go \
             value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }",
            )],
        ),
    ]);
}

#[test]
fn numbers_beyond_64_bits_are_floats_and_stay_equal_when_rewritten() {
    let mut large = thing(json!({"name": "a"}));
    large["spec"] = json!({"any": 9_223_372_036_854_775_808_u64});
    run(vec![
        define(),
        Step(
            "PATCH",
            format!("{THINGS}/a?fieldManager=m"),
            APPLY,
            large,
            201,
            &[("/spec/any", "9223372036854776000")],
        ),
        step("PATCH", format!("{THINGS}/a"), json!({"metadata": {}}), 200, &[("/metadata/generation", "1")]),
    ]);
}

#[test]
fn a_taken_name_beside_generate_name_is_reported_as_generated() {
    run(vec![
        step("POST", MAPS, json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}), 201, &[]),
        step(
            "POST",
            MAPS,
            json!({"metadata": {"name": "a", "generateName": "b-"}}),
            409,
            &[
                (
                    "/message",
                    "configmaps \"a\" already exists, the server was not able to generate a unique name for the object",
                ),
                ("/details/retryAfterSeconds", "1"),
            ],
        ),
        step("DELETE", format!("{MAPS}/a"), Value::Null, 200, &[]),
        step(
            "POST",
            MAPS,
            json!({"metadata": {"name": "a", "generateName": "b-"}}),
            409,
            &[(
                "/message",
                "object is being deleted: configmaps \"a\" already exists, the server was not able to generate a unique \
             name for the object",
            )],
        ),
    ]);
}

#[test]
fn the_first_delete_of_a_namespace_only_sets_its_deletion_timestamp() {
    let one = format!("{NAMESPACES}/n");
    run(vec![
        step("POST", NAMESPACES, json!({"metadata": {"name": "n"}}), 201, &[]),
        step(
            "DELETE",
            one.clone(),
            json!({"preconditions": {"resourceVersion": "1"}}),
            409,
            &[("/details/kind", "namespaces")],
        ),
        step("PUT", format!("{one}/finalize"), json!({"metadata": {"name": "n"}}), 200, &[]),
        step("DELETE", one.clone(), Value::Null, 200, &[("/status/phase", "Terminating")]),
        step("GET", one.clone(), Value::Null, 200, &[]),
        step("DELETE", one.clone(), Value::Null, 200, &[]),
        step("GET", one, Value::Null, 404, &[]),
    ]);
}

#[test]
fn the_kind_of_delete_options_is_checked() {
    let delete = |body: Value, message: &'static [(&'static str, &'static str)]| {
        step("DELETE", format!("{MAPS}/a"), body, 400, message)
    };
    run(vec![
        delete(
            json!({"kind": "ConfigMap"}),
            &[(
                "/message",
                "no kind \"ConfigMap\" is registered for version \"meta.k8s.io/v1\" in scheme \
             \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
            )],
        ),
        delete(json!({"apiVersion": "a/b/c"}), &[("/message", "unexpected GroupVersion string: a/b/c")]),
    ]);
}

#[test]
fn unsupported_methods_are_rejected_only_on_served_resources() {
    run(vec![
        define(),
        step("OPTIONS", "/api/v1/pods/a", Value::Null, 404, &[]),
        step("OPTIONS", format!("{MAPS}/a/b"), Value::Null, 404, &[]),
        step("OPTIONS", MAPS, Value::Null, 405, &[]),
        step("OPTIONS", format!("{THINGS}/a/nothing"), Value::Null, 404, &[]),
    ]);
}

#[test]
fn an_apply_or_put_that_creates_keeps_the_deletion_timestamp() {
    let mut lease = json!({"metadata": {"name": "a", "deletionGracePeriodSeconds": 7}});
    let leases = super::LEASES;
    let kept = &[("/metadata/deletionGracePeriodSeconds", "7")];
    let put = step("PUT", format!("{leases}/a"), lease.clone(), 201, kept);
    lease["metadata"]["name"] = "b".into();
    run(vec![
        put,
        step("POST", leases, lease, 201, &[("/metadata/deletionGracePeriodSeconds", "null")]),
        define(),
        Step(
            "PATCH",
            format!("{THINGS}/a?fieldManager=m"),
            APPLY,
            thing(json!({"name": "a", "deletionTimestamp": "x", "deletionGracePeriodSeconds": 7})),
            201,
            &[("/metadata/deletionGracePeriodSeconds", "7"), ("/metadata/deletionTimestamp", "null")],
        ),
    ]);
}

#[test]
fn an_empty_list_equals_a_missing_one() {
    let run = world::simulate(5, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        for (collection, body) in [
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                json!({"metadata": {"name": "a"}, "rules": []}),
            ),
            (
                "/api/v1/namespaces/default/limitranges",
                json!({"metadata": {"name": "a"}, "spec": {"limits": []}}),
            ),
        ] {
            let (_, made) = send(&server, "POST", collection, body.to_string()).await;
            let (code, written) = send(&server, "PUT", &format!("{collection}/a"), body.to_string()).await;
            assert_eq!((code, &made), (200, &written));
        }
        // Applied again seconds later: only the time of the apply would differ.
        let limits = "/api/v1/namespaces/default/limitranges/b?fieldManager=m";
        let config = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "b"}, "spec": {"limits": []}});
        let (_, first) = send_with(&server, "PATCH", limits, APPLY, config.to_string()).await;
        world.sleep(std::time::Duration::from_secs(5)).await;
        let (code, second) = send_with(&server, "PATCH", limits, APPLY, config.to_string()).await;
        assert_eq!((code, first), (200, second));
    });
    run.unwrap();
}

#[test]
fn applied_numbers_wrap_to_the_size_of_their_type() {
    let controllers = "/api/v1/namespaces/default/replicationcontrollers";
    let controller = |replicas: Value| {
        json!({
            "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"},
            "spec": {"replicas": replicas, "selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}},
        })
    };
    let apply = |replicas: Value, code, holds| {
        Step("PATCH", format!("{controllers}/a?fieldManager=m"), APPLY, controller(replicas), code, holds)
    };
    run(vec![
        apply(json!(-2_147_483_649_i64), 201, &[("/spec/replicas", "2147483647")]),
        apply(json!(i64::MAX), 422, &[("/details/causes/0/field", "spec.replicas")]),
        apply(
            json!(1.5),
            500,
            &[(
                "/message",
                "failed to convert new object (/a; /v1, Kind=ReplicationController) to proper version: unable to convert \
             unstructured object to /v1, Kind=ReplicationController: cannot convert float64 to int32",
            )],
        ),
    ]);
}

#[test]
fn a_delete_takes_its_preconditions_from_the_query() {
    run(vec![
        step("POST", MAPS, json!({"metadata": {"name": "a"}}), 201, &[]),
        step("DELETE", format!("{MAPS}/a?resourceVersion=1"), Value::Null, 409, &[]),
        step("DELETE", format!("{MAPS}/a?uid=other"), Value::Null, 409, &[]),
        step("DELETE", format!("{MAPS}/a"), Value::Null, 200, &[]),
    ]);
}

#[test]
fn a_pod_can_be_resized_beside_containers_without_requests() {
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}, {"name": "d", "image": "i"}]}});
    let resize = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}});
    run(vec![
        step("POST", pods, pod, 201, &[]),
        Step(
            "PATCH",
            format!("{pods}/a/resize"),
            STRATEGIC,
            resize,
            200,
            &[("/spec/containers/0/resources/requests/cpu", "2")],
        ),
    ]);
}

#[test]
fn addresses_of_a_pod_are_at_most_one_of_each_family() {
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let status = |ips: Value, code, holds| {
        step("PATCH", format!("{pods}/a/status"), json!({"status": {"podIPs": ips}}), code, holds)
    };
    let unreadable = &[(
        "/details/causes/2/message",
        "Internal error: failed to check for dual stack with error:invalid IP[0]: x",
    )];
    run(vec![
        step("POST", pods, pod, 201, &[]),
        status(json!([{"ip": "x"}, {"ip": "y"}]), 422, unreadable),
        status(json!([{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]), 422, &[("/details/causes/1", "null")]),
        status(json!([{"ip": "1.2.3.4"}, {"ip": "::1"}]), 200, &[]),
    ]);
}
