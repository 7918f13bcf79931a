//! Watches and lists from compacted revisions.

use crate::client::{send, send_raw};
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;
use store::{Limits, Memory};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_compacted_revision_is_410_and_a_list_can_continue() {
    let run = world::simulate(5, |world| async move {
        let store =
            Arc::new(Memory::with_limits(Limits { changes: 20, bytes: 1 << 20, live_bytes: u64::MAX }));
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let create = async |name: String| {
            let body = json!({"metadata": {"name": name}}).to_string();
            assert_eq!(send(&server, "POST", PATH, body).await.0, 201);
        };
        for number in 0..5 {
            create(format!("a{number}")).await;
        }
        let (_, page) = send(&server, "GET", &format!("{PATH}?limit=2"), "").await;
        assert_eq!(page["metadata"]["remainingItemCount"], 3);
        let (version, token) = (&page["metadata"]["resourceVersion"], &page["metadata"]["continue"]);
        let (version, token) = (version.as_str().unwrap(), token.as_str().unwrap());
        for number in 0..40 {
            create(format!("b{number:02}")).await;
        }
        let (status, event) =
            send_raw(&server, "GET", &format!("{PATH}?watch=1&resourceVersion={version}"), "").await;
        let event: Value = serde_json::from_slice(&event).unwrap();
        assert_eq!((status, &event["type"], &event["object"]["code"]), (200, &json!("ERROR"), &json!(410)));
        assert_eq!(event["object"]["reason"], "Expired");

        let (status, expired) = send(&server, "GET", &format!("{PATH}?limit=2&continue={token}"), "").await;
        assert_eq!((status, &expired["reason"]), (410, &json!("Expired")), "{expired}");
        let fresh = expired["metadata"]["continue"].as_str().unwrap();
        let (status, page) = send(&server, "GET", &format!("{PATH}?limit=100&continue={fresh}"), "").await;
        let names: Vec<_> =
            page["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
        assert_eq!(
            (status, names.len(), names[0]),
            (200, 43, &json!("a2")),
            "it goes on where it was, at the latest"
        );
    });
    run.unwrap();
}
