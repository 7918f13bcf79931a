//! The webhook of the recordings: the path of its URL selects its behaviour.

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use server::{Answer, Exchange, Outbound};
use std::time::Duration;
use world::World;

pub(crate) const URL: &str = "https://hook.example.com";
/// Not verified here.
pub(crate) const AUTHORITY: &str = "Y2VydGlmaWNhdGU=";

#[derive(Debug)]
pub(super) struct Webhook(pub(super) World);

impl Outbound for Webhook {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            let path = exchange.url.split('?').next().unwrap();
            let behaviour = path.rsplit('/').next().unwrap();
            if behaviour == "slow" {
                self.0.sleep(Duration::from_secs(3)).await;
            }
            if behaviour == "broken" {
                return Ok(Answer {
                    status: 500,
                    body: "boom".into(),
                    content_type: "application/json".to_owned(),
                });
            }
            let review: Value = serde_json::from_slice(&exchange.body).unwrap();
            let response = respond(behaviour, &review["request"]);
            let answer =
                json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
            Ok(Answer {
                status: 200,
                body: answer.to_string().into(),
                content_type: "application/json".to_owned(),
            })
        })
    }
}

fn respond(behaviour: &str, request: &Value) -> Value {
    let uid = &request["uid"];
    match behaviour {
        "convert" => {
            let wanted = request["desiredAPIVersion"].as_str().unwrap();
            let objects = request["objects"].as_array().unwrap().iter();
            let objects: Vec<Value> = objects.map(|object| convert(object.clone(), wanted)).collect();
            json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects})
        }
        "deny" => {
            json!({"uid": uid, "allowed": false, "status": {"message": "this webhook denies everything"}})
        }
        "deny-code" => {
            let status = json!({"code": 418, "reason": "Teapot", "message": "short and stout"});
            json!({"uid": uid, "allowed": false, "status": status})
        }
        "warn" => json!({"uid": uid, "allowed": true, "warnings": ["mind the gap", "second warning"]}),
        label if label.starts_with("label") => {
            let has_labels =
                request["object"]["metadata"]["labels"].as_object().is_some_and(|it| !it.is_empty());
            let mut patch = Vec::new();
            if !has_labels {
                patch.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
            }
            patch.push(json!({"op": "add", "path": format!("/metadata/labels/{label}"), "value": "yes"}));
            let patch = STANDARD.encode(Value::Array(patch).to_string());
            json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch})
        }
        _ => json!({"uid": uid, "allowed": true}),
    }
}

/// v1 has `spec.host` and `spec.port`; v2 has `spec.endpoint`, `host:port`.
fn convert(mut object: Value, wanted: &str) -> Value {
    let spec = &mut object["spec"];
    if wanted.ends_with("/v2") && spec.get("host").is_some() {
        let endpoint = format!("{}:{}", spec["host"].as_str().unwrap(), spec["port"]);
        *spec = json!({"endpoint": endpoint});
    } else if wanted.ends_with("/v1")
        && let Some((host, port)) = spec["endpoint"].as_str().and_then(|endpoint| endpoint.split_once(':'))
    {
        *spec = json!({"host": host, "port": port.parse::<u16>().unwrap()});
    }
    object["apiVersion"] = wanted.into();
    object
}
