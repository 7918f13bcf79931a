//! Definitions whose status could not be written at first: it is written later, without another request.

use crate::{
    client::send,
    slow_store::{Slow, StoreAccess},
};
use serde_json::{Value, json};
use server::{Config, Server};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const KEY: &[u8] = b"/registry/apiextensions.k8s.io/customresourcedefinitions/disks.example.com";

fn definition() -> String {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "metadata": {"name": "disks.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "disks", "singular": "disk", "kind": "Disk", "listKind": "DiskList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
    .to_string()
}

/// A server whose store accepts a definition, then fails that many writes to it.
async fn start(world: &World, failures: usize) -> (Server, Arc<AtomicUsize>) {
    let tried = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&tried);
    let store = Slow::new(world, |_: StoreAccess<'_>| Duration::ZERO).failing(move |batch| {
        let is_change =
            |write: &store::Write| write.key == KEY && write.condition != store::Condition::Absent;
        if !batch.writes().iter().any(is_change) {
            return None;
        }
        let before = counting.fetch_add(1, Relaxed);
        (before < failures).then(|| store::Error::Unavailable("no leader".to_owned()))
    });
    let server = Server::start(world, Arc::new(store), Config::default()).await.unwrap();
    (server, tried)
}

async fn is_established(server: &Server) -> bool {
    let (code, found) = send(server, "GET", &format!("{DEFINITIONS}/disks.example.com"), "").await;
    assert_eq!(code, 200, "{found}");
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|it: &Value| it["type"] == "Established" && it["status"] == "True")
}

#[test]
fn a_definition_that_failed_to_establish_is_retried() {
    world::simulate(1, |world| async move {
        let (server, tried) = start(&world, 4).await;
        let (code, made) = send(&server, "POST", DEFINITIONS, definition()).await;
        assert_eq!(code, 201, "the definition itself is stored: {made}");
        assert!(!is_established(&server).await);
        let path = "/apis/example.com/v1/namespaces/default/disks";
        assert_eq!(send(&server, "GET", path, "").await.0, 404);
        assert_eq!(tried.load(Relaxed), 1);
        // Retries after one second, then doubled each time: at 1, 3, 7 and 15 seconds.
        for (seconds, expected) in [(2, 2), (2, 3), (4, 4)] {
            world.sleep(Duration::from_secs(seconds)).await;
            assert_eq!(tried.load(Relaxed), expected, "after {seconds} seconds more");
            assert!(!is_established(&server).await);
        }
        world.sleep(Duration::from_secs(8)).await;
        assert!(is_established(&server).await);
        assert_eq!(send(&server, "GET", path, "").await.0, 200);
        // Then there are no more retries.
        world.sleep(Duration::from_secs(300)).await;
        assert_eq!(tried.load(Relaxed), 5);
    })
    .unwrap();
}

#[test]
fn several_failed_requests_lead_to_one_retry_at_a_time() {
    world::simulate(1, |world| async move {
        let (server, tried) = start(&world, 12).await;
        assert_eq!(send(&server, "POST", DEFINITIONS, definition()).await.0, 201);
        // A write to the group also reconciles the waiting definition, and fails.
        let other = definition().replace("disks", "tapes").replace("Disk", "Tape").replace("disk", "tape");
        for _ in 0..3 {
            assert_eq!(send(&server, "POST", DEFINITIONS, other.clone()).await.0 / 100, 2);
            assert_eq!(send(&server, "DELETE", &format!("{DEFINITIONS}/tapes.example.com"), "").await.0, 200);
        }
        let by_requests = tried.load(Relaxed);
        world.sleep(Duration::from_millis(1500)).await;
        assert_eq!(tried.load(Relaxed), by_requests + 1, "one task retries, however many requests failed");
        world.sleep(Duration::from_secs(120)).await;
        assert!(is_established(&server).await);
    })
    .unwrap();
}
