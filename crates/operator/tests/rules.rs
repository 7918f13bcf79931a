//! A controller under exactly the rules that its declarations give.

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use kube::{Api, ResourceExt};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, all,
    apply::{Force, Set},
    finalizer::{self, Lifecycle},
    rules::Access,
};
use serde_json::json;
use testkit::Cluster;

const NAMESPACE: &str = "default";
const ACCOUNT: &str = "copier";

/// Gives every map that asks for it a secret of its own, and says so.
fn copier() -> Controller {
    Controller::new("copier", all::<ConfigMap>())
        .owns(all::<Secret>())
        .applies::<Secret>()
        .reconcile((), copy)
}

async fn copy(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)?.filter(|map| map.labels().contains_key("copy")) else {
        return Ok(Next::Settled);
    };
    let maps: Api<ConfigMap> = context.namespaced(&key);
    finalizer::guard(&maps, (*map).clone(), "example.com/copy", |life| async {
        let Lifecycle::Live(map) = life else { return Ok(Next::Settled) };
        let mut secret = Secret::default();
        secret.metadata.name = Some(operator::name::child(&map.name_any(), "copy"));
        let mut set = Set::of(&map, context.controller())?;
        set.add(secret)?;
        set.apply(&context.client(), Force::Yes).await?;
        context.events().normal(&map, "Copied", "Copy", "there is a secret");
        Ok(Next::Settled)
    })
    .await
}

async fn manager(cluster: &Cluster) -> Manager {
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    Manager::new("copier", cluster.world(), cluster.client_as(&user, &groups))
        .elect_in(NAMESPACE)
        .controller(copier())
}

#[test]
fn the_declared_rules_suffice() {
    testkit::run(|cluster| async move {
        let manager = manager(&cluster).await;
        cluster.apply(&Access::new(NAMESPACE, ACCOUNT, &manager.declared()).yaml()).await;
        let running = manager.start();
        cluster.watch_idle("manager", running.idle_probe());
        cluster
            .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {copy: 'yes'}}}")
            .await;
        cluster.settle().await;
        assert!(cluster.find::<Secret>("default", "web-copy").await.is_some());
        assert_eq!(cluster.list::<Event>("default").await.len(), 1);

        cluster.delete::<ConfigMap>("default", "web").await;
        cluster.settle().await;
        assert!(cluster.find::<ConfigMap>("default", "web").await.is_none());
        let forbidden = cluster.trace().to_string();
        assert!(!forbidden.contains("403"), "{forbidden}");
        running.stop().await.unwrap();
    });
}

/// Or the test above would prove nothing.
#[test]
fn without_the_rules_the_manager_is_refused() {
    testkit::simulate(1, |cluster| async move {
        let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
        let api: Api<Secret> =
            Api::namespaced(cluster.client_as(&user, &["system:authenticated"]), "default");
        let map = serde_json::from_value(json!({ "metadata": { "name": "s" } })).unwrap();
        let refusal = api.create(&kube::api::PostParams::default(), &map).await.unwrap_err();
        assert!(matches!(refusal, kube::Error::Api(status) if status.code == 403));
    });
}
