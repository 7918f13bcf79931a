//! Replays recorded responses of Kubernetes v1.36, request by request, in virtual time.
//!
//! `golden/*.json` are recordings: each step is a request and the normalised response.
//! `golden/differences.txt` names the steps that differ today, with the reason; the test fails when another
//! step differs, and also when a named one no longer does.

pub(crate) mod webhook;

use crate::normalise::Normaliser;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use server::{Config, Server, TokenFile};
use std::{collections::BTreeMap, fmt::Write, path::Path, sync::Arc, time::Duration};
use world::World;

#[test]
fn responses_equal_the_recorded_ones_of_kubernetes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let listed = std::fs::read_to_string(directory.join("differences.txt")).unwrap();
    let listed = listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let listed: BTreeMap<_, _> = listed.map(|line| line.split_once(' ').unwrap()).collect();
    let mut files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    let mut report = String::new();
    let (mut same, mut differing) = (0, Vec::new());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let scenario: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let found = world::simulate(7, |world| async move { replay(world, &scenario).await }).unwrap().output;
        for (number, differences) in found.into_iter().enumerate() {
            let step = format!("{name}/{number}");
            match (differences.is_empty(), listed.contains_key(step.as_str())) {
                (true, false) => same += 1,
                (true, true) => {
                    writeln!(report, "{step} is the same now: take it out of differences.txt").unwrap()
                }
                (false, true) => differing.push(step),
                (false, false) => {
                    writeln!(report, "{step} differs:\n    {}", differences.join("\n    ")).unwrap()
                }
            }
        }
    }
    assert!(report.is_empty(), "{same} steps are the same, {} differ as listed\n{report}", differing.len());
}

/// The recorded callers: one of system:masters, one in a group, one in none.
const CALLERS: &str = "\
admin-token,admin,u-admin,system:masters
alice-token,alice,u-alice,devs
bob-token,bob,u-bob
";

/// The differences of each step.
async fn replay(world: World, scenario: &Value) -> Vec<Vec<String>> {
    let store = Arc::new(store::Memory::new());
    let outbound = Arc::new(webhook::Webhook(world.clone()));
    let config = Config { tokens: TokenFile::parse(CALLERS).unwrap(), outbound, ..Config::default() };
    let server = Server::start(&world, store, config).await.unwrap();
    let namespace = "g-abcdefgh";
    let mut run =
        Run { world, server, normaliser: Normaliser::new(namespace, "qwerty"), saved: BTreeMap::new() };
    let body = json!({"metadata": {"name": namespace}});
    let made = run.send(&json!({"do": "POST /api/v1/namespaces", "body": body})).await;
    assert_eq!(made.status, 201);
    let mut all = Vec::new();
    for step in scenario["steps"].as_array().unwrap() {
        let answer = run.answer(step).await;
        let mut differences = Vec::new();
        compare(&step["answer"], &answer, "", &mut differences);
        all.push(differences);
    }
    all
}

struct Run {
    world: World,
    server: Server,
    normaliser: Normaliser,
    saved: BTreeMap<String, String>,
}

struct Answer {
    status: u16,
    content_type: String,
    warnings: Vec<String>,
    raw: bytes::Bytes,
    body: Value,
    is_protobuf: bool,
}

impl Run {
    /// Sends a step until its `until` holds; returns the normalised response.
    async fn answer(&mut self, step: &Value) -> Value {
        if let Some(seconds) = step["sleep"].as_f64() {
            self.world.sleep(Duration::from_secs_f64(seconds)).await;
        }
        let until = self.fill(&step["until"]);
        let deadline = self.world.now() + Duration::from_secs(5);
        let answer = loop {
            let answer = self.send(step).await;
            let holds =
                until.as_object().into_iter().flatten().all(|(pointer, wanted)| match pointer.as_str() {
                    "status" => *wanted == answer.status,
                    pointer => look_up(&answer.body, pointer) == *wanted,
                });
            if holds || self.world.now() > deadline {
                break answer;
            }
            self.world.sleep(Duration::from_millis(50)).await;
        };
        if let Some(name) = step["keep"].as_str() {
            self.saved.insert(name.to_owned(), STANDARD.encode(&answer.raw));
        }
        for (name, pointer) in step["save"].as_object().into_iter().flatten() {
            let value = look_up(&answer.body, pointer.as_str().unwrap());
            self.saved.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        if step["status-only"] == true {
            return json!({ "status": answer.status });
        }
        let mut body = if answer.is_protobuf { json!("<protobuf>") } else { answer.body };
        body = self.normaliser.value(&body, "");
        for pointer in step["ignore"].as_array().into_iter().flatten() {
            let parts: Vec<_> =
                pointer.as_str().unwrap().split('/').filter(|part| !part.is_empty()).collect();
            remove(&mut body, &parts);
        }
        if let Some(only) = step["only"].as_array() {
            let only = only.iter().map(|pointer| pointer.as_str().unwrap());
            body = only
                .map(|pointer| (pointer.to_owned(), look_up(&body, pointer)))
                .collect::<Map<_, _>>()
                .into();
        }
        let mut normal = json!({"status": answer.status, "content-type": answer.content_type, "body": body});
        if !answer.warnings.is_empty() {
            let warnings = answer.warnings.iter().map(|warning| self.normaliser.text(warning));
            normal["warnings"] = warnings.collect();
        }
        normal
    }

    async fn send(&self, step: &Value) -> Answer {
        let filled = self.fill(step);
        let (method, path) = filled["do"].as_str().unwrap().split_once(' ').unwrap();
        let body = if let Some(raw) = filled["raw"].as_str() {
            raw.as_bytes().to_vec()
        } else if let Some(encoded) = filled["base64"].as_str() {
            let bytes = STANDARD.decode(encoded).unwrap();
            self.normaliser.with_namespace(&bytes)
        } else if filled.get("body").is_some() {
            serde_json::to_vec(&filled["body"]).unwrap()
        } else {
            Vec::new()
        };
        let mut request = Request::builder().method(method).uri(path).header(header::USER_AGENT, "golden");
        let headers = request.headers_mut().unwrap();
        headers.insert(header::ACCEPT, "application/json".parse().unwrap());
        headers.insert(header::HOST, "127.0.0.1:6443".parse().unwrap());
        if !body.is_empty() || filled.get("raw").is_some() {
            headers.insert(header::CONTENT_TYPE, content_type(&filled).parse().unwrap());
        }
        let caller = filled["as"].as_str().unwrap_or("admin");
        if caller != "nobody" {
            headers.insert(header::AUTHORIZATION, format!("Bearer {caller}-token").parse().unwrap());
        }
        for (name, value) in filled["headers"].as_object().into_iter().flatten() {
            let name: http::HeaderName = name.parse().unwrap();
            headers.insert(name, value.as_str().unwrap().parse().unwrap());
        }
        let request = request.body(Full::<bytes::Bytes>::from(body)).unwrap();
        let response = self.server.handle(request).await;
        let status = response.status().as_u16();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let content_type = response.headers().get(header::CONTENT_TYPE).map(text).unwrap_or_default();
        let warnings = response.headers().get_all(header::WARNING).iter().map(text).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let is_protobuf =
            content_type.starts_with("application/vnd.kubernetes.protobuf") && bytes.starts_with(b"k8s\0");
        let is_watch = path.contains("watch=") && method == "GET";
        let content_type = content_type.split(";charset").next().unwrap_or_default().to_owned();
        let body = parse(&bytes, is_watch);
        Answer { status, content_type, warnings, raw: bytes, body, is_protobuf }
    }

    /// Fills in values that earlier steps saved.
    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = self.normaliser.fill(text);
                for (name, saved) in &self.saved {
                    text = text.replace(&format!("$({name})"), saved);
                }
                text.into()
            }
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(members) => {
                let fill = |(key, value): (&String, &Value)| {
                    let key = self.fill(&key.as_str().into());
                    (key.as_str().unwrap().to_owned(), self.fill(value))
                };
                members.iter().map(fill).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }
}

fn content_type(step: &Value) -> String {
    match step["type"].as_str() {
        Some("json") => "application/json-patch+json".to_owned(),
        Some("merge") => "application/merge-patch+json".to_owned(),
        Some("strategic") => "application/strategic-merge-patch+json".to_owned(),
        Some("apply") => "application/apply-patch+yaml".to_owned(),
        Some(other) => other.to_owned(),
        None => "application/json".to_owned(),
    }
}

/// JSON, or JSON on each line, or text.
fn parse(bytes: &[u8], is_watch: bool) -> Value {
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        return if is_watch && value.get("type").is_some() { json!([value]) } else { value };
    }
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.split('\n').filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return json!("");
    }
    let parsed: Result<Vec<Value>, _> = lines.iter().map(|line| serde_json::from_str(line)).collect();
    parsed.map_or_else(|_| text.into_owned().into(), Value::from)
}

fn look_up(value: &Value, pointer: &str) -> Value {
    let pointer: String =
        pointer.split('/').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect();
    value.pointer(&pointer).cloned().unwrap_or_default()
}

fn remove(value: &mut Value, parts: &[&str]) {
    let Some((first, rest)) = parts.split_first() else { return };
    let name = first.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(members) if rest.is_empty() => drop(members.remove(&name)),
        Value::Object(members) if name == "*" => members.values_mut().for_each(|member| remove(member, rest)),
        Value::Object(members) => members.get_mut(&name).into_iter().for_each(|member| remove(member, rest)),
        Value::Array(items) if name == "*" => items.iter_mut().for_each(|item| remove(item, rest)),
        Value::Array(items) => {
            let item = name.parse::<usize>().ok().and_then(|at| items.get_mut(at));
            item.into_iter().for_each(|item| remove(item, rest));
        }
        _ => {}
    }
}

fn compare(want: &Value, got: &Value, at: &str, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(wanted), Value::Object(found)) => {
            let keys: std::collections::BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
            for key in keys {
                match (wanted.get(key), found.get(key)) {
                    (Some(want), Some(got)) => compare(want, got, &format!("{at}/{key}"), out),
                    (Some(want), None) => out.push(format!("{at}/{key}: missing, want {want}")),
                    (None, got) => out.push(format!("{at}/{key}: not expected, got {}", got.unwrap())),
                }
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (nth, (want, got)) in wanted.iter().zip(found).enumerate() {
                compare(want, got, &format!("{at}/{nth}"), out);
            }
        }
        _ if want == got => {}
        _ => out.push(format!("{at}: got {got}, want {want}")),
    }
}
