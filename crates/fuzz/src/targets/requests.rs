//! A sequence of requests, one per line: each gets a response, and a read returns what the write returned.

use super::{
    control_plane::{Answer, send, with_server},
    texts,
};
use crate::{Target, recorded::recorded};
use api::path::ResourcePath;
use serde_json::Value;
use server::Server;

pub(super) const TARGET: Target = Target { name: "requests", check, seeds, words: WORDS };

/// Longer sequences find nothing more.
const MAX_LINES: usize = 30;

const WORDS: &[&str] = &[
    "GET ",
    "POST ",
    "PUT ",
    "PATCH ",
    "DELETE ",
    " json ",
    " merge ",
    " strategic ",
    " apply ",
    " ops ",
    " yaml ",
    " protobuf ",
    "/api/v1/namespaces/default/configmaps",
    "/apis/apps/v1/namespaces/default/deployments",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/a",
    "/status",
    "/scale",
    "/binding",
    "/eviction",
    "/resize",
    "/ephemeralcontainers",
    "?dryRun=All",
    "?fieldManager=m&force=true",
    "?fieldValidation=Strict",
    "?propagationPolicy=Orphan",
    "\"metadata\":",
    "\"name\":\"a\"",
    "\"finalizers\":[\"x/y\"]",
    "\"resourceVersion\":\"1\"",
    "\"uid\":\"x\"",
    "\"generateName\":\"g\"",
    "\"ownerReferences\":",
    "null",
    "\n",
];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        r#"POST /api/v1/namespaces/default/configmaps json {"metadata":{"name":"a","labels":{"a":"b"}},"data":{"k":"v"}}
PATCH /api/v1/namespaces/default/configmaps/a merge {"data":{"k":null,"l":"m"},"metadata":{"finalizers":["x/y"]}}
PATCH /api/v1/namespaces/default/configmaps/a ops [{"op":"add","path":"/data/x","value":"y"},{"op":"remove","path":"/data/l"}]
PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m&force=true apply {"apiVersion":"v1","kind":"ConfigMap","data":{"z":"1"}}
DELETE /api/v1/namespaces/default/configmaps/a json {"propagationPolicy":"Foreground"}
PATCH /api/v1/namespaces/default/configmaps/a strategic {"metadata":{"finalizers":null}}"#,
        r#"POST /apis/apps/v1/namespaces/default/deployments json {"metadata":{"name":"a"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}}}
PATCH /apis/apps/v1/namespaces/default/deployments/a/scale merge {"spec":{"replicas":4}}
PATCH /apis/apps/v1/namespaces/default/deployments/a/status merge {"status":{"replicas":4}}
PATCH /apis/apps/v1/namespaces/default/deployments/a strategic {"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"d","image":"j"}]}}}}
PUT /apis/apps/v1/namespaces/default/deployments/a/scale json {"metadata":{"name":"a"},"spec":{"replicas":1}}"#,
        r#"POST /api/v1/namespaces/default/pods json {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}
POST /api/v1/namespaces/default/pods/a/binding json {"target":{"kind":"Node","name":"n"}}
PATCH /api/v1/namespaces/default/pods/a/ephemeralcontainers strategic {"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}
PATCH /api/v1/namespaces/default/pods/a/resize strategic {"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}
PATCH /api/v1/namespaces/default/pods/a/status merge {"status":{"phase":"Running"}}
POST /api/v1/namespaces/default/pods/a/eviction json {"metadata":{"name":"a"}}
DELETE /api/v1/namespaces/default/pods/a?gracePeriodSeconds=0 json {}"#,
        r#"POST /api/v1/namespaces/default/services json {"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30000}]}}
POST /api/v1/namespaces/default/services json {"metadata":{"name":"t"},"spec":{"clusterIP":"None","ports":[{"port":80}]}}
PATCH /api/v1/namespaces/default/services/s merge {"spec":{"type":"ExternalName","externalName":"x.y"}}
DELETE /api/v1/namespaces/default/services json {}"#,
    ]);
    // Every kind once, at its own path, several per sequence.
    let mut lines = Vec::new();
    for recorded in recorded() {
        let object: Value = serde_json::from_str(recorded.json).unwrap();
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let Some(resource) = kinds::resources()
            .iter()
            .find(|it| (&*it.group, &*it.version, &*it.kind) == (group, version, kind))
        else {
            continue;
        };
        let namespace = match resource.scope {
            kinds::resources::Scope::Namespaced => "default",
            kinds::resources::Scope::Cluster => "",
        };
        let mut bare = object.clone();
        bare["metadata"] = serde_json::json!({"name": "a"});
        let path = ResourcePath::collection(group, version, &resource.name).in_namespace(namespace);
        lines.push(format!("POST {path} json {bare}"));
    }
    seeds.extend(lines.chunks(MAX_LINES / 3).map(|lines| lines.join("\n").into_bytes()));
    seeds
}

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    with_server(|server| async move {
        for line in text.lines().take(MAX_LINES) {
            let mut words = line.splitn(4, ' ');
            let (Some(method), Some(uri)) = (words.next(), words.next()) else { continue };
            let content_type = content_type(words.next().unwrap_or_default());
            let body = words.next().unwrap_or_default();
            if !uri.starts_with('/') {
                continue;
            }
            if let Some(answer) = send(&server, method, uri, content_type, body.as_bytes()).await {
                read_back(&server, method, uri, &answer).await;
            }
        }
    });
}

fn content_type(word: &str) -> &str {
    match word {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "protobuf" => "application/vnd.kubernetes.protobuf",
        "ops" => "application/json-patch+json",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
}

const FOLLOWED: [&str; 5] = [
    "CustomResourceDefinition",
    "FlowSchema",
    "MutatingAdmissionPolicy",
    "ResourceQuota",
    "ValidatingAdmissionPolicy",
];

/// After a write that returned an object, that object is stored, or none.
async fn read_back(server: &Server, method: &str, uri: &str, answer: &Answer) {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let object = answer.json();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_write = matches!(method, "POST" | "PUT" | "PATCH") && answer.code < 300;
    if !is_write || name.is_empty() || object["kind"] == "Status" || !query.is_empty() || path.contains('%') {
        return;
    }
    let at = if method == "POST" {
        format!("{}/{}", path.trim_end_matches('/'), super::percent(name.as_bytes()))
    } else {
        path.to_owned()
    };
    let Some(read) = send(server, "GET", &at, "", b"").await else { return };
    // The server itself writes the status of some kinds after the response.
    let is_followed = FOLLOWED.iter().any(|kind| object["kind"] == *kind);
    if read.code == 200 && !is_followed {
        assert_eq!(read.json(), object, "{method} {uri}");
    }
}
