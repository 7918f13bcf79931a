//! The database operator with a control plane in the test.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use example_database::{Backups, FINALIZER, NAME, controller, definition, site, v1, v1beta1, webhooks};
use k8s_openapi::api::{apps::v1::StatefulSet, events::v1::Event};
use kube::ResourceExt;
use operator::{
    Manager, Running, condition, definition as definitions,
    webhook::{self, Address},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use testkit::Cluster;

const ORDERS: &str =
    "{apiVersion: example.com/v1, kind: Database, metadata: {name: orders}, spec: {engine: Postgres}}";
const OLD_ORDERS: &str = "{apiVersion: example.com/v1beta1, kind: Database, metadata: {name: orders}, spec: {engine: Postgres, storage: 20Gi}}";

/// Backups in memory.
#[derive(Default)]
struct Shelf(Mutex<BTreeSet<String>>);

impl Backups for Shelf {
    fn save(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned());
        Ok(())
    }
}

fn manager(cluster: &Cluster, user: &str, shelf: &Arc<Shelf>) -> Manager {
    let client = cluster.client_as(user, &["system:masters"]);
    Manager::new(NAME, cluster.world(), client).controller(controller(Arc::clone(shelf) as _))
}

/// A replica as in production: with webhooks, and elected.
fn start(cluster: &Cluster, user: &str, shelf: &Arc<Shelf>) -> Running {
    let site = site(Address::Url("https://database.example.com".to_owned()));
    let manager = manager(cluster, user, shelf).elect_in("default");
    cluster.run(manager.webhooks(webhooks(), ([127, 0, 0, 1], 0), site))
}

async fn begin(cluster: &Cluster) -> Arc<Shelf> {
    cluster.apply(&definitions::yaml(&definition())).await;
    Arc::default()
}

/// As the controller of StatefulSets would.
async fn make_ready(cluster: &Cluster, replicas: i32) {
    let status = json!({"status": {"replicas": replicas, "readyReplicas": replicas}});
    cluster.patch_status::<StatefulSet>("default", "orders", &status).await;
    cluster.settle().await;
}

#[test]
fn a_database_of_the_old_version_gets_defaults_and_keeps_to_the_rules() {
    testkit::run(|cluster| async move {
        let shelf = begin(&cluster).await;
        let _operator = start(&cluster, "database", &shelf);
        cluster.advance(Duration::from_secs(5)).await;
        cluster.apply(OLD_ORDERS).await;
        cluster.settle().await;
        let orders: v1::Database = cluster.get("default", "orders").await;
        assert_eq!((orders.spec.storage_gib, orders.spec.replicas), (Some(20), Some(1)));
        let old: v1beta1::Database = cluster.get("default", "orders").await;
        assert_eq!(old.spec.storage.as_deref(), Some("20Gi"));

        for (patch, expected) in [
            (json!({"spec": {"storageGib": 5}}), "storage cannot shrink from 20 to 5 GiB"),
            (json!({"spec": {"engine": "Mysql"}}), "an engine cannot be replaced"),
        ] {
            let refused = cluster.try_patch::<v1::Database>("default", "orders", &patch).await.unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        cluster.patch::<v1::Database>("default", "orders", &json!({"spec": {"replicas": 3}})).await;
        cluster.settle().await;
        let set: StatefulSet = cluster.get("default", "orders").await;
        assert_eq!(set.spec.unwrap().replicas, Some(3));
    });
}

#[test]
fn a_database_becomes_ready_and_is_saved_before_it_goes() {
    testkit::run(|cluster| async move {
        let shelf = begin(&cluster).await;
        let _operator = start(&cluster, "database", &shelf);
        cluster.advance(Duration::from_secs(5)).await;
        cluster.apply(ORDERS).await;
        cluster.settle().await;
        let is_ready = async || {
            let orders: v1::Database = cluster.get("default", "orders").await;
            condition::is_true(&orders.status.unwrap().conditions, "Ready")
        };
        assert!(!is_ready().await);
        make_ready(&cluster, 1).await;
        assert!(is_ready().await);

        let orders: v1::Database = cluster.get("default", "orders").await;
        assert_eq!(orders.finalizers(), [FINALIZER]);
        cluster.delete::<v1::Database>("default", "orders").await;
        cluster.settle().await;
        assert!(cluster.find::<v1::Database>("default", "orders").await.is_none());
        let saved = format!("orders-{}", orders.uid().unwrap());
        assert_eq!(*shelf.0.lock().unwrap(), [saved].into());
        let events = cluster.list::<Event>("default").await;
        let reasons: BTreeSet<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
        assert!(reasons.contains("Ready") && reasons.contains("BackedUp"), "{reasons:?}");
    });
}

#[test]
fn another_replica_takes_over() {
    testkit::run(|cluster| async move {
        let shelf = begin(&cluster).await;
        let first = start(&cluster, "first", &shelf);
        cluster.advance(Duration::from_secs(5)).await;
        let _second = start(&cluster, "second", &shelf);
        cluster.settle().await;
        drop(first);
        // Longer than a lease lasts.
        cluster.advance(Duration::from_secs(30)).await;
        cluster.apply(ORDERS).await;
        cluster.settle().await;
        assert!(cluster.find::<StatefulSet>("default", "orders").await.is_some());
    });
}

#[test]
fn a_crash_at_any_write_loses_no_backup() {
    let shelf = Arc::<Shelf>::default();
    let start = async |cluster: &Cluster| cluster.run(manager(cluster, "database", &shelf));
    let crashes = testkit::crash_everywhere("database", start, |cluster| {
        let shelf = Arc::clone(&shelf);
        async move {
            // Of the run before.
            shelf.0.lock().unwrap().clear();
            // Without the conversion webhook, only one version can be served.
            cluster.apply(&definitions::yaml(&definitions::of::<v1::Database>())).await;
            cluster.settle().await;
            cluster.apply(ORDERS).await;
            cluster.settle().await;
            make_ready(&cluster, 1).await;
            let orders: v1::Database = cluster.get("default", "orders").await;
            cluster.delete::<v1::Database>("default", "orders").await;
            cluster.settle().await;
            assert!(cluster.find::<v1::Database>("default", "orders").await.is_none());
            let saved = format!("orders-{}", orders.uid().unwrap());
            assert_eq!(*shelf.0.lock().unwrap(), [saved].into());
        }
    });
    assert!(crashes.writes >= 4, "{crashes}");
}

#[test]
fn no_version_loses_a_field() {
    for (storage_gib, replicas) in [(None, None), (Some(7), None), (None, Some(3)), (Some(7), Some(0))] {
        let spec = v1::DatabaseSpec { engine: v1::Engine::Mysql, storage_gib, replicas };
        webhook::hub_round_trip::<v1beta1::Database>(v1::Database::new("a", spec)).unwrap();
    }
    for storage in [None, Some("7Gi".to_owned())] {
        let spec = v1beta1::OldDatabaseSpec { engine: v1::Engine::Postgres, storage };
        webhook::round_trip(v1beta1::Database::new("a", spec)).unwrap();
    }
}
