//! Writes through subresources: the fields that each changes, and their owners.

use crate::client::{send, send_with};
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Runs a test on its own control plane.
fn with_server<F: Future<Output = ()>>(act: impl FnOnce(Server) -> F) {
    let run = world::simulate(9, |world| async move {
        let store = Arc::new(store::Memory::new());
        act(Server::start(&world, store, Config::default()).await.unwrap()).await;
    });
    run.unwrap();
}

/// Creates an object; it must succeed.
async fn create(server: &Server, at: &str, object: &Value) -> Value {
    let (code, made) = send(server, "POST", at, object.to_string()).await;
    assert_eq!(code, 201, "{at}: {made}");
    made
}

async fn patch(server: &Server, path: &str, sort: &str, patch: &Value) -> (u16, Value) {
    let (code, body) = send_with(server, "PATCH", path, sort, patch.to_string()).await;
    (code, serde_json::from_slice(&body).unwrap())
}

/// `manager/subresource operation: fields` of each owner.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let show = |entry: &Value| {
        let (manager, through) = (word(entry, "manager"), word(entry, "subresource"));
        format!("{manager}/{through} {}: {}", word(entry, "operation"), entry["fieldsV1"])
    };
    entries.iter().map(show).collect()
}

fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap_or_default()
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }})
}

#[test]
fn a_scale_makes_its_manager_the_owner_of_replicas() {
    with_server(|server| async move {
        let web = format!("{DEPLOYMENTS}/web");
        let scale = format!("{web}/scale");
        let apply = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": deployment()["spec"],
        });
        let (code, made) = patch(&server, &format!("{web}?fieldManager=one"), APPLY, &apply).await;
        assert_eq!(code, 201, "{made}");
        assert!(owners(&made)[0].contains("f:replicas"), "{made}");

        let five = json!({"spec": {"replicas": 5}});
        let (code, scaled) = patch(&server, &format!("{scale}?fieldManager=two"), MERGE, &five).await;
        assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(5)), "{scaled}");
        assert_eq!(scaled["status"], json!({"replicas": 0, "selector": "a=b"}));
        assert!(scaled["metadata"].get("managedFields").is_none(), "a scale does not show who owns it");
        let (_, read) = send(&server, "GET", &web, "").await;
        assert_eq!(read["metadata"]["generation"], 2);
        let all = owners(&read);
        assert!(!all[0].contains("f:replicas"), "{all:?}");
        assert_eq!(all[1], r#"two/scale Update: {"f:spec":{"f:replicas":{}}}"#, "{all:?}");

        let (code, conflict) = patch(&server, &format!("{web}?fieldManager=one"), APPLY, &apply).await;
        assert_eq!((code, &conflict["reason"]), (409, &json!("Conflict")), "{conflict}");
        assert!(message(&conflict).contains(".spec.replicas"), "{conflict}");

        // Apply works through the scale, too.
        let wanted = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}});
        let (code, conflict) = patch(&server, &format!("{scale}?fieldManager=three"), APPLY, &wanted).await;
        assert_eq!(code, 409, "{conflict}");
        let forced = format!("{scale}?fieldManager=three&force=true");
        let (code, scaled) = patch(&server, &forced, APPLY, &wanted).await;
        assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(3)), "{scaled}");
        let (_, read) = send(&server, "GET", &web, "").await;
        let all = owners(&read);
        assert!(all.contains(&r#"three/scale Apply: {"f:spec":{"f:replicas":{}}}"#.to_owned()), "{all:?}");
        assert!(!all.iter().any(|owner| owner.starts_with("two/")), "{all:?}");
    });
}

#[test]
fn an_invalid_scale_gets_the_texts_of_kube_apiserver() {
    with_server(|server| async move {
        create(&server, DEPLOYMENTS, &deployment()).await;
        let scale = format!("{DEPLOYMENTS}/web/scale");
        let body = |more: Value| {
            let mut scale =
                json!({"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1}});
            for (name, value) in more.as_object().unwrap() {
                scale["metadata"][name] = value.clone();
            }
            scale.to_string()
        };
        for (more, code, said) in [
            (
                json!({"name": "other"}),
                400,
                "the name of the object (other) does not match the name on the URL (web)",
            ),
            (
                json!({"uid": "x"}),
                409,
                "Operation cannot be fulfilled on deployments.apps \"web\": StorageError: invalid object, Code: 4, Key: \
                 /registry/deployments/default/web, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed",
            ),
            (
                json!({"resourceVersion": "1"}),
                409,
                "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified",
            ),
            (json!({}), 200, ""),
        ] {
            let (found, answer) = send(&server, "PUT", &scale, body(more.clone())).await;
            assert_eq!(found, code, "{more}: {answer}");
            assert!(message(&answer).starts_with(said), "{more}: {answer}");
        }
    });
}

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

#[test]
fn approval_and_status_write_only_their_own_fields() {
    with_server(|server| async move {
        let request = json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {
            "request": CERTIFICATE_REQUEST, "signerName": "example.com/signer", "usages": ["client auth"],
        }});
        let made = create(&server, REQUESTS, &request).await;
        assert_eq!(made["spec"]["username"], "admin");
        assert_eq!(made["status"], json!({}));
        let condition = json!({"type": "Approved", "status": "True", "reason": "R", "message": "m"});
        let both = json!({"status": {"conditions": [condition], "certificate": "bm9uZQ=="}});

        let (code, approved) =
            patch(&server, &format!("{REQUESTS}/a/approval?fieldManager=one"), MERGE, &both).await;
        assert_eq!(code, 200, "{approved}");
        assert!(approved["status"].get("certificate").is_none(), "{approved}");
        let found = &approved["status"]["conditions"][0];
        assert!(found["lastUpdateTime"].is_string() && found["lastTransitionTime"].is_string(), "{approved}");
        assert!(owners(&approved).iter().any(|owner| owner.starts_with("one/approval Update")), "{approved}");

        // A signer cannot change the approval.
        let denied =
            json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "other"}]}});
        let (code, same) = patch(&server, &format!("{REQUESTS}/a/status"), MERGE, &denied).await;
        assert_eq!((code, &same["status"]["conditions"]), (200, &approved["status"]["conditions"]), "{same}");
        // Neither can an update.
        let (code, same) = patch(
            &server,
            &format!("{REQUESTS}/a"),
            MERGE,
            &json!({"status": null, "spec": {"usages": ["any"]}}),
        )
        .await;
        assert_eq!(
            (code, &same["status"], &same["spec"]),
            (200, &approved["status"], &approved["spec"]),
            "{same}"
        );
        let gone = json!({"status": {"conditions": []}});
        let (code, refused) = patch(&server, &format!("{REQUESTS}/a/approval"), MERGE, &gone).await;
        assert_eq!(code, 422, "{refused}");
        assert!(
            message(&refused).contains("updates may not remove a condition of type \"Approved\""),
            "{refused}"
        );
    });
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod() -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    ]}})
}

#[test]
fn ephemeral_containers_are_added_only_through_their_subresource() {
    with_server(|server| async move {
        create(&server, PODS, &pod()).await;
        let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}], "nodeName": "n"}});
        let (code, refused) = patch(&server, &format!("{PODS}/a"), STRATEGIC, &debug).await;
        assert_eq!(code, 422, "{refused}");
        let door = format!("{PODS}/a/ephemeralcontainers");
        let (code, helped) = patch(&server, &format!("{door}?fieldManager=one"), STRATEGIC, &debug).await;
        assert_eq!(code, 200, "{helped}");
        assert_eq!(helped["spec"]["ephemeralContainers"][0]["terminationMessagePolicy"], "File", "{helped}");
        assert!(helped["spec"].get("nodeName").is_none(), "nothing else comes through: {helped}");
        assert_eq!(helped["metadata"]["generation"], 2, "{helped}");
        assert!(owners(&helped).iter().any(|owner| owner.starts_with("one/ephemeralcontainers")), "{helped}");
        let other = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "other"}]}});
        let (code, refused) = patch(&server, &door, STRATEGIC, &other).await;
        assert_eq!(code, 422, "{refused}");
        assert!(
            message(&refused).contains("existing ephemeral containers \"d\" may not be changed"),
            "{refused}"
        );
        let none = json!({"spec": {"ephemeralContainers": null}});
        let (code, refused) = patch(&server, &door, MERGE, &none).await;
        assert_eq!(code, 422, "{refused}");
        assert!(
            message(&refused).contains("existing ephemeral containers \"d\" may not be removed"),
            "{refused}"
        );
    });
}

#[test]
fn the_claim_of_extended_resources_names_requests_of_the_pod() {
    with_server(|server| async move {
        let requests = json!({"requests": {"acme.io/gpu": "1"}, "limits": {"acme.io/gpu": "1"}});
        let containers = json!([{"name": "c", "image": "i", "resources": requests}]);
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
        create(&server, "/api/v1/namespaces/default/pods", &pod).await;
        let mapping = |container: &str, resource: &str, request: &str| json!({"containerName": container, "resourceName": resource, "requestName": request});
        let right = mapping("c", "acme.io/gpu", "r");
        let at = "status.extendedResourceClaimStatus";
        let cases = [
            (
                json!({}),
                vec![
                    format!("{at}.requestMappings: Required value: at least one request mapping is required"),
                    format!("{at}.resourceClaimName: Required value"),
                ],
            ),
            (
                json!({"resourceClaimName": "x", "requestMappings": [mapping("d", "acme.io/gpu", "r")]}),
                vec![format!("{at}.requestMappings[0].containerName: Invalid value: \"d\"")],
            ),
            (
                json!({"resourceClaimName": "x", "requestMappings": [mapping("c", "cpu", "r")]}),
                vec![format!("{at}.requestMappings[0].resourceName: Invalid value: \"cpu\"")],
            ),
            (
                json!({"resourceClaimName": "A", "requestMappings": [mapping("c", "acme.io/gpu", "R")]}),
                vec![
                    format!("{at}.requestName: Invalid value: \"R\""),
                    format!("{at}.resourceClaimName: Invalid value: \"A\""),
                ],
            ),
            (
                json!({"resourceClaimName": "x", "requestMappings": [right, right]}),
                vec![format!("{at}.requestMappings[1].requestName: Duplicate value: \"r\"")],
            ),
            (json!({"resourceClaimName": "x", "requestMappings": [right]}), Vec::new()),
        ];
        for (claim, expected) in cases {
            let status = json!({"status": {"extendedResourceClaimStatus": claim}});
            let (code, answer) =
                patch(&server, "/api/v1/namespaces/default/pods/p/status", MERGE, &status).await;
            assert_eq!(code, if expected.is_empty() { 200 } else { 422 }, "{claim}: {answer}");
            for expected in expected {
                assert!(message(&answer).contains(&expected), "{claim}: {expected:?} is not in {answer}");
            }
        }
    });
}

#[test]
fn a_pod_is_resized_only_through_its_subresource() {
    with_server(|server| async move {
        let made = create(&server, PODS, &pod()).await;
        let larger = json!({"spec": {"containers": [{"name": "c", "image": "j", "resources": {"requests": {"cpu": "2"}}}]}});
        let (code, refused) = patch(&server, &format!("{PODS}/a"), STRATEGIC, &larger).await;
        assert_eq!(code, 422, "{refused}");
        let door = format!("{PODS}/a/resize?fieldManager=one");
        let (code, resized) = patch(&server, &door, STRATEGIC, &larger).await;
        assert_eq!(code, 200, "{resized}");
        let container = &resized["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"], json!({"cpu": "2", "memory": "1Gi"}), "{resized}");
        assert_eq!(container["image"], made["spec"]["containers"][0]["image"], "nothing else comes through");
        assert_eq!(resized["metadata"]["generation"], 2, "{resized}");
        let owned = owners(&resized);
        assert!(
            owned.iter().any(|owner| owner.starts_with("one/resize") && owner.contains("f:cpu")),
            "{owned:?}"
        );
        let best_effort = json!({"spec": {"containers": [{"name": "c", "resources": null}]}});
        let (code, refused) = patch(&server, &door, STRATEGIC, &best_effort).await;
        assert_eq!(code, 422, "{refused}");
    });
}

#[test]
fn spec_finalizers_are_removed_only_through_finalize() {
    with_server(|server| async move {
        let made = create(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "x"}})).await;
        assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
        let free = json!({"spec": {"finalizers": []}});
        let (code, held) = patch(&server, "/api/v1/namespaces/x", MERGE, &free).await;
        assert_eq!((code, &held["spec"]["finalizers"]), (200, &json!(["kubernetes"])), "{held}");
        let mut put = made.clone();
        put["spec"]["finalizers"] = json!([]);
        put["status"]["phase"] = json!("Terminating");
        put["metadata"]["resourceVersion"] = json!("");
        let (code, free) = send(&server, "PUT", "/api/v1/namespaces/x/finalize", put.to_string()).await;
        assert_eq!(code, 200, "{free}");
        assert_eq!((&free["spec"], &free["status"]["phase"]), (&json!({}), &json!("Active")), "{free}");
        let (code, _) = send(
            &server,
            "PUT",
            "/api/v1/namespaces/none/finalize",
            put.to_string().replace("\"x\"", "\"none\""),
        )
        .await;
        assert_eq!(code, 404);
        let (code, _) = patch(&server, "/api/v1/namespaces/x/finalize", MERGE, &json!({})).await;
        assert_eq!(code, 405, "it is only put");
    });
}

/// A certificate request for `CN=a`.
const CERTIFICATE_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQ0tJbFpGQnJId3dCM21BNlMzYjlpWExFR2ZjZmdaNDRFb1BuK2I4RXB4bnYrSXhjN1Zsb3lrK2NIc0hleEZlCllDWnpWWDF5UklhKytteXhSSmRZd25lZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUEzQlB1YWR1QmpEVUgKejdhMEJ5ZVpscHpwYUpuT0szN1NEYzUwZVRmbUdPVUNJRFBaR0NuVitMTDNnWHJrbkZsWEdqekk4OTRCaHdIcQpVeXJJWDc0anV1Um4KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
