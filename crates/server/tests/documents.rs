//! Discovery and OpenAPI documents over HTTP: ETags, caching, compression, forms.

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Caller, Config, Server};
use std::{io::Read, sync::Arc};

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> String {
        let values = self.headers.get_all(name).iter().map(|value| value.to_str().unwrap());
        values.collect::<Vec<_>>().join(", ")
    }
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Full::<Bytes>::default()).unwrap();
    request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
    let response = server.handle(request).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, body: response.into_body().collect().await.unwrap().to_bytes() }
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(Server) -> F) {
    let run = world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        test(server).await;
    });
    run.unwrap();
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const OLDER: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

#[test]
fn a_known_etag_gets_304() {
    run(async |server| {
        for (path, accept, vary) in [
            ("/apis", AGGREGATED, "Accept"),
            ("/api", AGGREGATED, "Accept"),
            ("/openapi/v2", "application/json", "Accept"),
            ("/openapi/v2", OLDER, "Accept"),
            ("/openapi/v3", "application/json", ""),
            ("/openapi/v3/apis/apps/v1", "application/json", "Accept"),
        ] {
            let first = get(&server, path, &[("accept", accept)]).await;
            let etag = first.header("etag");
            assert!(first.status == 200 && etag.len() == 130 && etag.starts_with('"'), "{path} {etag}");
            assert_eq!(first.header("vary"), vary, "{path}");
            let again = get(&server, path, &[("accept", accept), ("if-none-match", &etag)]).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!((again.header("etag"), again.header("content-type")), (etag, String::new()), "{path}");
            let other = get(&server, path, &[("accept", accept), ("if-none-match", "\"x\"")]).await;
            assert_eq!((other.status, other.body), (200, first.body.clone()), "{path}");
            let since = first.header("last-modified");
            let headers = [("accept", accept), ("if-modified-since", since.as_str())];
            let expected = if since.is_empty() { 200 } else { 304 };
            assert_eq!(get(&server, path, &headers).await.status, expected, "{path} {since}");
        }
    });
}

#[test]
fn the_right_hash_is_cacheable_and_a_wrong_one_redirects() {
    run(async |server| {
        let index = get(&server, "/openapi/v3", &[]).await;
        let index: Value = serde_json::from_slice(&index.body).unwrap();
        let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
        let found = get(&server, url, &[]).await;
        assert_eq!((found.status, found.header("cache-control").as_str()), (200, "public, immutable"));
        assert!(found.header("expires").ends_with(" GMT"));
        let plain = get(&server, "/openapi/v3/apis/apps/v1", &[]).await;
        assert_eq!((plain.status, plain.header("cache-control").as_str()), (200, "no-cache, private"));
        assert_eq!(plain.body, found.body);
        let wrong = get(&server, "/openapi/v3/apis/apps/v1?hash=1234", &[]).await;
        assert_eq!((wrong.status, wrong.header("location").as_str()), (301, url));
        for (path, accept, status) in [
            ("/openapi/v3/apis/apps/v1", "text/html", 406),
            ("/openapi/v2", "text/html", 406),
            ("/openapi/v3/apis/apps/v9", "*/*", 404),
            ("/openapi/v3/apis/apps", "*/*", 404),
            ("/openapi/v4", "*/*", 404),
        ] {
            assert_eq!(get(&server, path, &[("accept", accept)]).await.status, status, "{path}");
        }
    });
}

#[test]
fn large_documents_are_compressed_for_clients_that_accept_gzip() {
    run(async |server| {
        let body =
            format!("{{\"metadata\":{{\"name\":\"large\"}},\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(200_000));
        let path = "/api/v1/namespaces/default/configmaps";
        assert_eq!(crate::client::send(&server, "POST", path, body).await.0, 201);
        for (path, is_compressed) in [
            (path, true),
            ("/api/v1/namespaces/default/configmaps/large", true),
            ("/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1", false),
            ("/api/v1/namespaces/default", false),
            ("/openapi/v2", true),
        ] {
            let plain = get(&server, path, &[]).await;
            assert_eq!(plain.header("content-encoding"), "", "{path}");
            let small = get(&server, path, &[("accept-encoding", "deflate, gzip")]).await;
            assert_eq!(small.headers.contains_key(header::CONTENT_ENCODING), is_compressed, "{path}");
            assert_eq!(small.header("content-type"), plain.header("content-type"), "{path}");
            let mut body = small.body.to_vec();
            if is_compressed {
                assert!(small.header("vary").contains("Accept-Encoding"), "{path}");
                assert!(small.body.len() * 4 < plain.body.len(), "{path}");
                body.clear();
                flate2::read::GzDecoder::new(&small.body[..]).read_to_end(&mut body).unwrap();
            }
            assert_eq!(body, plain.body, "{path}");
        }
    });
}

#[test]
fn a_new_definition_changes_only_its_own_documents() {
    run(async |server| {
        let place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let own = "/openapi/v3/apis/x.example.com/v1";
        let schema = |title: &str| json!({"openAPIV3Schema": {"type": "object", "title": title}});
        let mut definition = json!({
            "metadata": {"name": "docs.x.example.com"},
            "spec": {
                "group": "x.example.com", "scope": "Cluster",
                "names": {"plural": "docs", "singular": "doc", "kind": "Doc", "listKind": "DocList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema("one")}],
            },
        });
        let tags = async || {
            let mut tags = Vec::new();
            for path in ["/openapi/v3", "/openapi/v2", own, "/openapi/v3/apis/apps/v1"] {
                tags.push(get(&server, path, &[]).await.header("etag"));
            }
            tags
        };
        let differ = |one: &[String], other: &[String]| -> Vec<bool> {
            one.iter().zip(other).map(|(one, other)| one != other).collect()
        };
        let before = tags().await;
        assert_eq!(get(&server, own, &[]).await.status, 404);
        let (status, made) = crate::client::send(&server, "POST", place, definition.to_string()).await;
        assert_eq!(status, 201, "{made}");
        let after = tags().await;
        assert_eq!(differ(&before, &after), [true, true, true, false]);
        let document = get(&server, own, &[]).await;
        assert!(String::from_utf8_lossy(&document.body).contains("\"title\":\"one\""));
        let one = format!("{place}/docs.x.example.com");
        let (_, current) = crate::client::send(&server, "GET", &one, "").await;
        definition["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        definition["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(crate::client::send(&server, "PUT", &one, definition.to_string()).await.0, 200);
        assert_eq!(tags().await, after, "a label says nothing about objects");
        let (_, current) = crate::client::send(&server, "GET", &one, "").await;
        definition["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        definition["spec"]["versions"][0]["schema"] = schema("two");
        assert_eq!(crate::client::send(&server, "PUT", &one, definition.to_string()).await.0, 200);
        assert_eq!(differ(&after, &tags().await), [true, true, true, false]);
        crate::client::send(&server, "DELETE", &one, "").await;
        assert_eq!(get(&server, own, &[]).await.status, 404);
        assert_eq!(tags().await, before);
    });
}

#[test]
fn a_terminating_definition_is_listed_with_fewer_verbs() {
    run(async |server| {
        let place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let definition = json!({
            "metadata": {"name": "docs.x.example.com"},
            "spec": {
                "group": "x.example.com", "scope": "Cluster",
                "names": {"plural": "docs", "singular": "doc", "kind": "Doc", "listKind": "DocList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        });
        assert_eq!(crate::client::send(&server, "POST", place, definition.to_string()).await.0, 201);
        let has_create = async || {
            let list = get(&server, "/apis/x.example.com/v1", &[]).await;
            let list: Value = serde_json::from_slice(&list.body).unwrap();
            list["resources"][0]["verbs"].as_array().unwrap().contains(&json!("create"))
        };
        assert!(has_create().await);
        let held = json!({
            "apiVersion": "x.example.com/v1", "kind": "Doc",
            "metadata": {"name": "a", "finalizers": ["example.com/hold"]},
        });
        let objects = "/apis/x.example.com/v1/docs";
        assert_eq!(crate::client::send(&server, "POST", objects, held.to_string()).await.0, 201);
        crate::client::send(&server, "DELETE", &format!("{place}/docs.x.example.com"), "").await;
        assert!(!has_create().await);
    });
}
