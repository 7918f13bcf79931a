//! Writes that meet conflicts on a server, done again on fresh state.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use operator::retry::{Written, create_or_update};
use serde_json::json;
use testkit::{Cluster, Fault};

async fn set(cluster: &Cluster, value: &str) -> kube::Result<Written<ConfigMap>> {
    let blank = json!({ "metadata": { "name": "m", "namespace": "default" } });
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    create_or_update(cluster.world(), &api, serde_json::from_value(blank).unwrap(), |map| {
        map.data.get_or_insert_default().insert("k".into(), value.into());
    })
    .await
}

fn verb<K>(written: &Written<K>) -> &'static str {
    match written {
        Written::Created(_) => "created",
        Written::Updated(_) => "updated",
        Written::Unchanged(_) => "unchanged",
    }
}

#[test]
fn an_object_is_created_updated_or_left_unchanged() {
    testkit::run(|cluster| async move {
        for (value, expected) in [("1", "created"), ("1", "unchanged"), ("2", "updated")] {
            let written = set(&cluster, value).await.unwrap();
            assert_eq!(verb(&written), expected);
            assert_eq!(written.into_object().data.unwrap()["k"], value);
        }
    });
}

#[test]
fn conflicts_are_retried_on_fresh_state() {
    testkit::run(|cluster| async move {
        // The answer to the create is lost: the next attempt finds it there.
        cluster.inject(Fault::on("create", "configmaps").nth(1).error(409, "AlreadyExists"));
        assert_eq!(verb(&set(&cluster, "1").await.unwrap()), "created");
        let struck = cluster.inject(Fault::on("update", "configmaps").times(2).conflict());
        assert_eq!(verb(&set(&cluster, "2").await.unwrap()), "updated");
        assert_eq!(struck.hits(), 2);
        cluster.inject(Fault::on("update", "configmaps").always().conflict());
        assert!(set(&cluster, "3").await.is_err());
    });
}
