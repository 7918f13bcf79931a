//! Forks of snapshots.

use super::{Tested, client_of, code, create, maps, objects, put_map, try_create, with_cluster};
use kube::{Client, config::Kubeconfig};
use serde_json::json;

async fn value(client: &Client) -> String {
    maps(client).get("web").await.unwrap().data.unwrap().remove("k").unwrap()
}

#[test]
fn forks_of_a_snapshot_start_from_its_state() {
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        put_map(client, "web", "then").await;
        let snapshot = create(client, "Snapshot", "before", json!({})).await;
        put_map(client, "web", "now").await;
        let fork = async |name: &str| {
            let status = create(client, "Fork", name, json!({"snapshot": "before"})).await;
            assert_eq!(status["revision"], snapshot["revision"]);
            client_of(Kubeconfig::from_yaml(status["kubeconfig"].as_str().unwrap()).unwrap()).await
        };
        let one = fork("one").await;
        put_map(&one, "web", "changed in the fork").await;
        // Neither the first fork nor the end of the snapshot changes the second.
        let two = fork("two").await;
        objects(client, "Snapshot").delete("before", &Default::default()).await.unwrap();
        assert_eq!((value(&two).await.as_str(), value(client).await.as_str()), ("then", "now"));
        // A fork is reset to the state that it started from.
        create(&one, "Reset", "", json!({})).await;
        assert_eq!(value(&one).await, "then");
        let missing = try_create(client, "Fork", "three", json!({"snapshot": "before"})).await.unwrap_err();
        assert_eq!(code(&missing), 404, "{missing}");
    });
}
