//! The work of a request grows linearly with its size, not quadratically: for every list and map of every
//! built-in kind.
//!
//! Each is sent with few entries and with many, and the CPU times are compared. `SETPOINT_GROWTH=20000`
//! sets the larger number, for an optimised build.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

#[expect(dead_code, reason = "other tests use more of it")]
mod client;
#[expect(dead_code, reason = "other tests use more of it")]
mod counted;
#[path = "growth/pairs.rs"]
mod pairs;

use client::send_with;
use kinds::resources::{Resource, Scope};
use schema::types::{Node, TypeId, Types};
use serde_json::{Map, Value, json};
use server::{Config, Server};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// Entries of the long list; the short one has this fraction of them.
const ENTRIES: usize = 1600;
const TIMES: usize = 8;
/// Linear work grows by [`TIMES`], quadratic work by its square: this lies between.
const TOO_MUCH: u32 = 22;
/// Shorter work is not compared: other costs dominate.
const MIN_COMPARED: Duration = Duration::from_millis(15);
/// Lists nested deeper are not searched.
const MAX_DEPTH: usize = 9;

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// A list or map of a kind, and its path.
struct Place {
    resource: &'static Resource,
    of: TypeId,
    path: Vec<String>,
}

/// The entries of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entries {
    Different,
    Same,
}

fn places() -> Vec<Place> {
    let types = kinds::types();
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    // Stored kinds first: others may be rejected before they are validated.
    let all = kinds::resources::resources();
    let kept = all.iter().filter(|resource| resource.storage.is_some());
    for resource in kept.chain(all.iter().filter(|resource| resource.storage.is_none())) {
        let Some((of, _)) = types.kind(&resource.group, &resource.version, &resource.kind) else { continue };
        if resource.verbs.iter().any(|verb| verb == "create") {
            walk(types, of, &mut Vec::new(), &mut known, &mut |path| {
                found.push(Place { resource, of, path: path.to_vec() });
            });
        }
    }
    found
}

/// Every list and map below a type that was not found before.
fn walk(
    types: &Types,
    of: TypeId,
    path: &mut Vec<String>,
    known: &mut BTreeSet<(String, String)>,
    found: &mut impl FnMut(&[String]),
) {
    if path.len() == MAX_DEPTH {
        return;
    }
    let of = types.get(of);
    for field in of.fields() {
        path.push(field.name.to_string());
        let inner = match &field.node {
            Node::List(list) => Some(&list.items),
            Node::Map(map) => Some(&map.values),
            _ => None,
        };
        let is_new = known.insert((of.name.to_string(), field.name.to_string()));
        if is_new {
            if inner.is_some() {
                found(path);
            }
            if let Some(below) = inner.unwrap_or(&field.node).object() {
                walk(types, below, path, known, found);
            }
        }
        path.pop();
    }
}

impl Place {
    fn collection(&self) -> String {
        let Resource { group, version, name, scope, .. } = self.resource;
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let namespace = if *scope == Scope::Namespaced { "namespaces/default/" } else { "" };
        format!("{root}/{version}/{namespace}{name}")
    }

    fn about(&self) -> String {
        format!("{}.{}", self.resource.kind, self.path.join("."))
    }

    fn object(&self, count: usize, entries: Entries) -> Value {
        let mut object = filled(kinds::types(), self.of, &self.path, count, entries);
        let api_version = match &*self.resource.group {
            "" => self.resource.version.to_string(),
            group => format!("{group}/{}", self.resource.version),
        };
        object["apiVersion"] = api_version.into();
        object["kind"] = self.resource.kind.as_ref().into();
        object["metadata"]["name"] = "a".into();
        object
    }
}

/// An object with little but the list or map at the path.
fn filled(types: &Types, of: TypeId, path: &[String], count: usize, entries: Entries) -> Value {
    let mut object = sample(types, &Node::Object(of), 0, 1);
    let (name, below) = path.split_first().unwrap();
    let field = types.get(of).field(name).unwrap();
    let number = |at: usize| if entries == Entries::Same { 0 } else { at };
    object[name.as_str()] = match (&field.node, below.is_empty()) {
        (Node::List(list), true) => {
            (0..count).map(|at| sample(types, &list.items, number(at), 2)).collect::<Vec<_>>().into()
        }
        (Node::Map(map), true) => {
            let entry = |at: usize| (format!("k{at}"), sample(types, &map.values, number(at), 2));
            (0..count).map(entry).collect::<Map<_, _>>().into()
        }
        (Node::List(list), false) => {
            json!([filled(types, list.items.object().unwrap(), below, count, entries)])
        }
        (Node::Map(map), false) => {
            json!({"k": filled(types, map.values.object().unwrap(), below, count, entries)})
        }
        (node, _) => filled(types, node.object().unwrap(), below, count, entries),
    };
    object
}

/// A value that fits a node, with its simple members set.
fn sample(types: &Types, node: &Node, number: usize, depth: usize) -> Value {
    match node {
        Node::String => format!("x{number}").into(),
        Node::Bool => true.into(),
        Node::Int32 | Node::Int64 | Node::IntOrString => (number % 60_000 + 1).into(),
        Node::Double => json!(0.5),
        Node::Bytes => "eA==".into(),
        Node::Time => "2026-01-01T00:00:00Z".into(),
        Node::MicroTime => "2026-01-01T00:00:00.000000Z".into(),
        Node::Quantity => number.to_string().into(),
        Node::Raw | Node::FieldsV1 | Node::Json => json!({}),
        Node::Either(..) => json!({}),
        Node::List(_) => json!([]),
        Node::Map(_) => json!({}),
        Node::Object(id) | Node::AtomicObject(id) => {
            let mut members = Map::new();
            for field in types.get(*id).fields() {
                let is_deep = matches!(field.node, Node::Object(_) | Node::AtomicObject(_));
                let is_simple =
                    !is_deep && !matches!(field.node, Node::List(_) | Node::Map(_) | Node::Either(..));
                if (is_simple && depth > 0 && depth != 1) || (is_deep && depth > 2) {
                    members.insert(field.name.to_string(), sample(types, &field.node, number, depth - 1));
                }
            }
            members.into()
        }
    }
}

fn entries() -> usize {
    let asked = std::env::var("SETPOINT_GROWTH").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(ENTRIES)
}

/// Entries of objects that are stored before they are patched: more would exceed the limit of an object.
fn patched_entries() -> usize {
    entries().min(8_000)
}

/// Compares the work for few entries with that for many; suspicious results are measured again.
async fn compare_work(about: &str, many: usize, work: impl AsyncFn(usize)) -> Option<String> {
    let mut worst = None;
    for _ in 0..3 {
        let measure = async |count: usize| {
            let before = counted::processor_time();
            work(count).await;
            counted::processor_time().saturating_sub(before)
        };
        let long = measure(many).await;
        if long < MIN_COMPARED {
            return None;
        }
        let short = measure(many / TIMES).await.min(measure(many / TIMES).await);
        if long < short * TOO_MUCH {
            return None;
        }
        worst = Some(format!("{about}: {short:?} for {} entries, {long:?} for {many}", many / TIMES));
    }
    worst
}

fn assert_none(worst: &[String]) {
    assert!(worst.is_empty(), "{} grow too much:\n{}", worst.len(), worst.join("\n"));
}

/// A part of all places, so that tests run in parallel.
fn share(part: usize, parts: usize) -> impl Iterator<Item = Place> {
    places().into_iter().enumerate().filter(move |(at, _)| at % parts == part).map(|(_, place)| place)
}

fn check_creates(part: usize) {
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        let mut worst = Vec::new();
        for place in share(part, 2) {
            for sort in [Entries::Different, Entries::Same] {
                let path = format!("{}?dryRun=All&fieldValidation=Warn", place.collection());
                let (place, server, path) = (&place, &server, &path);
                let about = format!("create {} {sort:?}", place.about());
                let found = compare_work(&about, entries(), async |count| {
                    let body = place.object(count, sort).to_string();
                    send_with(server, "POST", path, JSON, body).await;
                });
                worst.extend(found.await);
            }
        }
        assert_none(&worst);
    })
    .unwrap();
}

#[test]
fn creates_of_every_kind_grow_with_their_size() {
    check_creates(0);
}

#[test]
fn creates_of_every_kind_grow_with_their_size_second_half() {
    check_creates(1);
}

/// Compares two long objects.
#[test]
fn changes_of_every_kind_grow_with_their_size() {
    world::simulate(1, |_| async move {
        let mut worst = Vec::new();
        for place in places() {
            let Resource { group, version, kind, .. } = place.resource;
            for sort in [Entries::Different, Entries::Same] {
                let place = &place;
                let about = format!("change {} {sort:?}", place.about());
                let found = compare_work(&about, entries(), async |count| {
                    let old = place.object(count, sort);
                    let mut new = old.clone();
                    new["metadata"]["labels"] = json!({"a": "b"});
                    kinds::validate::update(group, version, kind, &new, &old);
                    kinds::validate::warnings(group, version, kind, &new, Some(&old));
                });
                worst.extend(found.await);
            }
        }
        assert_none(&worst);
    })
    .unwrap();
}

fn variables(count: usize, value: &str) -> Vec<Value> {
    (0..count).map(|at| json!({"name": format!("V{at}"), "value": value})).collect()
}

fn pod(count: usize, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{count}")},
        "spec": {"containers": [{"name": "c", "image": "i", "env": variables(count, value)}]},
    })
}

fn with_metadata(count: usize, field: &str, entry: impl Fn(usize) -> Value) -> Value {
    let entries: Vec<Value> = (0..count).map(entry).collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{count}"), field: entries},
        "data": {"a": "b"},
    })
}

fn owner(at: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{at}"), "uid": format!("u{at}")})
}

fn manager(at: usize) -> Value {
    json!({
        "manager": format!("m{at}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {format!("f:k{at}"): {}}},
    })
}

/// Each operation inserts an item before all others.
fn inserts(count: usize) -> Value {
    let insert =
        |at| json!({"op": "add", "path": "/spec/containers/0/env/0", "value": {"name": format!("N{at}")}});
    (0..count.min(9_000)).map(insert).collect::<Vec<_>>().into()
}

#[test]
fn patches_and_applies_grow_with_their_size() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    type Body = fn(usize) -> Value;
    let cases: [(&str, &str, &str, Body); 11] = [
        ("apply of a list by keys", PODS, APPLY, |count| pod(count, "new")),
        (
            "strategic patch of a list by keys",
            PODS,
            STRATEGIC,
            |count| json!({"spec": {"containers": [{"name": "c", "env": variables(count, "new")}]}}),
        ),
        ("strategic patch with an order", PODS, STRATEGIC, |count| {
            let names: Vec<Value> =
                variables(count, "").iter().map(|it| json!({"name": it["name"]})).collect();
            json!({"spec": {"containers": [
                {"name": "c", "env": variables(count, "new"), "$setElementOrder/env": names},
            ]}})
        }),
        ("merge patch", PODS, MERGE, |count| json!({"spec": pod(count, "new")["spec"]})),
        ("JSON patch of a list", PODS, JSON_PATCH, inserts),
        ("apply of owners", MAPS, APPLY, |count| with_metadata(count, "ownerReferences", owner)),
        ("apply of finalizers", MAPS, APPLY, |count| {
            with_metadata(count, "finalizers", |at| json!(format!("example.com/f{at}")))
        }),
        (
            "strategic patch of owners",
            MAPS,
            STRATEGIC,
            |count| json!({"metadata": with_metadata(count, "ownerReferences", owner)["metadata"]}),
        ),
        ("strategic patch that retains keys", MAPS, STRATEGIC, |count| {
            let keys: Vec<String> = (0..count).map(|at| format!("k{at}")).collect();
            let data: Map<String, Value> = keys.iter().map(|key| (key.clone(), "v".into())).collect();
            let mut data = Value::Object(data);
            data["$retainKeys"] = json!(keys);
            json!({"data": data})
        }),
        ("update with managers", MAPS, JSON, |count| with_metadata(count, "managedFields", manager)),
        ("apply of a map", MAPS, APPLY, |count| {
            let data: Map<String, Value> = (0..count).map(|at| (format!("k{at}"), "v".into())).collect();
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{count}")}, "data": data})
        }),
    ];
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        for count in [patched_entries(), patched_entries() / TIMES] {
            let made = send_with(&server, "POST", PODS, JSON, pod(count, "old").to_string()).await;
            assert_eq!(made.0, 201, "{:?}", made.1);
            let map = json!({"metadata": {"name": format!("m{count}")}}).to_string();
            assert_eq!(send_with(&server, "POST", MAPS, JSON, map).await.0, 201);
        }
        let mut worst = Vec::new();
        for (about, collection, content_type, body) in cases {
            let server = &server;
            let found = compare_work(about, patched_entries(), async move |count| {
                let name = if collection == PODS { format!("p{count}") } else { format!("m{count}") };
                let path = format!("{collection}/{name}?dryRun=All&fieldManager=test&force=true");
                let path = if content_type == APPLY { path } else { path.replace("&force=true", "") };
                let method = if content_type == JSON { "PUT" } else { "PATCH" };
                send_with(server, method, &path, content_type, body(count).to_string()).await;
            });
            worst.extend(found.await);
        }
        assert_none(&worst);
    })
    .unwrap();
}
