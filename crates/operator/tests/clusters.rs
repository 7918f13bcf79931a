//! One manager and two clusters.

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use operator::{Context, Controller, Error, Failure, Key, Manager, Next, Running, all};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use testkit::{Cluster, Fault};

/// Copies the map from the manager's cluster to `east`.
async fn copy(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)?.filter(|_| key.name() == "web") else {
        return Ok(Next::Settled);
    };
    let east = context.in_cluster("east")?;
    let copy =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name()}, "data": map.data});
    let maps: Api<ConfigMap> = east.namespaced(&key);
    maps.patch(key.name(), &PatchParams::apply("copy").force(), &Patch::Apply(&copy)).await?;
    let cached = east.get::<ConfigMap>(&key)?.expect("an own write is in the cache of its cluster");
    assert_eq!(cached.data, map.data);
    east.events().normal(&*cached, "Copied", "Copy", "from the other cluster");
    Ok(Next::Settled)
}

fn copier(primary: &Cluster, east: Client) -> Manager {
    let copies = all::<ConfigMap>().in_cluster("east");
    let controller = Controller::new("copy", all::<ConfigMap>().in_namespace("default"))
        .watches(copies, |copy: &ConfigMap| vec![Key::of(copy)])
        .reconcile((), copy);
    Manager::new("copy", primary.world(), primary.client()).cluster("east", east).controller(controller)
}

async fn settle(running: &Running, clusters: [&Cluster; 2]) {
    for cluster in clusters {
        cluster.watch_idle("copy", running.idle_probe());
        cluster.settle().await;
    }
}

async fn data(cluster: &Cluster) -> String {
    let map = cluster.find::<ConfigMap>("default", "web").await;
    map.map_or_else(|| "none".to_owned(), |map| map.data.unwrap_or_default()["is"].clone())
}

async fn set(cluster: &Cluster, text: &str) {
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"is": text}});
    cluster.apply(&map.to_string()).await;
}

#[test]
fn a_controller_watches_and_writes_two_clusters() {
    testkit::run(|own| async move {
        let east = Cluster::start(own.world()).await;
        let running = copier(&own, east.client()).start();
        set(&own, "first").await;
        settle(&running, [&own, &east]).await;
        assert_eq!((data(&own).await, data(&east).await), ("first".into(), "first".into()));

        set(&east, "by hand").await;
        settle(&running, [&east, &own]).await;
        assert_eq!(data(&east).await, "first", "a change in the other cluster triggers a reconcile");
        assert_eq!(east.list::<Event>("default").await.len(), 1);
        assert_eq!(own.list::<Event>("default").await.len(), 0, "events are where their objects are");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_controller_waits_for_the_caches_of_all_its_clusters() {
    testkit::run(|own| async move {
        let east = Cluster::start(own.world()).await;
        set(&own, "first").await;
        let fault = east.inject(Fault::on("watch", "configmaps").always().error(500, "InternalError"));
        let lists = east.inject(Fault::on("list", "configmaps").always().error(500, "InternalError"));
        let running = copier(&own, east.client_as("op", &["system:masters"])).start();
        own.advance(Duration::from_secs(60)).await;
        assert_eq!(data(&east).await, "none");
        fault.lift();
        lists.lift();
        own.advance(Duration::from_secs(60)).await;
        assert_eq!(data(&east).await, "first");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_source_in_an_unknown_cluster_ends_the_manager() {
    testkit::run(|own| async move {
        let source = all::<ConfigMap>().in_cluster("west");
        let controller = Controller::new("copy", source).reconcile((), copy);
        let ended =
            Manager::new("copy", own.world(), own.client()).controller(controller).start().ended().await;
        assert!(
            matches!(&ended, Err(Error::UnknownCluster { cluster, .. }) if cluster == "west"),
            "{ended:?}"
        );
    });
}

/// The client for `east` that a reconcile has got.
type Kept = Arc<Mutex<Option<Client>>>;

#[test]
fn a_leader_that_has_lost_its_lease_writes_to_no_cluster() {
    testkit::run(|own| async move {
        let east = Cluster::start(own.world()).await;
        let kept = Kept::default();
        let keep = async |context: Context<Kept>, _: Key| {
            *context.state().lock().unwrap() = Some(context.in_cluster("east")?.client());
            Ok(Next::Settled)
        };
        let controller = Controller::new("keeper", all::<ConfigMap>())
            .reads(all::<ConfigMap>().in_cluster("east"))
            .reconcile(Arc::clone(&kept), keep);
        let manager = Manager::new("keeper", own.world(), own.client()).cluster("east", east.client());
        let running = manager.elect_in("default").controller(controller).start();
        set(&own, "first").await;
        own.advance(Duration::from_secs(5)).await;
        let client = kept.lock().unwrap().clone().expect("it was reconciled");
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let map = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &map("while-leading")).await.unwrap();

        own.patch::<Lease>("default", "keeper", &json!({"spec": {"holderIdentity": "another"}})).await;
        let ended = running.ended().await;
        assert!(matches!(ended, Err(Error::NoLongerLeading(_))), "{ended:?}");
        let refused = maps.create(&PostParams::default(), &map("afterwards")).await;
        assert!(refused.is_err(), "{refused:?}");
        assert!(east.find::<ConfigMap>("default", "afterwards").await.is_none());
    });
}
