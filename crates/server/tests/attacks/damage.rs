//! Undecodable webhook configurations and policies: writes that they might have rejected are rejected.

use crate::client::send;
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;
use store::{Batch, Bytes, Memory, ReadStore, Store};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn rules() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}])
}

fn webhooks(name: &str) -> Value {
    json!({"metadata": {"name": name}, "webhooks": [{
        "name": "w.example.com", "rules": rules(), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/unreachable"}, "timeoutSeconds": 1,
    }]})
}

fn policy() -> Value {
    let validations = json!([{"expression": "false", "message": "nothing is right"}]);
    json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": rules()}, "validations": validations,
    }})
}

fn binding() -> Value {
    json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}})
}

/// Creates a policy, its binding and a webhook configuration of each kind.
async fn filled(server: &Server) {
    for (resource, object) in [
        ("validatingadmissionpolicies", policy()),
        ("validatingadmissionpolicybindings", binding()),
        ("validatingwebhookconfigurations", webhooks("v")),
        ("mutatingwebhookconfigurations", webhooks("m")),
    ] {
        let (code, answer) = send(server, "POST", &format!("{GROUP}/{resource}"), object.to_string()).await;
        assert_eq!(code, 201, "{answer}");
    }
}

async fn write(server: &Server) -> (u16, String) {
    let body = json!({"metadata": {"name": "new"}}).to_string();
    let (code, answer) = send(server, "POST", &format!("{MAPS}?dryRun=All"), body).await;
    (code, answer["message"].as_str().unwrap_or_default().to_owned())
}

/// Deletes all configurations but these from the store.
async fn only(store: &Memory, keys: &[&str]) {
    let all = [
        "validatingadmissionpolicies/p",
        "validatingadmissionpolicybindings/b",
        "validatingwebhookconfigurations/v",
        "mutatingwebhookconfigurations/m",
    ];
    let others = all.iter().filter(|key| !keys.contains(key));
    let batch = others.fold(Batch::new(), |batch, key| batch.delete(format!("/registry/{key}")));
    store.commit(batch).await.unwrap();
}

async fn bytes(store: &Memory, key: &str) -> Vec<u8> {
    let read = store.get(Bytes::from(format!("/registry/{key}")), None).await.unwrap();
    read.entry.unwrap().value.to_vec()
}

async fn put(store: &Memory, key: &str, value: Vec<u8>) {
    store.commit(Batch::new().put(format!("/registry/{key}"), value)).await.unwrap();
}

/// Metadata that nests deeper than the decoder reads.
fn nested(json: &[u8]) -> Vec<u8> {
    let deep = format!("{}{}", "{\"f:a\":".repeat(300), "{}") + &"}".repeat(300);
    let text = String::from_utf8(json.to_vec()).unwrap();
    let deep = format!("\"metadata\":{{\"deep\":{deep},");
    text.replacen("\"metadata\":{", &deep, 1).into_bytes()
}

#[test]
fn undecodable_configurations_reject_writes_after_a_restart() {
    const NOT_READY: &str = "configmaps \"new\" is forbidden: not yet ready to handle request";
    let policies = ["validatingadmissionpolicies/p", "validatingadmissionpolicybindings/b"];
    for (keys, damaged) in [
        (&policies[..], policies[0]),
        (&policies[..], policies[1]),
        (&["validatingwebhookconfigurations/v"], "validatingwebhookconfigurations/v"),
        (&["mutatingwebhookconfigurations/m"], "mutatingwebhookconfigurations/m"),
    ] {
        world::simulate(1, |world| async move {
            let store = Arc::new(Memory::new());
            let first = Server::start(&world, store.clone(), Config::default()).await.unwrap();
            filled(&first).await;
            only(&store, keys).await;
            let (code, refused) = write(&first).await;
            assert!(code >= 400 && refused != NOT_READY, "{damaged} refuses: {code} {refused}");
            let whole = bytes(&store, damaged).await;
            // A running server keeps the last readable state.
            put(&store, damaged, whole[..whole.len() / 2].to_vec()).await;
            assert_eq!(write(&first).await, (code, refused.clone()), "{damaged} is known");
            drop(first);
            for broken in [&whole[..whole.len() / 2], b"", b"null", b"[]", b"\xff"] {
                put(&store, damaged, broken.to_vec()).await;
                let next = Server::start(&world, store.clone(), Config::default()).await.unwrap();
                assert_eq!(write(&next).await, (403, NOT_READY.to_owned()), "{damaged}: {broken:?}");
                // Reads go on, and so do writes to the configurations themselves.
                assert_eq!(send(&next, "GET", MAPS, "").await.0, 200);
                let path = format!("{GROUP}/validatingwebhookconfigurations?dryRun=All");
                let more = send(&next, "POST", &path, webhooks("x").to_string());
                assert_eq!(more.await.0, 201);
                // Once it is readable again, it is in force without a restart.
                put(&store, damaged, whole.clone()).await;
                assert_eq!(write(&next).await, (code, refused.clone()), "{damaged} is repaired");
            }
            // If only another part is undecodable, the configuration is in force.
            put(&store, damaged, nested(&whole)).await;
            let next = Server::start(&world, store.clone(), Config::default()).await.unwrap();
            assert_eq!(write(&next).await, (code, refused.clone()), "{damaged} with metadata that nests");
            store.commit(Batch::new().delete(format!("/registry/{damaged}"))).await.unwrap();
            assert_eq!(write(&next).await.0, 201, "{damaged} is gone");
        })
        .unwrap();
    }
}
