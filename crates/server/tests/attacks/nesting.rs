//! Objects nested deeper than the decoder reads: rejected by every verb, so that every stored object can be
//! read and deleted.

use crate::client::{send, send_with};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;
use world::World;

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const PODS: &str = "/api/v1/namespaces/default/pods";
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// Around the limit of this server, around that of serde_json, and far beyond both.
const DEPTHS: [usize; 14] = [1, 50, 100, 112, 114, 115, 116, 118, 119, 124, 127, 140, 400, 3000];

async fn start(world: &World) -> Server {
    let store = Arc::new(store::Memory::new());
    let server = Server::start(world, store, Config::default()).await.unwrap();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]);
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = send(&server, "POST", path, definition.to_string()).await;
    assert_eq!(code, 201, "{answer}");
    server
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn objects(depth: usize) -> String {
    nested("{\"a\":", "}", depth)
}

fn lists(depth: usize) -> String {
    nested("[", "]", depth)
}

fn thing(name: &str, deep: &str) -> String {
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"{name}","finalizers":["example.com/hold"]}},"nested":{deep}}}"#
    )
}

/// The object must be readable in every form, keep its finalizer, and be deleted when that is removed.
async fn assert_readable_and_deletable(server: &Server, path: &str, what: &str) {
    let (code, found) = send(server, "GET", path, "").await;
    assert_eq!(code, 200, "{what}: {found}");
    assert_eq!(found["metadata"]["finalizers"][0], "example.com/hold", "{what}");
    for accept in ["application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"] {
        let mut request = Request::get(path).header(header::ACCEPT, accept);
        let caller = server::Caller::known("admin", "", vec!["system:masters".to_owned()]);
        request.extensions_mut().unwrap().insert(caller);
        let response = server.handle(request.body(Full::new(Bytes::new())).unwrap()).await;
        assert_eq!(response.status(), 200, "{what} as {accept}");
    }
    let (code, marked) = send(server, "DELETE", path, "").await;
    assert_eq!((code, marked["metadata"]["deletionTimestamp"].is_string()), (200, true), "{what}: {marked}");
    let (code, still) = send(server, "GET", path, "").await;
    assert_eq!(code, 200, "{what}: the finalizer holds it: {still}");
    let release = r#"{"metadata":{"finalizers":null}}"#;
    let (code, _) = send_with(server, "PATCH", path, "application/merge-patch+json", release).await;
    assert_eq!(code, 200, "{what}: released");
    assert_eq!(send(server, "GET", path, "").await.0, 404, "{what}: gone");
}

#[test]
fn custom_objects_of_any_depth_are_rejected_or_readable() {
    let run = world::simulate(1, |world| async move {
        let server = start(&world).await;
        let path = format!("{THINGS}/t");
        for depth in DEPTHS {
            for deep in [objects(depth), lists(depth)] {
                let whole = thing("t", &deep);
                let patch = format!("{{\"nested\":{deep}}}");
                let add = format!(r#"[{{"op":"add","path":"/nested","value":{deep}}}]"#);
                for (method, at, content_type, body) in [
                    ("POST", THINGS, JSON, &whole),
                    ("POST", THINGS, "application/yaml", &whole),
                    ("PATCH", &*format!("{path}?fieldManager=m"), APPLY, &whole),
                    ("PUT", &path, JSON, &whole),
                    ("PATCH", &path, "application/merge-patch+json", &patch),
                    ("PATCH", &path, "application/json-patch+json", &add),
                ] {
                    let what = format!("{method} {content_type} {depth} {}", &deep[..1]);
                    let mut body = body.clone();
                    if !(method == "POST" || content_type == APPLY) {
                        let (code, made) = send(&server, "POST", THINGS, thing("t", "1")).await;
                        assert_eq!(code, 201, "{what}: {made}");
                        let seen = format!(
                            r#""resourceVersion":{},"finalizers""#,
                            made["metadata"]["resourceVersion"]
                        );
                        body = body.replace(r#""finalizers""#, &seen);
                    }
                    let (code, answer) = send_with(&server, method, at, content_type, body).await;
                    let answer = String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
                    // Beyond 110 few levels are left for the object around it and its managedFields.
                    assert!(code < 300 || (code < 500 && depth > 110), "{what}: {code} {answer}");
                    assert!(code >= 300 || depth < 120, "{what}: {code}");
                    if send(&server, "GET", &path, "").await.0 == 200 {
                        assert_readable_and_deletable(&server, &path, &what).await;
                    }
                }
            }
        }
    });
    run.unwrap();
}

#[test]
fn pods_whose_managed_fields_nest_can_still_be_deleted() {
    let run = world::simulate(1, |world| async move {
        let server = start(&world).await;
        for depth in DEPTHS {
            let fields = nested("{\"f:a\":", "}", depth).replace('1', "{}");
            let entry = format!(
                r#"{{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
            );
            let pod = format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","finalizers":["example.com/hold"],"managedFields":[{entry}]}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#
            );
            let what = format!("managed fields {depth} deep");
            let (code, answer) = send(&server, "POST", PODS, pod).await;
            assert!(code < 500, "{what}: {answer}");
            if code < 300 {
                assert_readable_and_deletable(&server, &format!("{PODS}/p"), &what).await;
            }
        }
    });
    run.unwrap();
}

#[test]
fn patches_that_nest_an_object_in_itself_stop_at_the_limit() {
    let run = world::simulate(1, |world| async move {
        let server = start(&world).await;
        let path = format!("{THINGS}/t");
        send(&server, "POST", THINGS, thing("t", &objects(10))).await;
        let mut refused = 0;
        for _ in 0..70 {
            let copy = r#"[{"op":"copy","from":"/nested","path":"/nested/a/a"}]"#;
            let (code, _) = send_with(&server, "PATCH", &path, "application/json-patch+json", copy).await;
            refused += usize::from(code >= 300);
            assert!(code < 500, "{code}");
            let (code, found) = send(&server, "GET", &path, "").await;
            assert_eq!((code, found["kind"].as_str()), (200, Some("Thing")));
        }
        assert!(refused > 0, "it cannot grow for ever");
        assert_readable_and_deletable(&server, &path, "folded").await;
    });
    run.unwrap();
}

#[test]
fn defaults_cannot_nest_an_object_beyond_the_limit() {
    let run = world::simulate(1, |world| async move {
        let server = start(&world).await;
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        // The default nests 100 levels, and lies 40 deep in the object.
        let mut leaf = any.clone();
        leaf["default"] = serde_json::from_str(&objects(100)).unwrap();
        let schema = (0..30)
            .fold(leaf, |below, _| json!({"type": "object", "properties": {"p": below}, "default": {}}));
        let names =
            json!({"plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList"});
        let root = json!({"type": "object", "properties": {"spec": schema}});
        let versions =
            json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}}]);
        let definition = json!({
            "metadata": {"name": "others.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
        });
        let (code, answer) = send(
            &server,
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition.to_string(),
        )
        .await;
        assert!(code < 500, "{answer}");
        if code < 300 {
            let path = "/apis/example.com/v1/namespaces/default/others";
            let body = r#"{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"o"}}"#;
            let (code, answer) = send(&server, "POST", path, body).await;
            assert_eq!(code, 400, "{answer}");
            let (code, _) = send(&server, "GET", &format!("{path}/o"), "").await;
            assert_eq!(code, 404);
        }
    });
    run.unwrap();
}

#[test]
fn deeply_nested_options_and_reviews_cause_no_server_error() {
    let run = world::simulate(1, |world| async move {
        let server = start(&world).await;
        let value: Value = json!({"kind": "DeleteOptions"});
        send(&server, "POST", THINGS, thing("t", "1")).await;
        for depth in [10, 121, 128, 500, 9_000, 100_000] {
            for deep in [objects(depth), lists(depth)] {
                let options = format!(r#"{{"kind":{},"x":{deep}}}"#, value["kind"]);
                let review = format!(
                    r#"{{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","x":{deep}}}"#
                );
                for (method, path, body) in [
                    ("DELETE", format!("{THINGS}/none"), &options),
                    ("DELETE", format!("{PODS}?limit=1"), &options),
                    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(), &review),
                ] {
                    let (code, answer) = send(&server, method, &path, body.clone()).await;
                    assert!(code < 500, "{method} {path} {depth}: {code} {answer}");
                }
            }
        }
    });
    run.unwrap();
}
