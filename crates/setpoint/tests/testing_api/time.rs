//! The clock: what an advance brings about, what becomes of one whose client leaves, and settling on a frozen clock.

use super::{Tested, create, objects, with_cluster};
use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use world::Timestamp;

/// Three hundred days, in seconds: far more than an advance does while its client waits a moment.
const DISTANCE: i64 = 300 * 24 * 3600;

async fn freeze(client: &Client) {
    let patch = Patch::Merge(json!({"spec": {"frozen": true}}));
    objects(client, "Clock").patch("cluster", &PatchParams::default(), &patch).await.unwrap();
}

async fn now(client: &Client) -> Timestamp {
    let clock = objects(client, "Clock").get("cluster").await.unwrap();
    clock.data["status"]["now"].as_str().unwrap().parse().unwrap()
}

#[test]
fn an_advance_whose_client_leaves_lets_the_clock_go_on() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = &tested.client;
        let begun = now(client).await;
        {
            let advance =
                std::pin::pin!(create(client, "Advance", "", json!({"by": format!("{DISTANCE}s")})));
            // Until it is under way.
            let watching =
                std::pin::pin!(async { while now(client).await.duration_since(begun).as_secs() < 60 {} });
            let first = futures::future::select(advance, watching).await;
            assert!(matches!(first, futures::future::Either::Right(_)), "it is not over yet");
        }
        // The next one waits for the end of the first.
        create(client, "Advance", "", json!({"by": "1s"})).await;
        let left = now(client).await;
        assert!(left.duration_since(begun).as_secs() < DISTANCE, "it stopped before its end");
        let advances = objects(client, "Advance").list(&ListParams::default()).await.unwrap().items;
        assert_eq!(advances.len(), 1, "the first one is removed");
        for _ in 0..1000 {
            if now(client).await > left {
                return;
            }
        }
        panic!("the clock stands still");
    });
}

#[test]
fn a_finished_job_is_removed_when_its_time_to_live_is_over() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = &tested.client;
        let jobs: Api<Job> = Api::namespaced(client.clone(), "default");
        let job = json!({"metadata": {"name": "short"}, "spec": {"ttlSecondsAfterFinished": 3600, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}}}});
        jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
        create(client, "Advance", "", json!({"by": "30m"})).await;
        let job = jobs.get("short").await.unwrap();
        assert_eq!(job.status.and_then(|status| status.succeeded), Some(1));
        create(client, "Advance", "", json!({"by": "31m"})).await;
        assert!(jobs.get_opt("short").await.unwrap().is_none());
    });
}

#[test]
fn a_settle_on_a_frozen_clock_ends_when_pods_run() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = &tested.client;
        freeze(client).await;
        let before = now(client).await;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        let deployment = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        deployments
            .create(&PostParams::default(), &serde_json::from_value(deployment).unwrap())
            .await
            .unwrap();
        create(client, "Settle", "", json!({})).await;
        let ready = deployments.get("web").await.unwrap().status.and_then(|status| status.ready_replicas);
        assert_eq!(ready, Some(2));
        let after = now(client).await;
        assert!(after.duration_since(before).as_secs() < 60, "only back-offs move the clock");
        assert_eq!(now(client).await, after, "it is still frozen");
    });
}
