//! The programs that the webhooks of these tests call.

use futures::future::BoxFuture;
use serde_json::{Value, json};
use server::{Answer, Exchange, Outbound};
use std::{sync::Mutex, time::Duration};
use world::World;

/// Webhooks: the path says how each behaves.
#[derive(Debug)]
pub(super) struct Elsewhere {
    world: World,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Elsewhere {
    pub(super) fn new(world: &World) -> Elsewhere {
        Elsewhere { world: world.clone(), asked: Mutex::default() }
    }

    /// The paths that were called since this was asked last.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().drain(..).map(|(path, _)| path).collect()
    }

    /// All reviews since the paths were asked last.
    pub(super) fn reviews(&self) -> Vec<Value> {
        self.asked.lock().unwrap().iter().map(|(_, review)| review.clone()).collect()
    }

    /// The review that was sent last.
    pub(super) fn last(&self) -> Value {
        self.asked.lock().unwrap().last().unwrap().1.clone()
    }
}

impl Outbound for Elsewhere {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            let path = exchange.url.split('/').next_back().unwrap().split('?').next().unwrap().to_owned();
            let review: Value = serde_json::from_slice(&exchange.body).unwrap();
            self.asked.lock().unwrap().push((path.clone(), review.clone()));
            let uid = &review["request"]["uid"];
            let patch = |patch: Value| {
                use base64::Engine;
                let text = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
                json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": text})
            };
            let response = match path.as_str() {
                "down" => return Err("connection refused".to_owned()),
                "broken" => {
                    return Ok(Answer { status: 500, body: "boom".into(), content_type: String::new() });
                }
                "redirect" => {
                    return Ok(Answer { status: 302, body: "".into(), content_type: String::new() });
                }
                "garbage" => {
                    return Ok(Answer {
                        status: 200,
                        body: "%$!".into(),
                        content_type: "application/json".to_owned(),
                    });
                }
                "hang" => {
                    self.world.sleep(Duration::from_secs(1000)).await;
                    Value::Null
                }
                "wrong-uid" => json!({"uid": "other", "allowed": true}),
                "deny" => json!({"uid": uid, "allowed": false, "status": {"message": "never"}}),
                "warn" => json!({"uid": uid, "allowed": true, "warnings": ["mind the gap"]}),
                "bad-patch" => patch(json!([{"op": "remove", "path": "/nowhere/else"}])),
                "label" => {
                    patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"made": "yes"}}]))
                }
                "elsewhere" => {
                    patch(json!([{"op": "replace", "path": "/metadata/namespace", "value": "elsewhere"}]))
                }
                "whole" => patch(json!([{"op": "replace", "path": "", "value": {
                    "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "whole"},
                    "metadata": {"name": review["request"]["name"], "namespace": review["request"]["namespace"]},
                }}])),
                "data" => patch(json!([{"op": "add", "path": "/data", "value": {"a": "b"}}])),
                "ports" => {
                    patch(json!([{"op": "add", "path": "/spec/ports/-", "value": {"name": "b", "port": 81}}]))
                }
                _ => json!({"uid": uid, "allowed": true}),
            };
            let answer = json!({
                "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
            });
            Ok(Answer {
                status: 200,
                body: answer.to_string().into(),
                content_type: "application/json".to_owned(),
            })
        })
    }
}
