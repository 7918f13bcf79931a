//! Clusters that go on from one moment, each by itself.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::json;

const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {count: '0'}}";

#[test]
fn forks_start_equal_and_change_independently() {
    testkit::run(|cluster| async move {
        cluster.apply(MAP).await;
        let there = cluster.snapshot().await;
        cluster.delete::<ConfigMap>("default", "web").await;

        let (left, right) = (there.fork(cluster.world()).await, there.fork(cluster.world()).await);
        assert_eq!(left.revision().await, right.revision().await);
        let was: ConfigMap = left.get("default", "web").await;
        assert_eq!(was, right.get::<ConfigMap>("default", "web").await);
        assert_eq!(left.list::<Namespace>(None).await, cluster.list::<Namespace>(None).await);

        left.patch::<ConfigMap>("default", "web", &json!({"data": {"count": "1"}})).await;
        assert_eq!(was, right.get::<ConfigMap>("default", "web").await);
        assert!(cluster.find::<ConfigMap>("default", "web").await.is_none());
    });
}

#[test]
fn a_fork_can_run_in_another_world() {
    let run = testkit::simulate(1, |cluster| async move {
        let applied = cluster.apply(MAP).await;
        (cluster.snapshot().await, applied[0]["metadata"]["uid"].clone())
    });
    let (there, uid) = run.output;
    for seed in 2..5 {
        let there = there.clone();
        let found = world::simulate(seed, |world| async move {
            let web: ConfigMap = there.fork(&world).await.get("default", "web").await;
            web.metadata.uid
        });
        assert_eq!(found.unwrap().output.unwrap(), uid);
    }
}
