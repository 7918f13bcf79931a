//! Applies that fit the schema but not the Go type, applies in several versions, and names of terminating
//! objects.

use super::{APPLY, BUDGETS, MAPS, Step, run, step};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// An apply, in YAML.
fn apply(path: String, config: Value, code: u16, holds: &'static [(&'static str, &'static str)]) -> Step {
    Step("PATCH", path, APPLY, config, code, holds)
}

#[test]
fn applies_report_a_count_or_percentage_of_another_type_after_the_merge() {
    let budget =
        |spec: Value| json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec});
    run(vec![
        apply(
            format!("{BUDGETS}/a?fieldManager=m"),
            budget(json!({"minAvailable": {"a": 1}})),
            500,
            &[(
                "/message",
                "failed to convert new object (/; policy/v1, Kind=PodDisruptionBudget) to proper version: unable to \
                 convert unstructured object to policy/v1, Kind=PodDisruptionBudget: json: cannot unmarshal object \
                 into Go value of type int32",
            )],
        ),
        apply(
            format!("{BUDGETS}/a?fieldManager=m"),
            budget(json!({"minAvailable": {}, "selector": {"matchLabels": []}})),
            500,
            &[(
                "/message",
                "failed to create typed patch object (/; policy/v1, Kind=PodDisruptionBudget): \
                 .spec.selector.matchLabels: expected map, got &{[]}",
            )],
        ),
    ]);
}

#[test]
fn applies_report_values_that_fit_no_go_type_late() {
    let map = |binary: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "binaryData": {"b": binary}});
    let scaler = |version: &str, spec: Value| {
        let (version, kind) = (format!("autoscaling/{version}"), "HorizontalPodAutoscaler");
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    };
    let scalers = |version: &str| {
        format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/a?fieldManager=m")
    };
    let target = json!({"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"});
    run(vec![
        apply(
            format!("{MAPS}/a?fieldManager=m"),
            map("!"),
            500,
            &[(
                "/message",
                "failed to convert new object (/a; /v1, Kind=ConfigMap) to proper version: unable to convert \
                 unstructured object to /v1, Kind=ConfigMap: error decoding from json: illegal base64 data at input \
                 byte 0",
            )],
        ),
        apply(format!("{MAPS}/a?fieldManager=m"), map("eA=="), 201, &[]),
        Step(
            "PATCH",
            format!("{MAPS}/a"),
            "application/strategic-merge-patch+json",
            json!({"binaryData": {"b": "!"}}),
            422,
            &[(
                "/message",
                " \"\" is invalid: patch: Invalid value: \"map[binaryData:map[b:!]]\": error decoding from json: illegal \
                 base64 data at input byte 0",
            )],
        ),
        // One manager applies in two versions.
        apply(
            scalers("v2"),
            scaler(
                "v2",
                json!({"maxReplicas": 3, "scaleTargetRef": target, "metrics": [{"type": "Resource", "resource":
                    {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}}]}),
            ),
            201,
            &[],
        ),
        apply(scalers("v1"), scaler("v1", json!({"maxReplicas": 4})), 200, &[("/spec/maxReplicas", "4")]),
    ]);
}

#[test]
fn converted_applies_reject_malformed_timestamps() {
    let version = |name: &str, is_stored: bool| {
        json!({"name": name, "served": true, "storage": is_stored, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let definition = json!({
        "metadata": {"name": "as.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "as", "kind": "A"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/as/a?fieldManager=m");
    let object = |version: &str, metadata: Value| json!({"apiVersion": format!("example.com/{version}"), "kind": "A", "metadata": metadata});
    let malformed = || json!({"name": "a", "deletionTimestamp": "x"});
    let refused: &[(&str, &str)] = &[(
        "/message",
        "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
    )];
    run(vec![
        step("POST", DEFINITIONS, definition, 201, &[]),
        apply(path("v2"), object("v2", malformed()), 500, refused),
        apply(path("v1"), object("v1", malformed()), 201, &[("/metadata/name", "a")]),
        apply(path("v2"), object("v2", malformed()), 500, refused),
        // The status is stored with the metadata of before.
        apply(
            path("v2").replace("/a?", "/a/status?force=true&"),
            object("v2", malformed()),
            200,
            &[("/metadata/deletionTimestamp", "null")],
        ),
        // An object that is being deleted keeps the time that the server has set.
        apply(
            path("v1").replace("/a?", "/d?"),
            object("v1", json!({"name": "d", "finalizers": ["example.com/keep"]})),
            201,
            &[],
        ),
        step("DELETE", path("v1").replace("/a?", "/d?"), json!({}), 200, &[]),
        apply(
            path("v2").replace("/a?fieldManager=m", "/d?fieldManager=n"),
            object("v2", json!({"name": "d", "deletionTimestamp": "x"})),
            200,
            &[("/metadata/finalizers/0", "example.com/keep")],
        ),
        // Validation comes before the conversion to the storage version.
        apply(
            path("v2").replace("/a?", "/c?"),
            object("v2", json!({"name": "c", "labels": {"a/b/c": "d"}, "deletionTimestamp": "x"})),
            422,
            &[("/details/causes/0/field", "metadata.labels")],
        ),
        // The name is checked first.
        apply(
            path("v2").replace("/a?", "/b?"),
            object("v2", json!({"deletionTimestamp": "x"})),
            400,
            &[(
                "/message",
                "the name of the object (b based on URL) was undeterminable: name must be provided",
            )],
        ),
    ]);
}

#[test]
fn the_name_of_a_terminating_object_is_taken() {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    let one = format!("{DEFINITIONS}/as.example.com");
    let definition = json!({
        "metadata": {"name": "as.example.com", "finalizers": ["example.com/hold"]},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    run(vec![
        step("POST", MAPS, held.clone(), 201, &[]),
        step("POST", MAPS, held.clone(), 409, &[("/message", "configmaps \"a\" already exists")]),
        step("DELETE", format!("{MAPS}/a"), Value::Null, 200, &[]),
        step(
            "POST",
            MAPS,
            held,
            409,
            &[("/message", "object is being deleted: configmaps \"a\" already exists")],
        ),
        // A second delete of a definition sets its grace period to zero.
        step("POST", DEFINITIONS, definition, 201, &[]),
        step("DELETE", one.clone(), Value::Null, 200, &[("/metadata/deletionGracePeriodSeconds", "null")]),
        step("DELETE", one, Value::Null, 200, &[("/metadata/deletionGracePeriodSeconds", "0")]),
    ]);
}

#[test]
fn numbers_beyond_32_bits_wrap_in_applies_and_strategic_patches() {
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    let controllers = "/api/v1/namespaces/default/replicationcontrollers";
    let controller = |replicas: i64| {
        let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"replicas": replicas, "selector": {"a": "b"}, "template": pod});
        json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec": spec})
    };
    let path = || format!("{controllers}/a?fieldManager=m");
    const TOO_SMALL: &str = "ReplicationController \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or \
                     equal to 0";
    run(vec![
        apply(path(), controller(i64::MAX), 422, &[("/message", TOO_SMALL)]),
        apply(path(), controller(-2_147_483_649), 201, &[("/spec/replicas", "2147483647")]),
        Step(
            "PATCH",
            path(),
            STRATEGIC,
            json!({"spec": {"replicas": 4_294_967_298_i64}}),
            200,
            &[("/spec/replicas", "2")],
        ),
        Step(
            "PATCH",
            path(),
            STRATEGIC,
            json!({"spec": {"replicas": i64::MAX}}),
            422,
            &[("/message", TOO_SMALL)],
        ),
    ]);
}

#[test]
fn an_empty_list_is_no_change_for_any_kind() {
    // Every optional list or map that is always encoded.
    for (path, object, patch) in [
        (
            "/api/v1/namespaces/default/limitranges",
            json!({"spec": {"limits": []}}),
            json!({"spec": {"limits": []}}),
        ),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", json!({"rules": []}), json!({"rules": []})),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"addressType": "IPv4", "endpoints": []}),
            json!({"endpoints": []}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            json!({"spec": {"devices": {"requests": []}}}),
            json!({"spec": {"devices": {"requests": []}}}),
        ),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            json!({"spec": {"drivers": []}}),
            json!({"spec": {"drivers": []}}),
        ),
    ] {
        let mut object = object;
        object["metadata"] = json!({"name": "a"});
        let run = world::simulate(5, |world| async move {
            let store = std::sync::Arc::new(store::Memory::new());
            let server = server::Server::start(&world, store, server::Config::default()).await.unwrap();
            let send = async |method, path: &str, sort, body: &Value| {
                let (code, answer) =
                    crate::client::send_with(&server, method, path, sort, body.to_string()).await;
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                assert!((200..300).contains(&code), "{path}: {answer}");
                answer["metadata"]["resourceVersion"].clone()
            };
            let created = send("POST", path, super::JSON, &object).await;
            let patched = send("PATCH", &format!("{path}/a"), super::MERGE, &patch).await;
            assert_eq!(created, patched, "{path} {patch}");
        });
        run.unwrap();
    }
}

#[test]
fn a_malformed_resource_version_is_refused_after_mutating_admission() {
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "100m"}, "spec": spec});
    let containers = json!([{"name": "c", "image": "i"}]);
    run(vec![
        apply(
            format!("{pods}/a?fieldManager=m"),
            pod(json!({"containers": containers, "preemptionPolicy": "10%"})),
            403,
            &[("/reason", "Forbidden")],
        ),
        apply(
            format!("{pods}/a?fieldManager=m"),
            pod(json!({"containers": containers})),
            500,
            &[("/message", "strconv.ParseUint: parsing \"100m\": invalid syntax")],
        ),
    ]);
}

#[test]
fn empty_managed_fields_inside_a_template_are_no_change_of_it() {
    const JOB: &str = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    let applied = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
        "spec": {"template": {"metadata": {"managedFields": []}}}});
    run(vec![
        step("POST", JOB, job, 201, &[]),
        Step(
            "PATCH",
            format!("{JOB}/a?fieldManager=one"),
            APPLY,
            applied,
            200,
            &[("/spec/template/metadata/managedFields", "null")],
        ),
    ]);
}
