//! The most expensive bodies that there can be: however they are made, they cost no more than a body may.

use crate::{client::send_with, counted::Meter};
use serde_json::json;
use server::{Config, Server};
use std::sync::Arc;

/// A little less than a body may have.
const SIZE: usize = 3 << 20;
const JSON: &str = "application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const PODS: &str = "/api/v1/namespaces/default/pods";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// `part` as often as there is room for it; `#` in it is a number.
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

#[test]
fn no_body_costs_more_than_a_body_may() {
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
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
        let made = send_with(&server, "POST", DEFINITIONS, JSON, definition.to_string()).await;
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
