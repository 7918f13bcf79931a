//! Attacks by request: rights, depth, extreme numbers, unread responses, and filling the store.

use crate::{
    bench::client,
    bodies::definition,
    scene::{APPLY, JSON, Scene, counted},
};
use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::future::join_all;
use http::Method;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, string};
use serde_json::json;
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const DEPTHS: std::ops::Range<usize> = 100..140;
/// Objects of the collection that is listed, and the size of each.
const MANY: usize = 20_000;
const MANY_BYTES: usize = 4000;
const STREAMS: usize = 40;
/// How long responses stay unread: longer than a server takes to create them.
const UNREAD: Duration = Duration::from_secs(8);

pub(crate) async fn apply_without_create(scene: &Scene) -> String {
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}"#;
    scene.attack(&format!("PATCH {MAPS}/new?fieldManager=m"), APPLY, body).await
}

pub(crate) async fn nested_managed_fields(scene: &Scene) -> String {
    stored_and_deleted(scene, PODS, |name, depth| {
        let fields = format!("{}{{}}{}", "{\"f:a\":".repeat(depth), "}".repeat(depth));
        let entry = format!(
            r#"{{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
        );
        format!(
            r#"{{"metadata":{{"name":"{name}","finalizers":["example.com/hold"],"managedFields":[{entry}]}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#
        )
    })
    .await
}

pub(crate) async fn define_things(scene: &Scene) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    scene.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(&any)).await;
}

pub(crate) async fn nested_things(scene: &Scene) -> String {
    stored_and_deleted(scene, THINGS, |name, depth| {
        let deep = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"{name}","finalizers":["example.com/hold"]}},"spec":{{"deep":{deep}}}}}"#
        )
    })
    .await
}

/// Sends an object of every depth; a stored object must be readable, stay while its finalizer holds it, and
/// then go.
async fn stored_and_deleted(scene: &Scene, path: &str, body: impl Fn(&str, usize) -> String) -> String {
    let (mut refused, mut sound, mut broken) = (0, 0, 0);
    for depth in DEPTHS {
        let name = format!("deep-{depth}");
        if scene.attack(&format!("POST {path}"), JSON, body(&name, depth)).await != "201" {
            refused += 1;
            continue;
        }
        let one = format!("{path}/{name}");
        let release = r#"{"metadata":{"finalizers":null}}"#;
        let mut answers = Vec::new();
        for (what, content_type, body) in [
            (format!("GET {one}"), JSON, ""),
            (format!("DELETE {one}?gracePeriodSeconds=0"), JSON, ""),
            (format!("GET {one}"), JSON, ""),
            (format!("PATCH {one}"), "application/merge-patch+json", release),
            (format!("GET {one}"), JSON, ""),
        ] {
            answers.push(scene.attack(&what, content_type, body).await);
        }
        match answers.join(" ") == "200 200 200 200 404" {
            true => sound += 1,
            false => broken += 1,
        }
    }
    format!("{refused} refused, {sound} sound, {broken} broken")
}

pub(crate) async fn many_maps(scene: &Scene) {
    const WRITERS: usize = 8;
    let value = "x".repeat(MANY_BYTES);
    let writers = (0..WRITERS).map(|writer| {
        let value = &value;
        async move {
            let mut client = client::Client::connect(&scene.world, &scene.admin).await.unwrap();
            for number in (writer..MANY).step_by(WRITERS) {
                let map = json!({"metadata": {"name": format!("m{number}")}, "data": {"k": value}});
                let request = scene.admin.request(Method::POST, MAPS, map.to_string());
                client.ask(&scene.world, request).await.unwrap();
            }
        }
    });
    join_all(writers).await;
}

pub(crate) async fn unread_lists(scene: &Scene) -> String {
    let stream = client::connect(&scene.world, &scene.attacker, "h2").await.unwrap();
    // A window of no bytes: the server may send the headers of a response, but no body.
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let builder = builder.initial_stream_window_size(0);
    let (requests, connection) = builder.handshake::<_, Full<Bytes>>(stream).await.unwrap();
    let _driving = scene.world.spawn("connection", async move { drop(connection.await) });
    let lists = (0..STREAMS).map(|_| {
        let mut requests = requests.clone();
        async move {
            let request = scene.attacker.over_http2(scene.attacker.request(Method::GET, MAPS, ""));
            let response = scene.world.timeout(UNREAD, requests.send_request(request)).await;
            scene.world.sleep(UNREAD).await;
            match response {
                Ok(Ok(response)) => response.status().as_u16().to_string(),
                Ok(Err(_)) => "cut off".to_owned(),
                Err(_) => "waits".to_owned(),
            }
        }
    });
    counted(join_all(lists).await)
}

pub(crate) async fn masters_in_old_strings(scene: &Scene) -> String {
    let group = "system:masters";
    let strings = [
        DnValue::TeletexString(string::TeletexString::try_from(group).unwrap()),
        DnValue::BmpString(string::BmpString::try_from(group).unwrap()),
    ];
    let mut answers = Vec::new();
    for (number, organization) in strings.into_iter().enumerate() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, "mallory");
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let spec = json!({
            "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
        });
        let body = json!({"metadata": {"name": format!("r{number}")}, "spec": spec});
        let path = "POST /apis/certificates.k8s.io/v1/certificatesigningrequests";
        answers.push(scene.attack(path, JSON, body.to_string()).await);
    }
    counted(answers)
}

pub(crate) async fn endless_watch(scene: &Scene) -> String {
    let mut answers = Vec::new();
    for seconds in [i64::MAX, i64::MAX - 1, 1 << 62] {
        let path = format!("GET {PODS}?watch=1&timeoutSeconds={seconds}");
        let watching = scene.world.timeout(Duration::from_secs(1), scene.attack(&path, JSON, "")).await;
        answers.push(watching.unwrap_or_else(|_| "watches".to_owned()));
    }
    counted(answers)
}

pub(crate) async fn pod_on_a_node(scene: &Scene) {
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    scene.make(PODS, json!({"metadata": {"name": "p"}, "spec": spec})).await;
}

pub(crate) async fn endless_grace(scene: &Scene) -> String {
    scene.attack(&format!("DELETE {PODS}/p?gracePeriodSeconds={}", i64::MAX), JSON, "").await
}

pub(crate) async fn fill_the_store(scene: &Scene) -> String {
    let value = "x".repeat(1_000_000);
    let mut answers = Vec::new();
    for number in 0..1000 {
        let body = json!({"metadata": {"name": format!("m{number}")}, "data": {"k": value}});
        answers.push(scene.attack(&format!("POST {MAPS}"), JSON, body.to_string()).await);
    }
    counted(answers)
}

pub(crate) async fn future_token(scene: &Scene) -> String {
    let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":999999999,"start":"a"}"#);
    scene.attack(&format!("GET {MAPS}?limit=1&continue={token}"), JSON, "").await
}
