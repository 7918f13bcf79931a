//! Each effect of a fault, and what it matches, as an HTTP client sees it.

use super::{Tested, code, create, map, maps, objects, put_map, raw, try_create, with_cluster};
use futures::{StreamExt, pin_mut};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};

/// The cluster alone, so that the tests make all requests.
const ALONE: [&str; 5] = ["--ephemeral", "--controllers", "", "--nodes", "0"];
const ONE: &str = "/api/v1/namespaces/default/configmaps/one";
/// The map that each namespace has from the start.
const ROOT_CA: &str = "kube-root-ca.crt";
/// A code that the server itself never sends.
const CODE: u16 = 599;

async fn delete_fault(client: &Client, name: &str) -> u64 {
    let hits = objects(client, "Fault").get(name).await.unwrap().data["status"]["hits"].as_u64().unwrap();
    objects(client, "Fault").delete(name, &DeleteParams::default()).await.unwrap();
    hits
}

#[test]
fn a_fault_hits_what_its_match_says() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        let requests = [
            ("GET", ONE, "first/1"),
            ("GET", "/api/v1/namespaces/default/configmaps/two", "second/1"),
            ("GET", "/api/v1/namespaces/kube-system/configmaps", "first/1"),
            ("GET", "/api/v1/configmaps?watch=1&timeoutSeconds=1", "second/1"),
            ("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", "second/1"),
            ("PATCH", "/apis/apps/v1/namespaces/default/deployments/one/status", "second/1"),
            ("DELETE", "/api/v1/namespaces/default/configmaps/two", "first/1"),
        ];
        for (matching, expected) in [
            (json!({}), &[0, 1, 2, 3, 4, 5, 6][..]),
            (json!({"verb": "get"}), &[0, 1]),
            (json!({"verb": "list"}), &[2]),
            (json!({"verb": "watch"}), &[3]),
            (json!({"verb": "write"}), &[4, 5, 6]),
            (json!({"resource": "configmaps"}), &[0, 1, 2, 3, 4, 6]),
            (json!({"resource": "deployments/status"}), &[5]),
            (json!({"resource": "deployments"}), &[]),
            (json!({"group": "apps"}), &[5]),
            (json!({"group": ""}), &[0, 1, 2, 3, 4, 6]),
            (json!({"namespace": "kube-system"}), &[2]),
            (json!({"name": "one"}), &[0, 5]),
            (json!({"client": "first/"}), &[0, 2, 6]),
            (json!({"user": "kubernetes-admin", "verb": "get"}), &[0, 1]),
            (json!({"user": "somebody"}), &[]),
            (json!({"verb": "get", "name": "one", "client": "second"}), &[]),
        ] {
            create(client, "Fault", "any", json!({"match": matching, "refuse": {"code": CODE}})).await;
            let mut hit = Vec::new();
            for (number, (method, path, agent)) in requests.iter().enumerate() {
                let headers = [("user-agent", *agent), ("content-type", "application/json")];
                let response = raw(client, method, path, &headers, r#"{"metadata": {"name": "x"}}"#).await;
                if response.status() == CODE {
                    hit.push(number);
                }
            }
            assert_eq!(hit, expected, "{matching}");
            assert_eq!(delete_fault(client, "any").await, expected.len() as u64, "{matching}");
        }
    });
}

#[test]
fn a_refusal_has_the_usual_reason_of_its_code() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        for (refuse, reason) in [
            (json!({"code": 410}), "Expired"),
            (json!({"code": 404}), "NotFound"),
            (json!({"code": 409, "reason": "AlreadyExists"}), "AlreadyExists"),
            (json!({}), "InternalError"),
        ] {
            create(client, "Fault", "any", json!({"match": {"name": "one"}, "refuse": refuse})).await;
            let refused = maps(client).get("one").await.unwrap_err();
            assert!(refused.to_string().contains(reason), "{refused}");
            delete_fault(client, "any").await;
        }
    });
}

#[test]
fn what_can_never_come_true_is_refused() {
    with_cluster(&ALONE, async |tested: &Tested| {
        for (kind, spec, told) in [
            (
                "Fault",
                json!({"match": {"verb": "gets"}, "delay": "1s"}),
                "spec.match.verb: Unsupported value",
            ),
            (
                "Settle",
                json!({"quiet": "1h", "timeout": "2s"}),
                "spec.timeout: 2s is not longer than spec.quiet",
            ),
        ] {
            let refused = try_create(&tested.client, kind, "any", spec).await.unwrap_err();
            assert!(refused.to_string().contains(told), "{refused}");
        }
    });
}

#[test]
fn a_lost_request_is_not_carried_out_and_a_lost_answer_is() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        for (lost, is_there) in [("Request", false), ("Answer", true)] {
            let spec = json!({"match": {"verb": "create"}, "times": 1, "lose": lost});
            create(client, "Fault", &lost.to_lowercase(), spec).await;
            let error = maps(client).create(&PostParams::default(), &map("one", "1")).await.unwrap_err();
            assert_eq!(code(&error), 0, "the connection breaks: {error}");
            assert_eq!(maps(client).get_opt("one").await.unwrap().is_some(), is_there, "{lost}");
        }
    });
}

#[test]
fn a_delayed_request_is_carried_out_later_by_the_clock_of_the_cluster() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        create(client, "Fault", "slow", json!({"match": {"verb": "create"}, "delay": "1h"})).await;
        let (maps, late, params) = (maps(client), map("late", "1"), PostParams::default());
        let creating = maps.create(&params, &late);
        let advancing = async {
            let busy = try_create(client, "Settle", "", json!({"timeout": "200ms"})).await.unwrap_err();
            assert!(busy.to_string().contains("create /api/v1/namespaces/default/configmaps"), "{busy}");
            assert!(maps.get_opt("late").await.unwrap().is_none(), "not yet");
            create(client, "Advance", "", json!({"by": "61m"})).await;
        };
        let (created, ()) = futures::future::join(creating, advancing).await;
        assert_eq!(created.unwrap().name_any(), "late");
        create(client, "Settle", "", json!({})).await;
    });
}

#[test]
fn a_stale_read_shows_the_past_in_every_form() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        put_map(client, "one", "old").await;
        put_map(client, "one", "new").await;
        let value = |map: ConfigMap| map.data.unwrap().remove("k").unwrap();
        create(client, "Fault", "past", json!({"match": {"name": "one"}, "stale": {"revisions": 1}})).await;
        create(client, "Fault", "lists", json!({"match": {"verb": "list"}, "stale": {"revisions": 1}})).await;
        assert_eq!(value(maps(client).get("one").await.unwrap()), "old");
        let listed = maps(client).list(&ListParams::default()).await.unwrap();
        let listed = listed.items.into_iter().find(|map| map.name_any() == "one");
        assert_eq!(listed.map(value).as_deref(), Some("old"));
        let metadata = maps(client).get_metadata("one").await.unwrap();
        assert_eq!(metadata.types.unwrap().kind, "PartialObjectMetadata");
        for (accept, kind) in [
            ("application/vnd.kubernetes.protobuf,application/json", "ConfigMap"),
            ("application/vnd.kubernetes.protobuf", "ConfigMap"),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ] {
            let headers = [("accept", accept), ("accept-encoding", "gzip")];
            let response = raw(client, "GET", ONE, &headers, "").await;
            assert_eq!(response.status(), 200, "{accept}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let object: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(object["kind"], kind, "{accept}");
        }
        // An object that was not there yet.
        put_map(client, "two", "new").await;
        let early = json!({"match": {"name": "two"}, "stale": {"revisions": 1}});
        create(client, "Fault", "early", early).await;
        assert!(maps(client).get_opt("two").await.unwrap().is_none());
        // What has no past is as it is.
        let deleted = maps(client).delete("one", &DeleteParams::default()).await;
        assert!(deleted.is_ok(), "{:?}", deleted.err());
    });
}

#[test]
fn a_stale_watch_starts_in_the_past() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        put_map(client, "one", "old").await;
        let version = put_map(client, "one", "new").await.resource_version().unwrap();
        create(client, "Fault", "past", json!({"match": {"verb": "watch"}, "stale": {"revisions": 1}})).await;
        let watched = maps(client);
        let events = watched.watch(&WatchParams::default(), &version).await.unwrap();
        pin_mut!(events);
        let Some(Ok(WatchEvent::Modified(map))) = events.next().await else { panic!("no change") };
        assert_eq!(map.resource_version(), Some(version), "it was told already");
    });
}

/// Whether an event tells of the first map.
fn is_first(event: Option<kube::Result<WatchEvent<ConfigMap>>>) -> bool {
    matches!(event, Some(Ok(WatchEvent::Added(map))) if map.name_any() == ROOT_CA)
}

#[test]
fn a_watch_is_cut_closed_or_late() {
    with_cluster(&ALONE, async |tested: &Tested| {
        let client = &tested.client;
        put_map(client, "one", "1").await;
        let watched: Api<ConfigMap> = maps(client);
        for (how, is_error) in [("Cut", true), ("Close", false)] {
            let spec = json!({"match": {"verb": "watch"}, "times": 1, "endWatch": {"after": 1, "how": how}});
            create(client, "Fault", &how.to_lowercase(), spec).await;
            let path = "/api/v1/namespaces/default/configmaps?watch=1";
            let mut body = raw(client, "GET", path, &[], "").await.into_body();
            let event = body.frame().await.unwrap().unwrap().into_data().unwrap();
            let event: Value = serde_json::from_slice(&event).unwrap();
            assert_eq!(event["object"]["metadata"]["name"], ROOT_CA, "{how}");
            assert_eq!(body.frame().await.is_some_and(|end| end.is_err()), is_error, "{how}");
        }
        create(client, "Fault", "late", json!({"match": {"verb": "watch"}, "lagWatch": "10m"})).await;
        let events = watched.watch(&WatchParams::default(), "0").await.unwrap();
        pin_mut!(events);
        let busy = try_create(client, "Settle", "", json!({"timeout": "200ms"})).await.unwrap_err();
        assert!(busy.to_string().contains("an event of configmaps that comes late"), "{busy}");
        create(client, "Advance", "", json!({"by": "11m"})).await;
        assert!(is_first(events.next().await));
    });
}
