//! Reads with invalid paths, methods, options and media types: the texts of kube-apiserver.

use crate::client::send;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Caller, Config, Server};
use std::sync::Arc;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Status code and text of a response: the message of a Status, or the whole body.
async fn ask(server: &Server, method: &str, path: &str, accept: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
    let mut request = request.body(Full::new(Bytes::new())).unwrap();
    request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
    let response = server.handle(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = status["message"].as_str().map(str::to_owned);
    (code, message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned()))
}

async fn started(world: &world::World) -> Server {
    let server = Server::start(world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
    for name in ["a", "b", "c"] {
        let body = json!({"metadata": {"name": name, "labels": {"l": name}}}).to_string();
        assert_eq!(send(&server, "POST", MAPS, body).await.0, 201);
    }
    server
}

#[test]
fn invalid_requests_get_the_texts_of_kube_apiserver() {
    const NOT_SERVED: &str = "the server could not find the requested resource";
    const NO_METHOD: &str = "the server does not allow this method on the requested resource";
    const NO_PAGE: &str = "404 page not found\n";
    let cases: &[(&str, &str, &str, u16, &str)] = &[
        ("GET", "MAPS?limit=abc", "", 400, "strconv.ParseInt: parsing \"abc\": invalid syntax"),
        ("GET", "MAPS/a?limit=abc&labelSelector=((&resourceVersionMatch=no", "", 200, ""),
        ("GET", "MAPS?labelSelector=,", "", 400, "found ',', expected: !, identifier, or 'end of string'"),
        (
            "GET",
            "MAPS/a?export=1",
            "",
            400,
            "the export parameter, deprecated since v1.14, is no longer supported",
        ),
        (
            "GET",
            "MAPS?resourceVersion=99999999999999999999",
            "",
            400,
            "invalid resource version: resourceVersion: Invalid value: \"99999999999999999999\": \
             strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
        ),
        ("GET", "MAPS/%zz", "", 400, "400 Bad Request"),
        ("GET", "MAPS/a%25b", "", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
        ("GET", "/api/v1/namespaces/default/nodes", "", 404, NOT_SERVED),
        ("GET", "/api/v2/pods", "", 404, NOT_SERVED),
        ("GET", "/api/v2", "", 404, NOT_SERVED),
        ("GET", "/apis/apps/v9/deployments", "", 404, NOT_SERVED),
        ("GET", "/apis/nosuch/v1/things", "", 404, NO_PAGE),
        ("GET", "/api/v1/bindings", "", 404, NOT_SERVED),
        ("POST", "/api/v2", "", 404, NOT_SERVED),
        ("GET", "/version/nosuch", "", 404, NOT_SERVED),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", "", 404, NOT_SERVED),
        ("DELETE", "/api/v1/configmaps", "", 405, NO_METHOD),
        ("POST", "/api/v1/watch/namespaces/default/configmaps", "", 405, NO_METHOD),
        ("HEAD", "MAPS", "", 405, NO_METHOD),
        ("POST", "/version", "", 405, NO_METHOD),
        ("POST", "/nosuch", "", 404, NO_PAGE),
        ("POST", "/healthz", "", 200, "ok"),
        ("GET", "/healthz/", "", 404, NO_PAGE),
        ("GET", "/openapi/v3/nosuch", "", 404, ""),
        (
            "GET",
            "/readyz?verbose&exclude=etcd&exclude=x&exclude=y",
            "",
            200,
            "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]shutdown ok\nwarn: some health checks cannot be \
             excluded: no matches for \"x\",\"y\"\nreadyz check passed\n",
        ),
        (
            "GET",
            "MAPS/a?includeObject=Some",
            TABLE,
            400,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": must be 'Metadata', \
             'Object', 'None', or empty",
        ),
        (
            "GET",
            "MAPS",
            METADATA,
            406,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            "GET",
            "MAPS/a",
            METADATA_LIST,
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
        (
            "GET",
            "MAPS?watch=1",
            "application/yaml,*/*;q=0.1",
            406,
            "apiVersion: v1\ncode: 406\nkind: Status\nmessage: 'only the following media types are accepted: \
             application/json;stream=watch,\n  application/vnd.kubernetes.protobuf;stream=watch'\nmetadata: {}\n\
             reason: NotAcceptable\nstatus: Failure\n",
        ),
        (
            "GET",
            "/version",
            "text/html",
            406,
            "406: Not Acceptable\n\nAvailable representations: application/json",
        ),
        (
            "GET",
            "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db",
            "",
            400,
            "fieldSelector metadata.name doesn't match requested name",
        ),
    ];
    let run = world::simulate(1, |world| async move {
        let server = started(&world).await;
        for (method, path, accept, code, text) in cases {
            let path = path.replace("MAPS", MAPS);
            let (found, answer) = ask(&server, method, &path, accept).await;
            assert_eq!(found, *code, "{method} {path}: {answer}");
            assert!(text.is_empty() || answer == *text, "{method} {path}: {answer}");
        }
    });
    run.unwrap();
}

#[test]
fn lists_and_watches_follow_their_options() {
    let names = |body: &str| -> String {
        let list: Value = serde_json::from_str(body).unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let names: Vec<_> = items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        let more = if list["metadata"]["continue"].is_string() { "…" } else { "" };
        names.join(" ") + more
    };
    let events = |body: &str| -> String {
        let events = body.lines().map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            let name = event["object"]["metadata"]["name"].as_str().or(event["object"]["reason"].as_str());
            format!("{} {}", event["type"].as_str().unwrap(), name.unwrap_or("-"))
        });
        events.collect::<Vec<_>>().join(", ")
    };
    let run = world::simulate(1, |world| async move {
        let server = started(&world).await;
        for (query, expected) in [
            ("limit=2&labelSelector=l", "a b…"),
            ("limit=2&labelSelector=l&resourceVersion=0", "a b c"),
            ("limit=1&fieldSelector=metadata.name%3Db", "b"),
            ("limit=-1&labelSelector=l%20in%20(b,c)", "b c"),
        ] {
            let (code, body) = ask(&server, "GET", &format!("{MAPS}?{query}"), "").await;
            assert_eq!((code, names(&body).as_str()), (200, expected), "{query}");
        }
        let none_but_that = "ADDED b, BOOKMARK -";
        for (path, query, expected) in [
            (MAPS, "watch=1&resourceVersion=0", "ADDED b"),
            (MAPS, "watch=1&resourceVersion=0&allowWatchBookmarks=1", none_but_that),
            (MAPS, "watch=1&allowWatchBookmarks=1", none_but_that),
            ("/api/v1/watch/namespaces/default/configmaps", "allowWatchBookmarks=1", "ADDED b"),
            (MAPS, "watch=1&resourceVersion=9999", ""),
            (
                MAPS,
                "watch=1&resourceVersion=9999&sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
                "ERROR Timeout",
            ),
        ] {
            let path = format!("{path}?{query}&timeoutSeconds=1&labelSelector=l%3Db");
            let (code, body) = ask(&server, "GET", &path, "").await;
            assert_eq!((code, events(&body).as_str()), (200, expected), "{path}");
        }
        let path = format!(
            "{MAPS}?watch=1&allowWatchBookmarks=1&includeObject=None&timeoutSeconds=1&labelSelector=no"
        );
        let (_, body) = ask(&server, "GET", &path, TABLE).await;
        let event: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(event["object"]["rows"][0]["cells"], json!(["", 0, "<unknown>"]), "{event}");
        let annotations = &event["object"]["rows"][0]["object"]["metadata"]["annotations"];
        assert_eq!(annotations["k8s.io/initial-events-end"], "true", "{event}");
    });
    run.unwrap();
}
