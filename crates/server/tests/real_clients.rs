//! Requests of real clients and official suites, each found by running them.

use crate::{
    client::{send, send_raw, send_with},
    socket::Lab,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use schema::proto::{self, Envelope};
use serde_json::{Value, json};
use server::{Config, Server, accept::Limits};
use std::sync::Arc;
use world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn with_server<F>(story: impl FnOnce(World, Server) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    world::simulate(7, |world| async move {
        let config = Config { advertised: Some(([192, 0, 2, 1], 6443).into()), ..Config::default() };
        let server = Server::start(&world, Arc::new(store::Memory::new()), config).await.unwrap();
        story(world, server).await;
    })
    .unwrap();
}

/// `things.example.com`, which preserves unknown fields, in these versions.
async fn define(server: &Server, method: &str, versions: &[&str]) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let last = versions.last().unwrap();
    let versions = versions
        .iter()
        .map(|name| json!({"name": name, "served": true, "storage": name == last, "schema": schema}));
    let mut definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": versions.collect::<Vec<_>>(),
        },
    });
    let path = match method {
        "POST" => DEFINITIONS.to_owned(),
        _ => {
            let path = format!("{DEFINITIONS}/things.example.com");
            let (_, current) = send(server, "GET", &path, "").await;
            definition["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
            path
        }
    };
    let (code, answer) = send(server, method, &path, definition.to_string()).await;
    assert!(code < 300, "{answer}");
}

#[test]
fn custom_objects_with_members_before_metadata_are_answered_as_json() {
    with_server(|_, server| async move {
        define(&server, "POST", &["v1"]).await;
        let things = "/apis/example.com/v1/things";
        for (at, early) in [
            json!({"a": {"b": 1}}),
            json!({"data": {"x": {"metadata": {"name": "no"}}}, "binaryData": null}),
            json!({"aa": [{"uid": "u"}], "ab": 7, "ac": true, "\"}": "\\", "metadat": {}}),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("t{at}");
            let mut thing = early.clone();
            thing["apiVersion"] = "example.com/v1".into();
            thing["kind"] = "Thing".into();
            thing["metadata"] = json!({"name": name});
            let (code, made) = send_raw(&server, "POST", things, thing.to_string()).await;
            assert_eq!(code, 201);
            let made: Value = serde_json::from_slice(&made).expect("the answer to a create is JSON");
            assert!(made["metadata"]["resourceVersion"].is_string(), "{made}");
            let (_, read) = send_raw(&server, "GET", &format!("{things}/{name}"), "").await;
            assert_eq!(serde_json::from_slice::<Value>(&read).unwrap(), made);
            let (_, list) = send_raw(&server, "GET", things, "").await;
            let list: Value = serde_json::from_slice(&list).expect("a list is JSON");
            assert_eq!(list["items"][at], made);
            let watch = format!("{things}?watch=true&resourceVersion=0&timeoutSeconds=1");
            let (_, events) = send_raw(&server, "GET", &watch, "").await;
            let events = serde_json::Deserializer::from_slice(&events).into_iter::<Value>();
            let events: Vec<Value> = events.map(|event| event.expect("events are JSON")).collect();
            assert_eq!(events[at]["object"], made);
        }
    });
}

#[test]
fn typed_clients_delete_with_options_in_the_version_of_the_group() {
    with_server(|_, server| async move {
        let types = kinds::types();
        let (of, _) = types.named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").unwrap();
        let options =
            proto::encode(types, of, &json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0}));
        let class = json!({"metadata": {"name": "fast"}, "provisioner": "example.com/disks"}).to_string();
        let classes = "/apis/storage.k8s.io/v1/storageclasses";
        let protobuf = "application/vnd.kubernetes.protobuf";
        for (version, kind, code) in [
            ("storage.k8s.io/v1", "DeleteOptions", 200),
            ("apps/v1", "DeleteOptions", 200),
            ("v1", "DeleteOptions", 200),
            ("meta.k8s.io/v1", "DeleteOptions", 200),
            ("", "", 200),
            ("storage.k8s.io/v1", "StorageClass", 400),
        ] {
            send(&server, "POST", classes, class.clone()).await;
            let body = Envelope::new(version, kind, &options).seal();
            let (found, answer) =
                send_with(&server, "DELETE", &format!("{classes}/fast"), protobuf, body).await;
            assert_eq!(found, code, "{version} {kind}: {}", String::from_utf8_lossy(&answer));
        }
    });
}

#[test]
fn an_apply_that_removes_the_last_finalizer_deletes_the_object() {
    with_server(|_, server| async move {
        let maps = "/api/v1/namespaces/default/configmaps";
        let applied = |finalizers: Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": finalizers}})
                .to_string()
        };
        let path = format!("{maps}/held?fieldManager=operator");
        let (code, _) = send_with(&server, "PATCH", &path, APPLY, applied(json!(["example.com/hold"]))).await;
        assert_eq!(code, 201);
        send(&server, "DELETE", &path, "").await;
        let (code, last) = send_with(&server, "PATCH", &path, APPLY, applied(json!([]))).await;
        let last: Value = serde_json::from_slice(&last).unwrap();
        assert_eq!((code, last["metadata"].get("finalizers")), (200, None), "{last}");
        let (code, _) = send(&server, "GET", &path, "").await;
        assert_eq!(code, 404, "nothing holds it any more");
    });
}

// Kubernetes: storage version migrations rely on both.
#[test]
fn owners_in_a_removed_version_fail_applies_and_are_dropped_by_patches() {
    with_server(|_, server| async move {
        define(&server, "POST", &["v1", "v2"]).await;
        let path = |version: &str| format!("/apis/example.com/{version}/things/t?fieldManager=m");
        let thing = |version: &str, value: i64| {
            json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": {"name": "t"}, "x": value})
                .to_string()
        };
        let (code, _) = send_with(&server, "PATCH", &path("v1"), APPLY, thing("v1", 1)).await;
        assert_eq!(code, 201);
        let stored = json!({"status": {"storedVersions": ["v2"]}}).to_string();
        let status = format!("{DEFINITIONS}/things.example.com/status");
        send_with(&server, "PATCH", &status, MERGE, stored).await;
        define(&server, "PUT", &["v2"]).await;
        let (code, refused) = send_with(&server, "PATCH", &path("v2"), APPLY, thing("v2", 2)).await;
        let refused: Value = serde_json::from_slice(&refused).unwrap();
        let message = "request to convert CR to an invalid group/version: example.com/v1";
        assert_eq!((code, refused["message"].as_str()), (500, Some(message)), "{refused}");
        let (code, patched) = send_with(&server, "PATCH", &path("v2"), MERGE, r#"{"y":1}"#).await;
        let patched: Value = serde_json::from_slice(&patched).unwrap();
        assert_eq!((code, patched["metadata"].get("managedFields")), (200, None), "{patched}");
    });
}

#[test]
fn a_review_has_no_table() {
    with_server(|_, server| async move {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        for (accept, code) in [(table.to_owned(), 406), (format!("{table},application/json"), 201)] {
            let body =
                json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}).to_string();
            let mut request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
                .header(http::header::ACCEPT, &accept)
                .body(http_body_util::Full::new(Bytes::from(body)))
                .unwrap();
            let admin = server::Caller::known("admin", "", vec!["system:masters".to_owned()]);
            request.extensions_mut().insert(admin);
            assert_eq!(server.handle(request).await.status().as_u16(), code, "{accept}");
        }
    });
}

#[test]
fn head_over_http2_is_answered_without_data() {
    world::run(|world| async move {
        let lab = Lab::start(&world, Limits::default()).await;
        let stream = TokioIo::new(lab.tls("h2").await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        let _connection = world.spawn("connection", async move { drop(connection.await) });
        for path in ["/healthz", "/version", "/apis/example.com/v1/things", "/api/v1/namespaces"] {
            let request = http::Request::head(format!("https://localhost{path}"))
                .header(http::header::AUTHORIZATION, "Bearer t0ken")
                .body(Empty::<Bytes>::new())
                .unwrap();
            let answer = sender.send_request(request).await.unwrap();
            let body = answer.into_body().collect().await.expect("no DATA frame, which HTTP/2 forbids here");
            assert!(body.to_bytes().is_empty(), "{path}");
        }
    })
    .unwrap();
}

#[test]
fn a_config_map_in_kube_system_has_the_start_of_token_tracking() {
    with_server(|world, server| async move {
        let path =
            "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
        let today = api::time::Time::from(world.wall()).to_string()[..10].to_owned();
        for _ in 0..2 {
            let (code, map) = send(&server, "GET", path, "").await;
            assert_eq!((code, map["data"]["since"].as_str()), (200, Some(today.as_str())), "{map}");
            // It is recreated.
            send(&server, "DELETE", path, "").await;
        }
    });
}

#[test]
fn every_value_of_dry_run_must_be_known() {
    with_server(|_, server| async move {
        let maps = "/api/v1/namespaces/default/configmaps";
        send(&server, "POST", maps, r#"{"metadata":{"name":"kept"}}"#).await;
        let path = format!("{maps}/kept");
        for (query, body, message) in [
            ("dryRun=All&dryRun=Some", "", r#"Unsupported value: ["All","Some"]"#),
            ("dryRun=Some", "{}", r#"Unsupported value: ["Some"]"#),
            ("dryRun=Some", r#"{"dryRun":["All"]}"#, r#"Unsupported value: ["All","Some"]"#),
        ] {
            let (code, answer) = send(&server, "DELETE", &format!("{path}?{query}"), body).await;
            assert_eq!(code, 422, "{answer}");
            assert!(answer["message"].as_str().unwrap().contains(message), "{answer}");
        }
        for (method, body) in
            [("POST", r#"{"metadata":{"name":"new"}}"#), ("PUT", r#"{"metadata":{"name":"kept"}}"#)]
        {
            let path = if method == "POST" { maps } else { &path };
            let (code, answer) = send(&server, method, &format!("{path}?dryRun=All&dryRun=Some"), body).await;
            assert_eq!(code, 422, "{answer}");
        }
        assert_eq!(send(&server, "GET", &path, "").await.0, 200, "nothing was deleted");
    });
}

#[test]
fn finalizers_of_roles_and_bindings_have_qualified_names() {
    with_server(|_, server| async move {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role =
            |finalizers: Value| json!({"metadata": {"name": "r", "finalizers": finalizers}}).to_string();
        let (code, answer) =
            send(&server, "POST", &format!("{rbac}/clusterroles"), role(json!(["short"]))).await;
        let problem = "name is neither a standard finalizer name nor is it fully qualified";
        assert!(code == 422 && answer["message"].as_str().unwrap().contains(problem), "{answer}");
        let (code, _) =
            send(&server, "POST", &format!("{rbac}/clusterroles"), role(json!(["example.com/f"]))).await;
        assert_eq!(code, 201);
        let (code, answer) =
            send(&server, "PUT", &format!("{rbac}/clusterroles/r"), role(json!(["short"]))).await;
        assert!(code == 422 && answer["message"].as_str().unwrap().contains(problem), "{answer}");
    });
}

#[test]
fn an_apply_with_a_malformed_resource_version_creates_nothing() {
    with_server(|_, server| async move {
        let path = "/api/v1/namespaces/default/configmaps/new?fieldManager=m";
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "resourceVersion": "/x"},
        });
        let (code, answer) = send_with(&server, "PATCH", path, APPLY, body.to_string()).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let message = r#"strconv.ParseUint: parsing "/x": invalid syntax"#;
        assert_eq!((code, answer["message"].as_str()), (500, Some(message)), "{answer}");
        assert_eq!(send(&server, "GET", path, "").await.0, 404);
    });
}

#[test]
fn removing_the_last_finalizer_answers_with_the_previous_resource_version() {
    with_server(|_, server| async move {
        let path = "/api/v1/namespaces/default/configmaps/held";
        let map = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}).to_string();
        send(&server, "POST", "/api/v1/namespaces/default/configmaps", map).await;
        let (_, marked) = send(&server, "DELETE", path, "").await;
        let (_, last) = send_with(&server, "PATCH", path, MERGE, r#"{"metadata":{"finalizers":null}}"#).await;
        let last: Value = serde_json::from_slice(&last).unwrap();
        assert_eq!(last["metadata"]["resourceVersion"], marked["metadata"]["resourceVersion"], "{last}");
        assert_eq!(send(&server, "GET", path, "").await.0, 404);
    });
}

#[test]
fn replacing_a_service_by_its_manifest_changes_nothing() {
    with_server(|_, server| async move {
        let services = "/api/v1/namespaces/default/services";
        for kind in ["ClusterIP", "NodePort", "LoadBalancer"] {
            let name = kind.to_lowercase();
            let service =
                json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}})
                    .to_string();
            let (code, made) = send(&server, "POST", services, service.clone()).await;
            assert_eq!(code, 201, "{made}");
            let (code, put) = send(&server, "PUT", &format!("{services}/{name}"), service).await;
            assert_eq!(code, 200, "{put}");
            assert_eq!(
                put["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"],
                "{kind}: {put}"
            );
        }
    });
}
