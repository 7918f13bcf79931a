//! A cache from its manifest to Ready, and through a change of its size: what a watch sees, line by line, in virtual
//! time.

use example_redis::{NAME, controller, definition, site, v1alpha1::Redis, webhooks};
use futures::{Stream, StreamExt};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Pod, Service},
    events::v1::Event,
};
use kube::{
    Api, Resource,
    api::{WatchEvent, WatchParams},
};
use operator::{Manager, condition, definition as definitions, webhook::Address};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use testkit::{Cluster, Object};

const SAMPLE: &str = include_str!("../manifests/sample.yaml");
const NAMESPACE: &str = "default";
const CACHE: &str = "redis-cache";
const NODES: usize = 3;
/// The cache is ready long before so many steps.
const MAX_STEPS: usize = 60;
const STEP: Duration = Duration::from_secs(1);

/// Plays the story, and hands each line to `print`.
pub(crate) async fn play(cluster: Cluster, mut print: impl FnMut(&str)) {
    cluster.apply(&definitions::yaml(&definition())).await;
    let _control_plane = cluster.control_plane().nodes(NODES).start();
    let manager = Manager::new(NAME, cluster.world(), cluster.client_as(NAME, &["system:masters"]));
    let site = site(Address::Url("https://redis-operator.example.com".to_owned()));
    let manager = manager.webhooks(webhooks(), ([0, 0, 0, 0], 0), site);
    let _operator = cluster.run(manager.controller(controller()));
    cluster.settle().await;

    let observer = Observer::start(&cluster);
    print("$ kubectl apply -f examples/redis/manifests/sample.yaml");
    SAMPLE.lines().for_each(|line| print(&format!("    {line}")));
    cluster.apply(SAMPLE).await;
    until_ready(&cluster).await;
    observer.lines().iter().for_each(|line| print(line));

    for size in [4, 2] {
        print("");
        print(&format!("$ kubectl patch redis {CACHE} --type=merge -p '{{\"spec\":{{\"size\":{size}}}}}'"));
        cluster.patch::<Redis>(NAMESPACE, CACHE, &json!({"spec": {"size": size}})).await;
        until_ready(&cluster).await;
        observer.lines().iter().for_each(|line| print(line));
    }
}

async fn until_ready(cluster: &Cluster) {
    for _ in 0..MAX_STEPS {
        cluster.advance(STEP).await;
        let redis: Redis = cluster.get(NAMESPACE, CACHE).await;
        let conditions = redis.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        if condition::is_true_now(conditions, "Ready", &redis) {
            return;
        }
    }
}

/// Watches the kinds of the story, as `kubectl get --watch` would.
struct Observer(Arc<Mutex<Observed>>);

#[derive(Default)]
struct Observed {
    /// The last text about each object: only what is new makes a line.
    known: BTreeMap<String, String>,
    /// By resourceVersion: several watches do not see changes in their order.
    lines: BTreeMap<u64, String>,
}

impl Observer {
    fn start(cluster: &Cluster) -> Observer {
        let observer = Observer(Arc::default());
        observer.watch::<Redis>(cluster);
        observer.watch::<ConfigMap>(cluster);
        observer.watch::<Service>(cluster);
        observer.watch::<StatefulSet>(cluster);
        observer.watch::<Pod>(cluster);
        observer.watch::<Event>(cluster);
        observer
    }

    fn watch<K>(&self, cluster: &Cluster)
    where
        K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope> + Send + 'static,
    {
        let api: Api<K> = Api::namespaced(cluster.client(), NAMESPACE);
        let (world, begin) = (cluster.world().clone(), cluster.world().now());
        let observed = Arc::clone(&self.0);
        let work = async move {
            let Ok(changes) = api.watch(&WatchParams::default(), "0").await else { return };
            objects(changes)
                .for_each(|(object, is_deleted)| {
                    let at = world.now().since(begin).as_secs_f64();
                    let mut observed = observed.lock().unwrap_or_else(PoisonError::into_inner);
                    observed.add(at, &K::kind(&()), &object, is_deleted);
                    std::future::ready(())
                })
                .await;
        };
        cluster.world().spawn("observer", work).detach();
    }

    /// What is new since the last call.
    fn lines(&self) -> Vec<String> {
        let mut observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut observed.lines).into_values().collect()
    }
}

/// The objects of a watch as JSON, each with whether it is deleted.
fn objects<K: Object>(
    changes: impl Stream<Item = kube::Result<WatchEvent<K>>>,
) -> impl Stream<Item = (Value, bool)> {
    changes.filter_map(|change| async move {
        let (object, is_deleted) = match change {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
            Ok(WatchEvent::Deleted(object)) => (object, true),
            Ok(WatchEvent::Bookmark(_) | WatchEvent::Error(_)) | Err(_) => return None,
        };
        serde_json::to_value(object).ok().map(|object| (object, is_deleted))
    })
}

impl Observed {
    fn add(&mut self, at: f64, kind: &str, object: &Value, is_deleted: bool) {
        let metadata = &object["metadata"];
        let revision = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let text = if is_deleted { Some("deleted".to_owned()) } else { describe(kind, object) };
        let (Some(revision), Some(text)) = (revision, text) else { return };
        let about = if kind == "Event" { &object["regarding"] } else { metadata };
        let about = about["name"].as_str().unwrap_or_default();
        let name = format!("{}/{about}", kind.to_lowercase());
        if self.known.get(&name) != Some(&text) {
            self.lines.insert(revision, format!("{at:4.1}s  {name:<25} {text}"));
            self.known.insert(name, text);
        }
    }
}

/// What is worth a line; `None` for objects that are no part of the story.
fn describe(kind: &str, object: &Value) -> Option<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match kind {
        "Redis" => Some(describe_cache(object)),
        "ConfigMap" => object["data"]["redis.conf"].as_str().map(|_| "created".to_owned()),
        "Service" => (spec["clusterIP"] == "None").then(|| "created, headless".to_owned()),
        "StatefulSet" => Some(format!("spec.replicas {}", spec["replicas"])),
        "Pod" => {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let is_ready = conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
            let node = spec["nodeName"].as_str().map(|node| format!(" on {node}")).unwrap_or_default();
            let ready = if is_ready { ", ready" } else { "" };
            Some(format!("{}{node}{ready}", text(&status["phase"])))
        }
        "Event" => (object["regarding"]["kind"] == "Redis").then(|| {
            format!("{} {}: {}", text(&object["type"]), text(&object["reason"]), text(&object["note"]))
        }),
        _ => None,
    }
}

/// The status if it speaks of the present spec, or else the spec.
fn describe_cache(redis: &Value) -> String {
    let (spec, status) = (&redis["spec"], &redis["status"]);
    let ready = &status["conditions"][0];
    let (is_ready, reason) = (ready["status"].as_str(), ready["reason"].as_str());
    match is_ready.zip(reason).filter(|_| redis["metadata"]["generation"] == status["observedGeneration"]) {
        Some((is_ready, reason)) => {
            format!("status.ready {}/{}, Ready={is_ready} ({reason})", status["ready"], spec["size"])
        }
        None => {
            let version = spec["version"].as_str().unwrap_or_default();
            format!("spec.size {}, version {version}, memoryMib {}", spec["size"], spec["memoryMib"])
        }
    }
}
