//! Stories of malformed requests: broken bodies, wrong types, odd paths and queries.

use super::{namespace, reads, subject::subjects};
use crate::{
    draw::Draw,
    story::{Body, Request, Step, Story},
};

const BODIES: [&str; 40] = [
    "",
    "{",
    "[]",
    "null",
    "1",
    "\"x\"",
    "{}",
    "{}{}",
    "{\"a\":1,}",
    "\u{feff}{}",
    r#"{"kind":"ConfigMap"}"#,
    r#"{"apiVersion":"v1"}"#,
    r#"{"apiVersion":"v1","kind":"Nothing"}"#,
    r#"{"apiVersion":"v9","kind":"ConfigMap"}"#,
    r#"{"apiVersion":"a/b/c","kind":"ConfigMap"}"#,
    r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":1}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":null}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":[]}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"},"data":{"j":"2"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"Data":{"k":"1"},"unknown":{"x":[1]}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A b"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"elsewhere"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":null}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"gen-"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"Gen_"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a b":"c d"}}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"5"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"x"}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"immutable":"yes"}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"k":"%%"}}"#,
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: yes\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  <<: {x: y}\n  k: &a '1'\n  j: *a\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\n",
    "\tapiVersion: v1\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 0x10, k: 1}\n",
];
const CONTENT_TYPES: [&str; 16] = [
    "application/json",
    "application/json",
    "application/json",
    "application/json; charset=utf-8",
    "application/yaml",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "application/cbor",
    "text/plain",
    "nonsense",
    "",
];
const PATHS: [&str; 34] = [
    "/api/v1/namespaces/{ns}/configmaps",
    "/api/v1/namespaces/{ns}/configmaps/a",
    "/api/v1/namespaces/{ns}/configmaps/a/status",
    "/api/v1/namespaces/{ns}/configmaps/a/b/c",
    "/api/v1/namespaces/{ns}/configmaps/",
    "/api/v1/namespaces/{ns}/configmaps/A%20b",
    "/api/v1/namespaces/{ns}/configmaps/a%2Fb",
    "/api/v1/namespaces/{ns}//configmaps",
    "/api/v1/namespaces/{ns}/nothings",
    "/api/v1/namespaces/{ns}/namespaces",
    "/api/v1/namespaces/{ns}/nodes",
    "/api/v1/namespaces/{ns}/pods/a",
    "/api/v1/namespaces/{ns}/pods/a/log",
    "/api/v1/namespaces/{ns}/pods/a/nothing",
    "/api/v1/namespaces/missing-{id}/configmaps",
    "/api/v1/namespaces/missing-{id}/configmaps/a",
    "/api/v1/namespaces/missing-{id}",
    "/api/v1/configmaps",
    "/api/v1/configmaps/a",
    "/api/v1/pods/a",
    "/api/v2/configmaps",
    "/api",
    "/api/",
    "/api/v1",
    "/api/v1/",
    "/apis/apps",
    "/apis/apps/v9",
    "/apis/apps/v1/namespaces/{ns}/configmaps",
    "/apis/nothing.example.com",
    "/apis/nothing.example.com/v1/things",
    "/apis/twin.example.com/v1/namespaces/{ns}/widgets/a/nothing",
    "/apis/twin.example.com/v9/namespaces/{ns}/widgets",
    "/apis/twin.example.com/v1/widgets/a",
    "/nothing",
];
const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "POST", "PUT", "OPTIONS", "HEAD"];
const QUERIES: [&str; 26] = [
    "dryRun=Maybe",
    "dryRun=All&dryRun=All",
    "fieldManager=x%00y",
    "fieldValidation=strict",
    "fieldValidation=Strict",
    "force=true",
    "force=perhaps",
    "limit=abc",
    "limit=0",
    "continue=abc",
    "continue=abc&limit=1",
    "resourceVersion=abc",
    "resourceVersion=-1",
    "resourceVersion=1",
    "resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "resourceVersion=5&resourceVersionMatch=Wrong",
    "labelSelector=%%%",
    "labelSelector=a,,b",
    "fieldSelector=a",
    "timeoutSeconds=abc",
    "gracePeriodSeconds=abc",
    "propagationPolicy=Wrong",
    "orphanDependents=perhaps",
    "sendInitialEvents=true",
    "watch=perhaps",
];

pub(super) fn story(draw: &mut Draw) -> Story {
    let mut steps = Vec::new();
    for _ in 0..10 + draw.below(8) {
        steps.push(request(draw));
    }
    if let Some(config_map) = subjects().first() {
        steps.push(reads::list(config_map, draw));
    }
    Story { theme: "bad input", setup: namespace(), steps, cleanup: Vec::new() }
}

fn request(draw: &mut Draw) -> Step {
    let (method, path) = match draw.below(4) {
        0 => ("POST", PATHS[0]),
        1 => (draw.pick(&["PUT", "PATCH", "GET", "DELETE"]), PATHS[1]),
        _ => (draw.pick(&METHODS), draw.pick(&PATHS)),
    };
    let mut request = Request::new(method, path);
    if draw.one_in(3) {
        request = request.query(draw.pick(&QUERIES));
    }
    // It would return all objects of the cluster.
    let is_wide = path == "/api/v1/configmaps" && method == "GET";
    if is_wide && !request.query.contains("labelSelector") {
        request = request.query("labelSelector=story%3D{id}");
    }
    if matches!(method, "POST" | "PUT" | "PATCH") || (method == "DELETE" && draw.one_in(2)) {
        let content_type = if method == "PATCH" && draw.one_in(2) {
            draw.pick(&CONTENT_TYPES[7..11])
        } else {
            draw.pick(&CONTENT_TYPES)
        };
        request = request.body(content_type, Body::Raw(draw.pick(&BODIES).as_bytes().to_vec()));
        if content_type.is_empty() {
            request.content_type = None;
        }
    }
    if draw.one_in(5) {
        request = request.accept(reads::object_form(draw));
    }
    request.http2 = draw.one_in(4);
    request.compared()
}
