//! Clusters that go on from one moment, each by itself.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
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

#[test]
fn a_fork_is_watched_from_a_version_before_the_snapshot() {
    testkit::run(|cluster| async move {
        let before = cluster.revision().await.to_string();
        cluster.apply(MAP).await;
        cluster.patch::<ConfigMap>("default", "web", &json!({"data": {"count": "1"}})).await;
        let fork = cluster.snapshot().await.fork(cluster.world()).await;
        fork.patch::<ConfigMap>("default", "web", &json!({"data": {"count": "2"}})).await;

        let maps: Api<ConfigMap> = Api::default_namespaced(fork.client());
        let events = maps.watch(&WatchParams::default(), &before).await.unwrap();
        let mut events = std::pin::pin!(events);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            match futures::StreamExt::next(&mut events).await.unwrap().unwrap() {
                WatchEvent::Added(map) => seen.push(("added", map.data.unwrap()["count"].clone())),
                WatchEvent::Modified(map) => seen.push(("modified", map.data.unwrap()["count"].clone())),
                other => panic!("{other:?}"),
            }
        }
        let expected = [("added", "0"), ("modified", "1"), ("modified", "2")];
        assert_eq!(seen, expected.map(|(event, count)| (event, count.to_owned())));
    });
}
