//! Programs outside of the test reach its cluster over a real socket.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use std::{path::PathBuf, time::Duration};
use testkit::Fault;

const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {count: '0'}}";

/// A client of others, with sockets: runs `work` with it and waits for the end.
fn with_client<T, F: Future<Output = T>>(kubeconfig: PathBuf, work: impl FnOnce(Client) -> F) -> T {
    tokio::runtime::Handle::current().block_on(async {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        work(Client::try_from(config).unwrap()).await
    })
}

#[test]
fn a_client_outside_reads_writes_and_watches() {
    testkit::simulate(1, |cluster| async move {
        cluster.apply(MAP).await;
        let path = cluster.kubeconfig().to_owned();
        let seen = cluster.outside(move || {
            with_client(path, |client| async move {
                let maps: Api<ConfigMap> = Api::default_namespaced(client);
                let list = maps.list(&ListParams::default()).await.unwrap();
                let version = list.metadata.resource_version.unwrap();
                let events = maps.watch(&WatchParams::default().timeout(60), &version).await.unwrap();
                let mut events = std::pin::pin!(events);
                let map = serde_json::from_value(json!({"metadata": {"name": "made"}})).unwrap();
                maps.create(&PostParams::default(), &map).await.unwrap();
                match futures::StreamExt::next(&mut events).await {
                    Some(Ok(WatchEvent::Added(map))) => map.metadata.name.unwrap(),
                    other => panic!("{other:?}"),
                }
            })
        });
        assert_eq!(seen.await, "made");
        cluster.get::<ConfigMap>("default", "made").await;
        let trace = cluster.trace();
        let callers: Vec<&str> =
            trace.of("*", "configmaps").iter().map(|entry| entry.caller.as_str()).collect();
        assert_eq!(callers, ["admin", "kubernetes-admin", "kubernetes-admin", "kubernetes-admin", "admin"]);
    });
}

#[test]
fn virtual_time_follows_the_wall_while_the_test_waits() {
    let run = testkit::simulate(1, |cluster| async move {
        let path = cluster.kubeconfig().to_owned();
        let slow = Duration::from_millis(200);
        cluster.inject(Fault::on("list", "configmaps").delay(slow));
        let waited = cluster.outside(move || {
            with_client(path, |client| async move {
                let maps: Api<ConfigMap> = Api::default_namespaced(client);
                maps.list(&ListParams::default()).await.map(|_| ())
            })
        });
        waited.await.unwrap();
    });
    assert!(run.elapsed >= Duration::from_millis(200), "{:?}", run.elapsed);
    assert!(run.elapsed < Duration::from_secs(60), "{:?}", run.elapsed);
}

#[test]
fn a_pause_ends_when_the_kubeconfig_is_removed_and_strangers_are_refused() {
    testkit::simulate(1, |cluster| async move {
        let path = cluster.kubeconfig().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let stranger = path.with_extension("stranger");
        let token = text.lines().find(|line| line.contains("token:")).unwrap();
        std::fs::write(&stranger, text.replace(token, "    token: guess")).unwrap();
        let refused = cluster.outside({
            let stranger = stranger.clone();
            move || {
                with_client(stranger, |client| async move {
                    Api::<ConfigMap>::default_namespaced(client).get("web").await.unwrap_err()
                })
            }
        });
        assert!(matches!(refused.await, kube::Error::Api(status) if status.code == 401));
        std::fs::remove_file(stranger).unwrap();
        std::fs::remove_file(&path).unwrap();
        cluster.pause().await;
    });
}
