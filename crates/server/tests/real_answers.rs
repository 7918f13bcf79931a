//! kube-apiserver's responses to requests outside of the recordings: options, preconditions, subresources.

mod applies;
mod deletes;
mod patches;
mod refusals;

use crate::client::send_with;
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A request, its status code, and values at some paths of the response.
pub(crate) struct Step(
    pub(crate) &'static str,
    pub(crate) String,
    pub(crate) &'static str,
    pub(crate) Value,
    pub(crate) u16,
    pub(crate) &'static [(&'static str, &'static str)],
);

pub(crate) fn step(
    method: &'static str,
    path: impl Into<String>,
    body: Value,
    code: u16,
    holds: &'static [(&'static str, &'static str)],
) -> Step {
    let sort = if method == "PATCH" { MERGE } else { JSON };
    Step(method, path.into(), sort, body, code, holds)
}

pub(crate) fn run(steps: Vec<Step>) {
    let run = world::simulate(5, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        for Step(method, path, sort, body, code, holds) in steps {
            let sent = if body.is_null() { String::new() } else { body.to_string() };
            let (found, answer) = send_with(&server, method, &path, sort, sent).await;
            let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            assert_eq!(found, code, "{method} {path} {body}: {answer}");
            for (place, expected) in holds {
                let value = answer.pointer(place).unwrap_or(&Value::Null);
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert_eq!(value, *expected, "{method} {path} {body}: {place} of {answer}");
            }
        }
    });
    run.unwrap();
}

pub(crate) fn pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    })
}

#[test]
fn deletes_follow_their_options() {
    let map = json!({"metadata": {"name": "a"}});
    run(vec![
        step("POST", MAPS, map, 201, &[]),
        step("DELETE", "/api/v1/configmaps", Value::Null, 405, &[]),
        step(
            "DELETE",
            format!("{MAPS}/a?gracePeriodSeconds=x"),
            Value::Null,
            400,
            &[("/message", "strconv.ParseInt: parsing \"x\": invalid syntax")],
        ),
        step(
            "DELETE",
            format!("{MAPS}/a"),
            json!({"kind": "Foo", "apiVersion": "v1"}),
            400,
            &[(
                "/message",
                "no kind \"Foo\" is registered for version \"v1\" in scheme \
                 \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
            )],
        ),
        step(
            "DELETE",
            format!("{MAPS}/a"),
            json!({"dryRun": ["All", "Some"]}),
            422,
            &[(
                "/details/causes/0/message",
                "Unsupported value: [\"All\",\"Some\"]: supported values: \"All\"",
            )],
        ),
        step("DELETE", MAPS, json!({"preconditions": {"uid": "x"}}), 409, &[("/details/kind", "ConfigMap")]),
        step("DELETE", format!("{MAPS}/a"), Value::Null, 200, &[("/kind", "Status"), ("/status", "Success")]),
        // The delete of a pod answers with the pod, though it is removed at once.
        step("POST", PODS, pod("p", ""), 201, &[]),
        step(
            "DELETE",
            format!("{PODS}/p"),
            Value::Null,
            200,
            &[("/kind", "Pod"), ("/metadata/deletionGracePeriodSeconds", "0"), ("/metadata/generation", "2")],
        ),
        step("GET", format!("{PODS}/p"), Value::Null, 404, &[]),
        // Jobs orphan their pods by default.
        step(
            "POST",
            JOBS,
            json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
            }}}}),
            201,
            &[],
        ),
        step("DELETE", format!("{JOBS}/j"), Value::Null, 200, &[("/metadata/finalizers/0", "orphan")]),
        step(
            "DELETE",
            "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
            Value::Null,
            403,
            &[],
        ),
    ]);
}

#[test]
fn puts_create_where_allowed_and_need_a_version_where_required() {
    let budget = |count: u8| json!({"metadata": {"name": "b"}, "spec": {"minAvailable": count}});
    run(vec![
        step("PUT", format!("{LEASES}/l"), json!({"metadata": {"name": "l"}}), 201, &[("/kind", "Lease")]),
        step(
            "PUT",
            format!("{LEASES}/l"),
            json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}}),
            422,
            &[
                ("/details/kind", "leases"),
                ("/details/causes/0/message", "Invalid value: 0: must be specified for an update"),
            ],
        ),
        step("PUT", format!("{LEASES}/m"), json!({"metadata": {"name": "m", "uid": "5"}}), 409, &[]),
        step("PUT", format!("{MAPS}/m"), json!({"metadata": {"name": "m"}}), 404, &[]),
        step("POST", BUDGETS, budget(1), 201, &[]),
        step("PUT", format!("{BUDGETS}/b"), budget(2), 422, &[("/details/kind", "poddisruptionbudgets")]),
        step("PATCH", format!("{BUDGETS}/b"), json!({"spec": {"minAvailable": 2}}), 200, &[]),
        step(
            "PUT",
            format!("{BUDGETS}/b"),
            json!({"spec": {}}),
            400,
            &[(
                "/message",
                "the name of the object (b based on URL) was undeterminable: name must be provided",
            )],
        ),
        step("POST", MAPS, json!({"metadata": {"name": "a"}}), 201, &[]),
        step(
            "PATCH",
            format!("{MAPS}/a"),
            json!({"metadata": {"uid": "x"}}),
            422,
            &[("/details/causes/1/message", "Invalid value: \"x\": field is immutable")],
        ),
        Step(
            "PATCH",
            format!("{MAPS}/new?fieldManager=m"),
            APPLY,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "uid": "x"}}),
            409,
            &[(
                "/message",
                "Operation cannot be fulfilled on configmaps \"new\": uid mismatch: the provided object specified \
                 uid x, and no existing object was found",
            )],
        ),
    ]);
}

#[test]
fn evictions_respect_disruption_budgets() {
    let evict = |query: &str, name: &str, code: u16, holds: &'static [(&'static str, &'static str)]| {
        step("POST", format!("{PODS}/p/eviction{query}"), json!({"metadata": {"name": name}}), code, holds)
    };
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let status = |allowed: u8| {
        json!({"status": {
            "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1,
        }})
    };
    run(vec![
        step("POST", PODS, pod("p", "n"), 201, &[]),
        evict("", "q", 400, &[("/message", "name in URL does not match name in Eviction object")]),
        step("PATCH", format!("{PODS}/p/status"), ready, 200, &[]),
        step(
            "POST",
            BUDGETS,
            json!({"metadata": {"name": "b"}, "spec": {
                "minAvailable": 1, "selector": {"matchLabels": {"app": "a"}},
            }}),
            201,
            &[],
        ),
        evict(
            "",
            "p",
            429,
            &[(
                "/details/causes/0/message",
                "The disruption budget b is still being processed by the server.",
            )],
        ),
        step("PATCH", format!("{BUDGETS}/b/status"), status(0), 200, &[]),
        evict(
            "",
            "p",
            429,
            &[(
                "/details/causes/0/message",
                "The disruption budget b needs 1 healthy pods and has 1 currently",
            )],
        ),
        step("PATCH", format!("{BUDGETS}/b/status"), status(1), 200, &[]),
        evict("?dryRun=All", "p", 201, &[]),
        evict("", "p", 201, &[]),
        step(
            "GET",
            format!("{BUDGETS}/b"),
            Value::Null,
            200,
            &[("/status/disruptionsAllowed", "0"), ("/status/conditions/0/reason", "InsufficientPods")],
        ),
        step(
            "GET",
            format!("{PODS}/p"),
            Value::Null,
            200,
            &[
                ("/metadata/deletionGracePeriodSeconds", "30"),
                ("/status/conditions/1/reason", "EvictionByEvictionAPI"),
            ],
        ),
    ]);
}

#[test]
fn bindings_need_a_pod_and_a_node() {
    let to = |name: &str, target: Value| json!({"metadata": {"name": name}, "target": target});
    let path = format!("{PODS}/p/binding");
    run(vec![
        step("POST", PODS, pod("p", ""), 201, &[]),
        step("POST", &*path, to("p", json!({})), 500, &[("/message", "target.name: Required value")]),
        step(
            "POST",
            &*path,
            to("p", json!({"kind": "Pod", "name": "x"})),
            500,
            &[(
                "/message",
                "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"",
            )],
        ),
        step(
            "POST",
            &*path,
            to("q", json!({"name": "x"})),
            400,
            &[("/message", "name in URL does not match name in Binding object")],
        ),
        step("POST", "/api/v1/namespaces/default/bindings", to("p", json!({"name": "x"})), 201, &[]),
        step("GET", format!("{PODS}/p"), Value::Null, 200, &[("/spec/nodeName", "x")]),
    ]);
}

#[test]
fn requests_to_a_kubelet_fail_without_one() {
    let two = json!({"metadata": {"name": "two"}, "spec": {"nodeName": "none", "containers": [
        {"name": "c", "image": "i"}, {"name": "d", "image": "i"},
    ]}});
    run(vec![
        step("POST", PODS, pod("p", ""), 201, &[]),
        step("POST", PODS, two, 201, &[]),
        step("GET", format!("{PODS}/p/log"), Value::Null, 204, &[]),
        step(
            "GET",
            format!("{PODS}/p/log?tailLines=-1"),
            Value::Null,
            422,
            &[("/details/kind", "PodLogOptions")],
        ),
        step(
            "GET",
            format!("{PODS}/p/exec?command=ls"),
            Value::Null,
            400,
            &[("/message", "pod p does not have a host assigned")],
        ),
        step("POST", format!("{PODS}/p/attach"), Value::Null, 400, &[]),
        step("GET", format!("{PODS}/p/proxy/x/y"), Value::Null, 400, &[("/message", "address not allowed")]),
        step(
            "GET",
            format!("{PODS}/two/log"),
            Value::Null,
            400,
            &[("/message", "a container name must be specified for pod two, choose one of: [c d]")],
        ),
        step("GET", format!("{PODS}/two/log?container=c"), Value::Null, 404, &[("/details/name", "none")]),
        step(
            "GET",
            format!("{MAPS}/a%25b"),
            Value::Null,
            400,
            &[("/message", "Name parameter invalid: \"a%b\": may not contain '%'")],
        ),
    ]);
}

#[test]
fn malformed_options_are_rejected() {
    for (query, code, message) in [
        ("limit=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("timeoutSeconds=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("labelSelector=,", 400, "found ',', expected: !, identifier, or 'end of string'"),
        (
            "continue=zzz",
            400,
            "invalid continue token: continue key is not valid: invalid character 'Ï' looking for beginning of value",
        ),
        (
            "continue=eyJ2Ijoibm9wZSJ9",
            400,
            "invalid continue token: continue key is not valid: server does not recognize this encoded version nope",
        ),
        (
            "watch=1&continue=x",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is \
             forbidden when continue is provided",
        ),
    ] {
        let run = world::simulate(5, |world| async move {
            let store = Arc::new(store::Memory::new());
            let server = Server::start(&world, store, Config::default()).await.unwrap();
            send_with(&server, "GET", &format!("{MAPS}?{query}"), JSON, "").await
        });
        let (found, answer) = run.unwrap().output;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!((found, answer["message"].as_str().unwrap()), (code, message), "{query}");
    }
}
