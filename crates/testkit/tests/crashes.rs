//! Crashes at every write: what must be found, and what must hold.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use testkit::{Cluster, Crashes, crash_everywhere};
use world::Task;

/// An operator that writes three ConfigMaps under fixed names.
async fn idempotent(cluster: &Cluster) -> Task<()> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client_as("operator", &["system:masters"]), "default");
    cluster.world().spawn("operator", async move {
        for name in ["a", "b", "c"] {
            let params = PatchParams::apply("operator");
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            maps.patch(name, &params, &Patch::Apply(&body)).await.unwrap();
        }
    })
}

/// An operator that creates a ConfigMap under a new name whenever it starts and knows of none.
async fn forgetful(cluster: &Cluster) -> Task<()> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client_as("operator", &["system:masters"]), "default");
    cluster.world().spawn("operator", async move {
        let mut map = ConfigMap::default();
        map.metadata.generate_name = Some("made-".to_owned());
        maps.create(&PostParams::default(), &map).await.unwrap();
    })
}

/// All but the ConfigMap with the CA.
async fn maps_made(cluster: &Cluster) -> usize {
    let maps = cluster.list::<ConfigMap>("default").await;
    maps.iter().filter(|map| map.metadata.name.as_deref() != Some("kube-root-ca.crt")).count()
}

#[test]
fn every_write_is_tried_before_and_after_it() {
    let crashes = crash_everywhere("operator", idempotent, |cluster| async move {
        cluster.settle().await;
        assert_eq!(maps_made(&cluster).await, 3);
    });
    assert_eq!(crashes, Crashes { writes: 3, runs: 8 });
    assert_eq!(crashes.to_string(), "crashed before and after each of 3 writes, in 8 runs");
}

#[test]
#[should_panic(expected = "one map for each start")]
fn an_operator_that_forgets_what_it_has_created_is_found() {
    crash_everywhere("operator", forgetful, |cluster| async move {
        cluster.settle().await;
        assert_eq!(maps_made(&cluster).await, 1, "one map for each start");
    });
}
