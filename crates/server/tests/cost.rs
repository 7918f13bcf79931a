//! The most expensive bodies: each costs no more memory and time than a body may.

use crate::{client::send_with, counted::Meter};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::json;
use server::{Caller, Config, Server};
use std::sync::Arc;

/// A little less than the limit of a body.
const SIZE: usize = 3 << 20;
const JSON: &str = "application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const PODS: &str = "/api/v1/namespaces/default/pods";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
/// A little less than the limit of a stored object.
const STORED: usize = 1 << 20;
const FORMS: [&str; 5] = [
    JSON,
    "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
];
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// `part` repeated up to `size`; `#` in it is a number.
fn repeated(head: &str, part: &str, tail: &str, size: usize) -> String {
    let mut body = String::from(head);
    let mut number = 0;
    while body.len() + part.len() + 8 + tail.len() < size {
        if number > 0 {
            body.push(',');
        }
        body.push_str(&part.replace('#', &number.to_string()));
        number += 1;
    }
    body + tail
}

fn widgets() -> String {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    })
    .to_string()
}

#[test]
fn reading_a_large_object_in_any_form_costs_no_more_than_a_body_may() {
    let widget = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":"#;
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a""#;
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","#;
    let cases = [
        ("numbers", WIDGETS, format!("{widget}["), "0", "]}", STORED / 8),
        ("empty objects", WIDGETS, format!("{widget}["), "{}", "]}", STORED / 8),
        ("members", WIDGETS, format!("{widget}{{"), r##""#":0"##, "}}", STORED / 4),
        ("keys of data", MAPS, format!("{map}}},\"data\":{{"), r##""#":"""##, "}}", STORED / 4),
        ("labels", MAPS, format!("{map},\"labels\":{{"), r##""#":"""##, "}}}", STORED / 4),
        ("variables", PODS, format!("{pod}\"env\":["), r##"{"name":"V#"}"##, "]}]}}", STORED / 4),
    ];
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        assert_eq!(send_with(&server, "POST", DEFINITIONS, JSON, widgets()).await.0, 201);
        for (about, path, head, part, tail, size) in cases {
            let body = repeated(&head, part, tail, size);
            let (code, answer) = send_with(&server, "POST", path, JSON, body).await;
            assert_eq!(code, 201, "{about}: {answer:?}");
            let stored = answer.len();
            drop(answer);
            for accept in FORMS {
                let mut request = Request::get(format!("{path}/a")).header(header::ACCEPT, accept);
                let caller = Caller::known("admin", "", vec!["system:masters".to_owned()]);
                request.extensions_mut().unwrap().insert(caller);
                let meter = Meter::start();
                let response = server.handle(request.body(Full::<Bytes>::default()).unwrap()).await;
                assert_eq!(response.status(), 200, "{about} as {accept}");
                let read = response.into_body().collect().await.unwrap().to_bytes();
                let (most, times) = (meter.most(), meter.most() / stored);
                println!(
                    "{about} as {accept}: {} KiB, {times} times the {} KiB stored, {} KiB sent",
                    most >> 10,
                    stored >> 10,
                    read.len() >> 10
                );
                meter.assert_modest(stored, about);
            }
            assert_eq!(
                send_with(&server, "DELETE", &format!("{path}/a?gracePeriodSeconds=0"), JSON, "").await.0,
                200
            );
        }
    })
    .unwrap();
}

#[test]
fn no_body_costs_more_than_a_body_may() {
    let widget = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":"#;
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","#;
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a""#;
    let cases = [
        ("numbers", WIDGETS, format!("{widget}["), "0", "]}".to_owned()),
        ("empty objects", WIDGETS, format!("{widget}["), "{}", "]}".to_owned()),
        ("members", WIDGETS, format!("{widget}{{"), r##""#":0"##, "}}".to_owned()),
        ("lists of lists", WIDGETS, format!("{widget}["), "[[[]]]", "]}".to_owned()),
        (
            "raw data",
            REVISIONS,
            r#"{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a"},"revision":1,"data":{"a":["#
                .to_owned(),
            "0",
            "]}}".to_owned(),
        ),
        ("keys of data", MAPS, format!("{map}}},\"data\":{{"), r##""#":"""##, "}}".to_owned()),
        ("owners", MAPS, format!("{map},\"ownerReferences\":["), r##"{"apiVersion":"v1","kind":"P","name":"a","uid":"#"}"##, "]}}".to_owned()),
        ("finalizers", MAPS, format!("{map},\"finalizers\":["), r##""a/#""##, "]}}".to_owned()),
        ("labels", MAPS, format!("{map},\"labels\":{{"), r##""#":"""##, "}}}".to_owned()),
        ("variables", PODS, format!("{pod}\"env\":["), r##"{"name":"#"}"##, "]}]}}".to_owned()),
        ("ports", PODS, format!("{pod}\"ports\":["), r##"{"containerPort":1}"##, "]}]}}".to_owned()),
        ("wrong ports", PODS, format!("{pod}\"ports\":["), r##"{}"##, "]}]}}".to_owned()),
        ("unknown members", PODS, pod.to_owned(), r##""#":0"##, "}]}}".to_owned()),
    ];
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        let made = send_with(&server, "POST", DEFINITIONS, JSON, widgets()).await;
        assert_eq!(made.0, 201, "{:?}", made.1);
        for (about, path, head, part, tail) in cases {
            for size in [SIZE, SIZE / 4] {
                let body = repeated(&head, part, &tail, size);
                let (meter, length) = (Meter::start(), body.len());
                let (code, answer) =
                    send_with(&server, "POST", &format!("{path}?dryRun=All"), JSON, body).await;
                println!("{about}: {code}, {} KiB for {} KiB", meter.most() >> 10, length >> 10);
                assert!(code < 500, "{about}: {code} {answer:?}");
                drop(answer);
                meter.assert_modest(length, about);
            }
        }
    })
    .unwrap();
}

/// Every request is copied into its task and moved from stage to stage: nested `async` functions that hold
/// their work twice cost more than the work.
#[test]
fn the_future_of_a_request_is_small() {
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        let request = Request::new(Full::new(Bytes::new()));
        let size = size_of_val(&server.handle(request));
        assert!(size <= 5 << 10, "{size} bytes");
    })
    .unwrap();
}
