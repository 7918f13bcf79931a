//! Objects between the versions of a custom resource: by a webhook, or with nothing changed but the apiVersion.

use super::{define, definition, disk, disks, simulate, start};
use crate::client::{send, send_with};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use server::{Answer, Config, Exchange, Outbound};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// A converter that calls the size amount in v2, as a webhook would.
#[derive(Debug, Default)]
struct Converter {
    asked: AtomicUsize,
    is_down: AtomicBool,
}

impl Outbound for Converter {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        self.asked.fetch_add(1, SeqCst);
        Box::pin(async move {
            if self.is_down.load(SeqCst) {
                return Err("connection refused".to_owned());
            }
            let review: Value = serde_json::from_slice(&exchange.body).unwrap();
            let request = &review["request"];
            let wanted = request["desiredAPIVersion"].as_str().unwrap();
            let (from, to) = if wanted.ends_with("v2") { ("size", "amount") } else { ("amount", "size") };
            let mut objects = request["objects"].as_array().unwrap().clone();
            for object in &mut objects {
                object["apiVersion"] = wanted.into();
                if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
                    object["spec"][to] = value;
                }
            }
            let response = json!({
                "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
            });
            let answer = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response,
            });
            Ok(Answer {
                status: 200,
                body: answer.to_string().into(),
                content_type: "application/json".to_owned(),
            })
        })
    }
}

fn converted(mut definition: Value) -> Value {
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://converter.example.com/convert"},
    }});
    definition
}

#[test]
fn a_webhook_converts_on_read_write_list_watch_and_apply() {
    simulate(|world| async move {
        let converter = Arc::new(Converter::default());
        let outbound: Arc<dyn Outbound> = Arc::<Converter>::clone(&converter);
        let server = start(&world, Config { outbound, ..Config::default() }).await;
        define(&server, &converted(definition("disks", "Disk"))).await;
        let (status, made) = send(&server, "POST", &disks("v2"), disk("v2", "a", json!({"amount": 7}))).await;
        assert_eq!((status, &made["spec"]), (201, &json!({"amount": 7})), "{made}");
        let (_, kept) = send(&server, "GET", &format!("{}/a", disks("v1")), "").await;
        assert_eq!(kept["spec"], json!({"size": 7}));
        send(&server, "POST", &disks("v1"), disk("v1", "b", json!({"size": 8}))).await;
        let before = converter.asked.load(SeqCst);
        let (_, list) = send(&server, "GET", &disks("v2"), "").await;
        let amounts: Vec<_> =
            list["items"].as_array().unwrap().iter().map(|it| &it["spec"]["amount"]).collect();
        assert_eq!(amounts, [7, 8]);
        assert_eq!(converter.asked.load(SeqCst), before + 1, "a list is converted at once");

        let watch = format!("{}?watch=1&timeoutSeconds=1&resourceVersion=1", disks("v2"));
        let (_, events) = send_with(&server, "GET", &watch, "application/json", "").await;
        let first: Value =
            serde_json::from_slice(events.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        assert_eq!(first["object"]["spec"], json!({"amount": 7}));

        let apply = |manager: &str| format!("{}/a?fieldManager={manager}", disks("v2"));
        let body = disk("v2", "a", json!({"amount": 7, "note": "mine"}));
        let (status, _) =
            send_with(&server, "PATCH", &apply("two"), "application/apply-patch+yaml", body).await;
        assert_eq!(status, 200);
        let path = format!("{}/a?fieldManager=one", disks("v1"));
        let body = disk("v1", "a", json!({"size": 9}));
        let (status, refused) =
            send_with(&server, "PATCH", &path, "application/apply-patch+yaml", body).await;
        let refused: Value = serde_json::from_slice(&refused).unwrap();
        assert_eq!(status, 409, "{refused}");
        let cause = &refused["details"]["causes"][0];
        let message = "conflict with \"two\"";
        assert_eq!((&cause["field"], &cause["message"]), (&json!(".spec.amount"), &json!(message)));
    });
}

#[test]
fn custom_objects_are_selected_by_the_fields_of_the_requested_version() {
    simulate(|world| async move {
        let outbound: Arc<dyn Outbound> = Arc::new(Converter::default());
        let server = start(&world, Config { outbound, ..Config::default() }).await;
        let mut definition = converted(definition("disks", "Disk"));
        for (at, field) in [".spec.size", ".spec.amount"].into_iter().enumerate() {
            definition["spec"]["versions"][at]["selectableFields"] = json!([{"jsonPath": field}]);
        }
        define(&server, &definition).await;
        send(&server, "POST", &disks("v2"), disk("v2", "a", json!({"amount": 7}))).await;
        send(&server, "POST", &disks("v1"), disk("v1", "b", json!({"size": 8}))).await;
        send(&server, "PUT", &format!("{}/b", disks("v2")), {
            let (_, mut changed) = send(&server, "GET", &format!("{}/b", disks("v2")), "").await;
            changed["spec"]["amount"] = 9.into();
            changed.to_string()
        })
        .await;
        for (version, field, expected) in [
            ("v2", "spec.amount%3D7", json!(["a"])),
            ("v2", "spec.amount!%3D7", json!(["b"])),
            ("v1", "spec.size%3D7", json!(["a"])),
            ("v2", "spec.amount%3D8", json!([])),
        ] {
            let path = format!("{}?fieldSelector={field}", disks(version));
            let (_, list) = send(&server, "GET", &path, "").await;
            let names: Value =
                list["items"].as_array().unwrap().iter().map(|it| it["metadata"]["name"].clone()).collect();
            assert_eq!(names, expected, "{version} {field}");
        }
        // From the first object on: `b` is selected, and then no longer.
        let since = "watch=1&timeoutSeconds=1&resourceVersion=1";
        let watch = format!("{}?{since}&fieldSelector=spec.amount%3D8", disks("v2"));
        let (_, events) = send_with(&server, "GET", &watch, "application/json", "").await;
        let events = events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events: Vec<Value> = events.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let kinds: Vec<_> =
            events.iter().map(|event| [&event["type"], &event["object"]["metadata"]["name"]]).collect();
        assert_eq!(kinds, [[&json!("ADDED"), &json!("b")], [&json!("DELETED"), &json!("b")]]);
    });
}

#[test]
fn a_webhook_that_is_down_is_named() {
    simulate(|world| async move {
        let converter = Arc::new(Converter::default());
        let outbound: Arc<dyn Outbound> = Arc::<Converter>::clone(&converter);
        let server = start(&world, Config { outbound, ..Config::default() }).await;
        define(&server, &converted(definition("disks", "Disk"))).await;
        send(&server, "POST", &disks("v1"), disk("v1", "a", json!({"size": 7}))).await;
        converter.is_down.store(true, SeqCst);
        let (status, told) = send(&server, "GET", &format!("{}/a", disks("v2")), "").await;
        let expected = "conversion webhook for example.com/v1, Kind=Disk failed: Post \
                        \"https://converter.example.com/convert?timeout=30s\": connection refused";
        assert_eq!((status, told["message"].as_str().unwrap()), (500, expected));
        // The stored version needs no conversion.
        assert_eq!(send(&server, "GET", &format!("{}/a", disks("v1")), "").await.0, 200);
    });
}

#[test]
fn what_a_version_does_not_know_makes_it_forget_its_owners() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        define(&server, &definition("disks", "Disk")).await;
        send(&server, "POST", &disks("v1"), disk("v1", "a", json!({"size": 1}))).await;
        let path = format!("{}/a", disks("v2"));
        for (body, owners) in [(r#"{"spec":{"note":"n"}}"#, Some(2)), (r#"{"spec":{"amount":2}}"#, None)] {
            let (_, patched) = send_with(&server, "PATCH", &path, "application/merge-patch+json", body).await;
            let patched: Value = serde_json::from_slice(&patched).unwrap();
            assert_eq!(patched["metadata"]["managedFields"].as_array().map(Vec::len), owners, "{patched}");
        }
    });
}
