//! Custom resources: versions, names, and how a definition goes.

mod conversion;

use crate::{
    client::{send, send_with},
    slow_store::{Slow, StoreAccess},
};
use serde_json::{Value, json};
use server::{Config, Server};
use std::{sync::Arc, time::Duration};
use world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// `plural.example.com` in v1, the storage version, and v2, with another name for the size.
fn definition(plural: &str, kind: &str) -> Value {
    let version = |name: &str, field: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    field: {"type": "integer"}, "note": {"type": "string"},
                }},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        })
    };
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [version("v1", "size", true), version("v2", "amount", false)],
        },
    })
}

fn disks(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/disks")
}

fn disk(version: &str, name: &str, spec: Value) -> String {
    let api_version = format!("example.com/{version}");
    json!({"apiVersion": api_version, "kind": "Disk", "metadata": {"name": name}, "spec": spec}).to_string()
}

async fn start(world: &World, config: Config) -> Server {
    let server = Server::start(world, Arc::new(store::Memory::new()), config).await.unwrap();
    let body = json!({"metadata": {"name": "default"}}).to_string();
    let (status, _) = send(&server, "POST", "/api/v1/namespaces", body).await;
    assert!(matches!(status, 201 | 409));
    server
}

async fn define(server: &Server, definition: &Value) -> Value {
    let (status, answer) = send(server, "POST", DEFINITIONS, definition.to_string()).await;
    assert_eq!(status, 201, "{answer}");
    send(server, "GET", &format!("{DEFINITIONS}/{}", name(definition)), "").await.1
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn condition<'a>(definition: &'a Value, condition_type: &str) -> &'a Value {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|it| it["type"] == condition_type).unwrap_or(&Value::Null)
}

fn simulate<F>(story: impl FnOnce(World) -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let () = world::simulate(11, story).unwrap().output;
}

#[test]
fn a_definitions_status_has_the_time_of_its_write() {
    simulate(|world| async move {
        let delay = |access: StoreAccess<'_>| match access {
            StoreAccess::Commit => Duration::from_millis(1500),
            StoreAccess::Get(_) => Duration::ZERO,
        };
        let store = Arc::new(Slow::new(&world, delay));
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let defined = define(&server, &definition("disks", "Disk")).await;
        let written = &defined["metadata"]["creationTimestamp"];
        let owners = defined["metadata"]["managedFields"].as_array().unwrap();
        let conditions = defined["status"]["conditions"].as_array().unwrap();
        let times = owners.iter().map(|owner| &owner["time"]);
        let times: Vec<_> = times.chain(conditions.iter().map(|it| &it["lastTransitionTime"])).collect();
        assert_eq!(times, [written; 4], "{defined}");
    });
}

#[test]
fn a_definition_can_be_used_as_soon_as_it_is_created() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        assert_eq!(send(&server, "GET", &disks("v1"), "").await.0, 404);
        let made = define(&server, &definition("disks", "Disk")).await;
        assert_eq!(condition(&made, "Established")["status"], "True", "{made}");
        let (status, answer) = send(&server, "POST", &disks("v1"), disk("v1", "a", json!({"size": 5}))).await;
        assert_eq!(status, 201, "{answer}");
        // Without a webhook, versions differ only in the fields that their schemas keep.
        let (_, other) = send(&server, "GET", &format!("{}/a", disks("v2")), "").await;
        assert_eq!((&other["apiVersion"], &other["spec"]), (&json!("example.com/v2"), &json!({})));
        let (_, list) = send(&server, "GET", &disks("v2"), "").await;
        assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("DiskList"), &json!("example.com/v2")));
        let (_, found) = send(&server, "GET", "/apis/example.com", "").await;
        assert_eq!(found["preferredVersion"]["version"], "v2");
    });
}

#[test]
fn a_name_in_use_is_not_accepted_until_it_is_free() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        define(&server, &definition("disks", "Disk")).await;
        let late = define(&server, &definition("platters", "Disk")).await;
        assert_eq!(condition(&late, "NamesAccepted")["reason"], "ListKindConflict", "{late}");
        assert_eq!(condition(&late, "Established")["status"], "False");
        assert_eq!(send(&server, "GET", "/apis/example.com/v1/platters", "").await.0, 404);
        send(&server, "DELETE", &format!("{DEFINITIONS}/disks.example.com"), "").await;
        let (_, late) = send(&server, "GET", &format!("{DEFINITIONS}/platters.example.com"), "").await;
        assert_eq!(condition(&late, "Established")["status"], "True", "{late}");
        assert_eq!(send(&server, "GET", "/apis/example.com/v1/platters", "").await.0, 200);
    });
}

#[test]
fn a_deleted_definition_waits_for_its_objects() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        define(&server, &definition("disks", "Disk")).await;
        let held = json!({"apiVersion": "example.com/v1", "kind": "Disk",
            "metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
        send(&server, "POST", &disks("v1"), held.to_string()).await;
        send(&server, "POST", &disks("v1"), disk("v1", "free", json!({}))).await;
        let one = format!("{DEFINITIONS}/disks.example.com");
        let (status, going) = send(&server, "DELETE", &one, "").await;
        assert_eq!((status, &condition(&going, "Terminating")["status"]), (200, &json!("True")), "{going}");
        let (_, left) = send(&server, "GET", &disks("v1"), "").await;
        assert_eq!((left["items"].as_array().unwrap().len(), name(&left["items"][0])), (1, "held"));
        let (status, refused) = send(&server, "POST", &disks("v1"), disk("v1", "new", json!({}))).await;
        assert_eq!(status, 403, "{refused}");
        let (_, going) = send(&server, "GET", &one, "").await;
        assert_eq!(condition(&going, "Terminating")["reason"], "InstanceDeletionInProgress");
        let release = json!({"metadata": {"finalizers": null}}).to_string();
        let path = format!("{}/held", disks("v1"));
        assert_eq!(send_with(&server, "PATCH", &path, "application/merge-patch+json", release).await.0, 200);
        assert_eq!(send(&server, "GET", &one, "").await.0, 404);
        assert_eq!(send(&server, "GET", &disks("v1"), "").await.0, 404);
        // A new definition finds no objects of the old one.
        define(&server, &definition("disks", "Disk")).await;
        let (_, list) = send(&server, "GET", &disks("v1"), "").await;
        assert_eq!(list["items"], json!([]));
    });
}

#[test]
fn a_later_default_is_read_but_not_stored() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        define(&server, &definition("disks", "Disk")).await;
        let (_, before) = send(&server, "POST", &disks("v1"), disk("v1", "a", json!({"size": 5}))).await;
        let note = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/note/default";
        let patch = json!([{"op": "add", "path": note, "value": "none"}]).to_string();
        let one = format!("{DEFINITIONS}/disks.example.com");
        let (status, _) = send_with(&server, "PATCH", &one, "application/json-patch+json", patch).await;
        assert_eq!(status, 200);
        for path in [disks("v1") + "/a", disks("v1")] {
            let (_, found) = send(&server, "GET", &path, "").await;
            let object = found["items"].get(0).unwrap_or(&found);
            assert_eq!(object["spec"], json!({"size": 5, "note": "none"}), "{path}");
            assert_eq!(object["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
        }
    });
}

#[test]
fn a_write_without_changes_migrates_an_object_to_the_storage_version() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        define(&server, &definition("disks", "Disk")).await;
        let (_, made) = send(&server, "POST", &disks("v1"), disk("v1", "a", json!({"note": "n"}))).await;
        let path = disks("v1") + "/a";
        let patch = async || {
            let (status, answer) =
                send_with(&server, "PATCH", &path, "application/merge-patch+json", "{}").await;
            assert_eq!(status, 200, "{answer:?}");
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            answer["metadata"]["resourceVersion"].clone()
        };
        let at_first = made["metadata"]["resourceVersion"].clone();
        assert_eq!(patch().await, at_first);
        let other = json!([
            {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
        ]);
        let one = format!("{DEFINITIONS}/disks.example.com");
        let (status, _) =
            send_with(&server, "PATCH", &one, "application/json-patch+json", other.to_string()).await;
        assert_eq!(status, 200);
        let migrated = patch().await;
        assert_ne!(migrated, at_first);
        assert_eq!(patch().await, migrated);
    });
}

#[test]
fn an_applied_null_status_is_ignored_without_a_status_and_rejected_with_one() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        let mut definition = definition("disks", "Disk");
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
        *definition.pointer_mut(schema).unwrap() =
            json!({"type": "object", "properties": {"phase": {"type": "string"}}});
        define(&server, &definition).await;
        send(&server, "POST", &disks("v1"), disk("v1", "a", json!({}))).await;
        let path = format!("{}/a/status?fieldManager=m", disks("v1"));
        let refusal = "Disk.example.com \"a\" is invalid: status: Invalid value: \"null\":  in body must be of type \
                       object: \"null\"";
        for (status, code, message) in
            [(json!(null), 200, ""), (json!({"phase": "x"}), 200, ""), (json!(null), 422, refusal)]
        {
            let body = json!({"apiVersion": "example.com/v1", "kind": "Disk", "status": status}).to_string();
            let (found, answer) =
                send_with(&server, "PATCH", &path, "application/apply-patch+yaml", body).await;
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(found, code, "{answer}");
            assert_eq!(answer["message"].as_str().unwrap_or_default(), message);
            assert!(code != 200 || answer.get("status").is_none_or(|status| !status.is_null()), "{answer}");
        }
    });
}

#[test]
fn invalid_requests_get_the_texts_of_the_custom_resource_handler() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        define(&server, &definition("disks", "Disk")).await;
        let (list, one) = (disks("v1"), format!("{}/a", disks("v1")));
        send(&server, "POST", &list, disk("v1", "a", json!({}))).await;
        let body_of = |kind: &str| {
            format!(r#"{{"apiVersion":"example.com/v1","kind":"{kind}","metadata":{{"name":"q"}}}}"#)
        };
        let unreadable = "the object provided is unrecognized (must be of type Disk): ";
        for (what, body, code, message) in [
            (format!("GET {one}/scale"), String::new(), 404, r#"disks.example.com "a" not found"#.to_owned()),
            (
                format!("DELETE {one}/status"),
                String::new(),
                405,
                r#"delete is not supported on resources of kind "disks.example.com""#.to_owned(),
            ),
            (format!("PUT {list}"), body_of("Disk"), 400, "name must be provided".to_owned()),
            (format!("POST {one}"), body_of("Disk"), 201, String::new()),
            (
                format!("POST {list}"),
                body_of("Other"),
                422,
                r#"Other.example.com "q" is invalid: kind: Invalid value: "Other": must be Disk"#.to_owned(),
            ),
            (
                format!("POST {list}"),
                "{}".to_owned(),
                400,
                format!("{unreadable}Object 'Kind' is missing in '{{}}' ({{}})"),
            ),
            (
                format!("POST {list}"),
                "{".to_owned(),
                400,
                format!(
                    "{unreadable}couldn't get version/kind; json parse error: unexpected end of JSON input ({{)"
                ),
            ),
            (
                "GET /apis/apps/v1beta1/deployments".to_owned(),
                String::new(),
                404,
                "the server could not find the requested resource".to_owned(),
            ),
        ] {
            let (method, path) = what.split_once(' ').unwrap();
            let (status, answer) = send(&server, method, path, body).await;
            assert_eq!((status, answer["message"].as_str().unwrap_or_default()), (code, &*message), "{what}");
        }
        // A list has an empty `continue`, and a definition is deleted without grace period.
        let (_, found) = send(&server, "GET", &list, "").await;
        assert_eq!(found["metadata"]["continue"], "", "{found}");
        let (_, gone) = send(&server, "DELETE", &format!("{DEFINITIONS}/disks.example.com"), "").await;
        assert_eq!(gone["metadata"]["generation"], 1, "{gone}");
        assert_eq!(gone["metadata"].get("deletionGracePeriodSeconds"), None, "{gone}");
    });
}

#[test]
fn what_an_apply_empties_and_another_owns_is_null() {
    simulate(|world| async move {
        let server = start(&world, Config::default()).await;
        let mut definition = definition("disks", "Disk");
        let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/labels";
        let (parent, _) = schema.rsplit_once('/').unwrap();
        definition.pointer_mut(parent).unwrap()["labels"] = labels;
        define(&server, &definition).await;
        let path = |manager: &str| format!("{}/a?fieldManager={manager}", disks("v1"));
        send(&server, "POST", &disks("v1"), disk("v1", "a", json!({"labels": {}}))).await;
        for (spec, code, message) in [
            (json!({"labels": {"x": "y"}}), 200, ""),
            (
                json!({}),
                422,
                "Disk.example.com \"a\" is invalid: spec.labels: Invalid value: \"null\": spec.labels in body must be \
                 of type object: \"null\"",
            ),
        ] {
            let body = disk("v1", "a", spec);
            let (status, answer) =
                send_with(&server, "PATCH", &path("one"), "application/apply-patch+yaml", body).await;
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!((status, answer["message"].as_str().unwrap_or_default()), (code, message), "{answer}");
        }
    });
}
