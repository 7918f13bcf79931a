//! Random requests: each gets a response, and none makes the server fail.
//!
//! None may cost more memory or time than `counted` allows. A few thousand in every test run;
//! `SETPOINT_NOISE=1000000` for as many as that, `SETPOINT_SEED` to replay a run.

use crate::{client::send_with, counted};
use server::{Config, Server};
use std::sync::Arc;
use world::World;

const CASES: u64 = 3000;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
const PATHS: [&str; 12] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/apis/apps/v1/namespaces/default/deployments/a",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/apis/apps/v1/namespaces/default/deployments/a/status",
    "/api/v1/namespaces/default/pods/a/binding",
    "/api/v1/namespaces/default/services",
    "/api/v1/watch/namespaces/default/pods",
    "/apis/apps/v1",
    "/openapi/v3/apis/apps/v1",
    "/api/v1/namespaces/%2e%2e/pods",
    "//api//v1///pods/",
];
const QUERIES: [&str; 16] = [
    "labelSelector=a%3Db%2Cc%20in%20(d%2Ce)%2C!f",
    "fieldSelector=metadata.name%3Da%2Cmetadata.namespace!%3Db",
    "limit=2",
    "limit=-1",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9",
    "resourceVersion=1",
    "resourceVersion=18446744073709551616",
    "resourceVersionMatch=Exact",
    "watch=1&timeoutSeconds=1",
    "sendInitialEvents=true&allowWatchBookmarks=true",
    "dryRun=All",
    "fieldManager=x&force=true",
    "fieldValidation=Strict",
    "propagationPolicy=Orphan&gracePeriodSeconds=-5",
    "pretty=true",
    "%ff=%00&&==",
];
const TYPES: [&str; 8] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
];
const BODIES: [&str; 12] = [
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"b"}},"data":{"k":"v"}}"#,
    r#"{"metadata":{"name":"a"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}}}"#,
    r#"{"metadata":{"name":"s","generateName":"s-"},"spec":{"type":"NodePort","clusterIP":"10.96.0.300","ports":[{"port":80,"nodePort":30000}]}}"#,
    r#"[{"op":"add","path":"/data/x","value":"y"},{"op":"copy","from":"/data","path":"/data/~1"},{"op":"test","path":"","value":{}}]"#,
    r#"{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"c","$patch":"delete"}],"$retainKeys":["x"]}}}}"#,
    r#"{"data":null,"metadata":{"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["a/b"]}}"#,
    r#"{"spec":{"replicas":-1}}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"},"gracePeriodSeconds":0}"#,
    r#"{"target":{"kind":"Node","name":"n"}}"#,
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: !!str 1, <<: {b: c}}\n",
    "k8s\u{0}\u{a}\u{4}\u{a}\u{2}v1",
    "",
];

#[test]
fn every_random_request_gets_a_response() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let cases = number("SETPOINT_NOISE").unwrap_or(CASES);
    let seed = number("SETPOINT_SEED").unwrap_or(1);
    println!("seed {seed}");
    let run = world::simulate(seed, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let mut answered = [0_u64; 6];
        for case in 0..cases {
            let method = pick(&world, &METHODS);
            let path = mangle(&world, pick(&world, &PATHS).as_bytes());
            let query = mangle(&world, pick(&world, &QUERIES).as_bytes());
            let uri = printable(&[path, b"?".to_vec(), query].concat());
            let body = mangle(&world, pick(&world, &BODIES).as_bytes());
            let about = format!("case {case}: {method} {uri} {}", String::from_utf8_lossy(&body));
            let (meter, size) = (counted::Meter::start(), body.len());
            let (status, answer) = send_with(&server, method, &uri, pick(&world, &TYPES), body).await;
            meter.assert_modest(size, &about);
            assert!(
                (200..500).contains(&status) || is_known(status, &answer),
                "{about}: {status} {answer:?}"
            );
            answered[usize::from(status / 100)] += 1;
        }
        assert!(answered[2] > cases / 20, "enough of it makes sense: {answered:?}");
        assert!(answered[4] > cases / 20, "and enough does not: {answered:?}");
    });
    run.unwrap();
}

/// Kubernetes: some invalid requests get a 500 or a 504, too, with a message.
fn is_known(status: u16, answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer);
    match status {
        500 => !answer.contains("InternalError"),
        504 => answer.contains("ResourceVersionTooLarge"),
        _ => false,
    }
}

fn pick<'a>(world: &World, from: &[&'a str]) -> &'a str {
    from[world.pick(0..from.len() as u64) as usize]
}

/// Leaves most unchanged; cuts, repeats, flips or inserts a little in the rest.
fn mangle(world: &World, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.is_empty() || world.chance(0.6) {
        return bytes;
    }
    for _ in 0..world.pick(1..4) {
        let at = world.pick(0..bytes.len().max(1) as u64) as usize;
        match world.pick(0..5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << world.pick(0..8),
            2 => bytes.insert(at.min(bytes.len()), world.draw() as u8),
            3 => bytes.extend_from_slice(&bytes.clone()[at.min(bytes.len())..]),
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

/// Characters that HTTP allows in a target.
fn printable(bytes: &[u8]) -> String {
    let allowed = |byte: &u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(byte);
    let text: String = bytes.iter().filter(|byte| allowed(byte)).map(|byte| char::from(*byte)).collect();
    if text.starts_with('/') { text } else { format!("/{text}") }
}
