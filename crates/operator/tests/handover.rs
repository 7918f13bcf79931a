//! A new leader with a late watch does not create again what the leader before has cleaned up.

use futures::{SinkExt, channel::mpsc};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, Running, all,
    finalizer::{self, Lifecycle},
    lease::Election,
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use testkit::{Cluster, Fault};
use world::Moment;

const FINALIZER: &str = "example.com/bucket";
const SEEDS: std::ops::RangeInclusive<u64> = 1..=25;

/// The buckets outside of the cluster: one for each ConfigMap.
type Buckets = Arc<Mutex<BTreeSet<String>>>;

async fn reconcile(context: Context<Buckets>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
    if map.metadata.labels.is_none() {
        return Ok(Next::Settled);
    }
    let maps = context.namespaced::<ConfigMap>(&key);
    finalizer::guard(&maps, (*map).clone(), FINALIZER, async |map| {
        let mut buckets = context.state().lock().unwrap();
        match map {
            Lifecycle::Live(_) => buckets.insert(key.to_string()),
            Lifecycle::Deleting(_) => buckets.remove(&key.to_string()),
        };
        Ok(Next::Settled)
    })
    .await
}

fn controller(buckets: &Buckets) -> Controller {
    Controller::new("buckets", all::<ConfigMap>()).reconcile(Arc::clone(buckets), reconcile)
}

fn candidate(cluster: &Cluster, name: &str, buckets: &Buckets) -> Running {
    let election = Election::new(cluster.world(), "default", "buckets").identity(name);
    let manager = Manager::new("buckets", cluster.world(), cluster.client_as(name, &["system:masters"]));
    manager.elect(election).controller(controller(buckets)).start()
}

async fn create(cluster: &Cluster, name: &str, finalizers: &[&str]) {
    let map = json!({"metadata": {
        "name": name, "namespace": "default", "labels": {"bucket": "yes"}, "finalizers": finalizers,
    }});
    cluster.create::<ConfigMap>(&serde_json::from_value(map).unwrap()).await;
}

fn names(buckets: &Buckets) -> Vec<String> {
    buckets.lock().unwrap().iter().cloned().collect()
}

/// How the first leader goes.
#[derive(Clone, Copy)]
enum End {
    Stops,
    Crashes,
}

async fn hand_over(cluster: Cluster, end: End, seed: u64) {
    let buckets = Buckets::default();
    // Between none and six seconds: it depends on the seed how much of the story the second one has seen.
    let lag = Duration::from_millis(250 * seed);
    cluster.inject(Fault::on("watch", "configmaps").by("second").always().lag(lag));
    let first = candidate(&cluster, "first", &buckets);
    for name in ["a", "b", "c"] {
        create(&cluster, name, &[]).await;
    }
    cluster.advance(Duration::from_secs(5)).await;
    let _second = candidate(&cluster, "second", &buckets);
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(names(&buckets), ["default/a", "default/b", "default/c"]);

    cluster.delete::<ConfigMap>("default", "a").await;
    cluster.world().sleep(Duration::from_millis(100)).await;
    assert_eq!(names(&buckets), ["default/b", "default/c"], "the first leader has cleaned up");
    match end {
        End::Stops => first.stop().await.unwrap(),
        End::Crashes => drop(first),
    }
    cluster.delete::<ConfigMap>("default", "b").await;
    create(&cluster, "d", &[]).await;
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(names(&buckets), ["default/c", "default/d"], "seed {seed}");
}

#[test]
fn a_new_leader_waits_until_its_caches_are_fresh() {
    for seed in SEEDS {
        for end in [End::Stops, End::Crashes] {
            testkit::simulate(seed, |cluster| hand_over(cluster, end, seed));
        }
    }
}

#[test]
fn the_first_leader_lists_once() {
    testkit::run(|cluster| async move {
        let _first = candidate(&cluster, "first", &Buckets::default());
        cluster.advance(Duration::from_secs(30)).await;
        let trace = cluster.trace();
        let lists = trace.of("watch", "configmaps").len() + trace.of("list", "configmaps").len();
        assert_eq!(lists, 1, "{trace}");
    });
}

#[test]
fn the_first_work_on_a_cached_object_asks_the_server() {
    testkit::run(|cluster| async move {
        create(&cluster, "a", &[FINALIZER]).await;
        let buckets = Buckets::default();
        let (mut keys, stream) = mpsc::channel(4);
        let may_work = Arc::new(AtomicBool::new(false));
        let controller = Controller::new("buckets", all::<ConfigMap>()).stream(stream).reconcile(
            (Arc::clone(&buckets), Arc::clone(&may_work)),
            |context: Context<(Buckets, Arc<AtomicBool>)>, key| async move {
                let (buckets, may_work) = context.state();
                let map = context.get::<ConfigMap>(&key)?.filter(|_| may_work.load(Ordering::SeqCst));
                let Some(map) = map else { return Ok(Next::Settled) };
                let maps = context.namespaced::<ConfigMap>(&key);
                finalizer::guard(&maps, (*map).clone(), FINALIZER, async |map| {
                    assert!(matches!(map, Lifecycle::Live(_)));
                    buckets.lock().unwrap().insert(key.to_string());
                    Ok(Next::Settled)
                })
                .await
            },
        );
        let manager = Manager::new("buckets", cluster.world(), cluster.client_as("op", &["system:masters"]));
        let running = manager.controller(controller).start();
        cluster.watch_idle("buckets", running.idle_probe());
        cluster.settle().await;

        let held = cluster.hold_watches("configmaps");
        cluster.delete::<ConfigMap>("default", "a").await;
        cluster.patch::<ConfigMap>("default", "a", &json!({"metadata": {"finalizers": null}})).await;
        may_work.store(true, Ordering::SeqCst);
        keys.send(Key::parse("default/a")).await.unwrap();
        cluster.settle().await;
        drop(held);
        cluster.settle().await;
        assert_eq!(names(&buckets), [""; 0], "it was deleted before this process worked on it");
    });
}

#[test]
fn later_work_on_the_same_object_reads_the_cache() {
    testkit::run(|cluster| async move {
        create(&cluster, "a", &[FINALIZER]).await;
        let buckets = Buckets::default();
        let manager = Manager::new("buckets", cluster.world(), cluster.client_as("op", &["system:masters"]));
        let running = manager.controller(controller(&buckets)).start();
        cluster.watch_idle("buckets", running.idle_probe());
        cluster.settle().await;
        for n in 0..3 {
            let patch = json!({"data": {"n": n.to_string()}});
            cluster.patch::<ConfigMap>("default", "a", &patch).await;
            cluster.settle().await;
        }
        let trace = cluster.trace();
        let reads = trace.of("get", "configmaps").iter().filter(|entry| entry.caller == "op").count();
        assert_eq!(reads, 1, "{trace}");
    });
}

/// When work has begun.
type Begun = Arc<Mutex<Vec<Moment>>>;

async fn note_time(context: Context<Begun>, _: Key) -> Result<Next, Failure> {
    context.state().lock().unwrap().push(context.world().now());
    Ok(Next::Settled)
}

#[test]
fn nothing_is_reconciled_before_the_caches_of_all_controllers_are_synced() {
    testkit::run(|cluster| async move {
        create(&cluster, "a", &[]).await;
        let lag = Duration::from_secs(5);
        cluster.inject(Fault::on("watch", "secrets").by("op").always().lag(lag));
        let begun = Begun::default();
        let controllers = [
            Controller::new("maps", all::<ConfigMap>()).reconcile(Arc::clone(&begun), note_time),
            Controller::new("secrets", all::<Secret>()).reconcile(Arc::clone(&begun), note_time),
        ];
        let run = Arc::clone(&begun);
        let manager = Manager::new("both", cluster.world(), cluster.client_as("op", &["system:masters"]))
            .runnable("while-leading", move |context| async move {
                run.lock().unwrap().push(context.world().now());
                Ok(())
            });
        let started = cluster.world().now();
        let _running = controllers.into_iter().fold(manager, Manager::controller).start();
        cluster.advance(Duration::from_secs(30)).await;
        let begun: Vec<Duration> = begun.lock().unwrap().iter().map(|at| at.since(started)).collect();
        assert!(begun.len() >= 2 && begun.iter().all(|after| *after >= lag), "{begun:?}");
    });
}
