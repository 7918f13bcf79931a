//! Requests of an own type, predicates on typed objects, and why a key is reconciled.

use futures::{SinkExt, channel::mpsc};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use operator::{
    Context, Controller, Failure, Key, Manager, Next, Running, all,
    predicate::typed,
    queue::{Pace, Reason},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex},
};
use testkit::Cluster;

type Seen = Arc<Mutex<Vec<String>>>;

fn taken(seen: &Seen) -> Vec<String> {
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort();
    seen.dedup();
    seen
}

/// A size class in a namespace.
#[derive(Debug, PartialEq)]
struct Class {
    namespace: String,
    size: u32,
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}#{}", self.namespace, self.size)
    }
}

impl FromStr for Class {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Class, Self::Err> {
        let (namespace, size) = text.split_once('#').unwrap_or((text, ""));
        Ok(Class { namespace: namespace.to_owned(), size: size.parse()? })
    }
}

fn classes(map: &ConfigMap) -> Vec<Class> {
    let size = map.data.as_ref().and_then(|data| data.get("size")?.parse().ok());
    let class = |size| Class { namespace: map.namespace().unwrap_or_default(), size };
    size.map(class).into_iter().collect()
}

async fn count(context: Context<Seen>, class: Class) -> Result<Next, Failure> {
    let maps = context.view::<ConfigMap>()?.in_namespace(&class.namespace)?;
    let members = maps.iter().filter(|map| classes(map).contains(&class)).count();
    context.state().lock().unwrap().push(format!("{members} of size {}", class.size));
    Ok(Next::Settled)
}

async fn start(cluster: &Cluster, controller: Controller) -> Running {
    let running = Manager::new("test", cluster.world(), cluster.client()).controller(controller).start();
    cluster.watch_idle("test", running.idle_probe());
    cluster.settle().await;
    running
}

async fn set(cluster: &Cluster, name: &str, data: &[(&str, &str)]) {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    cluster.apply(&map.to_string()).await;
}

#[test]
fn a_controller_reconciles_requests_of_its_own_type() {
    testkit::run(|cluster| async move {
        let seen = Seen::default();
        let (mut news, stream) = mpsc::channel(4);
        let controller = Controller::of_requests::<Class>("classes")
            .watches(all::<ConfigMap>(), classes)
            .stream(stream)
            .reconcile(Arc::clone(&seen), count);
        let _running = start(&cluster, controller).await;
        for (name, size) in [("a", "1"), ("b", "2"), ("c", "2")] {
            set(&cluster, name, &[("size", size)]).await;
        }
        cluster.settle().await;
        assert!(taken(&seen).contains(&"2 of size 2".to_owned()));

        set(&cluster, "c", &[("size", "1")]).await;
        cluster.settle().await;
        assert_eq!(taken(&seen), ["1 of size 2", "2 of size 1"], "the class before and the class after");

        news.send(Class { namespace: "default".to_owned(), size: 9 }).await.unwrap();
        cluster.settle().await;
        assert_eq!(taken(&seen), ["0 of size 9"]);
    });
}

#[test]
fn no_request_is_lost_in_a_full_queue() {
    testkit::run(|cluster| async move {
        for size in 0..20 {
            set(&cluster, &format!("map-{size}"), &[("size", &size.to_string())]).await;
        }
        let seen = Seen::default();
        let controller = Controller::of_requests::<Class>("classes")
            .watches(all::<ConfigMap>(), classes)
            .pace(Pace { limit: 3, ..Pace::default() })
            .reconcile(Arc::clone(&seen), count);
        let _running = start(&cluster, controller).await;
        assert_eq!(taken(&seen).len(), 20);
    });
}

#[test]
fn typed_predicates_see_the_object_before_and_after() {
    testkit::run(|cluster| async move {
        let seen = Seen::default();
        let size = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("size").cloned());
        let grows = typed(move |before: &ConfigMap, after: &ConfigMap| size(before) < size(after));
        let source = all::<ConfigMap>().in_namespace("default").with_fields("metadata.name=web").when(grows);
        let controller = Controller::new("growth", source).reconcile(
            Arc::clone(&seen),
            |context: Context<Seen>, key: Key| async move {
                context.state().lock().unwrap().push(key.to_string());
                Ok(Next::Settled)
            },
        );
        let _running = start(&cluster, controller).await;
        for (size, passes) in [("3", true), ("5", true), ("4", false), ("4", false), ("6", true)] {
            set(&cluster, "web", &[("size", size)]).await;
            cluster.settle().await;
            assert_eq!(taken(&seen).len(), usize::from(passes), "{size}");
        }
        cluster.delete::<ConfigMap>("default", "web").await;
        cluster.settle().await;
        assert_eq!(taken(&seen).len(), 1, "a deletion always passes");
    });
}

#[test]
fn a_reconcile_knows_whether_its_object_was_there_at_the_start() {
    testkit::run(|cluster| async move {
        set(&cluster, "old", &[]).await;
        let seen = Seen::default();
        let source =
            all::<ConfigMap>().with_fields("metadata.name!=kube-root-ca.crt").in_namespace("default");
        let controller = Controller::new("starts", source).reconcile(
            Arc::clone(&seen),
            |context: Context<Seen>, key: Key| async move {
                let start = if context.reason() == Reason::Initial { "cold" } else { "warm" };
                context.state().lock().unwrap().push(format!("{} {start}", key.name()));
                Ok(Next::Settled)
            },
        );
        let _running = start(&cluster, controller).await;
        set(&cluster, "new", &[]).await;
        cluster.settle().await;
        assert_eq!(taken(&seen), ["new warm", "old cold"]);
    });
}
