//! How many requests an operator with four children makes: none when everything is as it should be.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::CronJob,
    core::v1::{ConfigMap, Service},
};
use kube::{CustomResource, CustomResourceExt};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, Running, all,
    apply::{Force, Set},
    finalizer::{self, Lifecycle},
    status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testkit::Cluster;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Redis",
    plural = "redis",
    namespaced,
    status = "RedisStatus"
)]
pub(crate) struct RedisSpec {
    replicas: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RedisStatus {
    ready: Option<i32>,
}

fn read<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"restartPolicy": "Always", "volumes": [{"name": "config", "configMap": {"name": name}}],
            "containers": [{
                "name": "redis", "image": "redis:8", "ports": [{"containerPort": 6379}],
                // The server writes the same amounts in another way.
                "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}},
                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "$(B)"}],
                "volumeMounts": [{"name": "config", "mountPath": "/etc/redis"}],
            }]},
    })
}

fn stateful_set(name: &str, replicas: i32) -> StatefulSet {
    read(json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
        "template": pod(name)}}))
}

fn service(name: &str) -> Service {
    let ports = json!([{"name": "redis", "port": 6379}]);
    read(json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}}))
}

fn config(name: &str) -> ConfigMap {
    read(json!({"metadata": {"name": name}, "data": {"redis.conf": "appendonly yes"}}))
}

fn backup(name: &str) -> CronJob {
    let mut pod = pod(name);
    pod["spec"]["restartPolicy"] = json!("Never");
    read(json!({"metadata": {"name": name}, "spec": {
        "schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod}}}}))
}

async fn reconcile(context: Context<Arc<AtomicU64>>, key: Key) -> Result<Next, Failure> {
    context.state().fetch_add(1, Ordering::SeqCst);
    let Some(redis) = context.get::<Redis>(&key)? else { return Ok(Next::Settled) };
    let all = context.namespaced::<Redis>(&key);
    finalizer::guard(&all, (*redis).clone(), "example.com/redis", async |redis| {
        let Lifecycle::Live(redis) = redis else { return Ok(Next::Settled) };
        let mut set = Set::of(&redis, context.controller())?;
        set.add(stateful_set(key.name(), redis.spec.replicas))?;
        set.add(service(key.name()))?.add(config(key.name()))?.add(backup(key.name()))?;
        set.apply(&context.client(), Force::Yes).await?;
        let workload = context.get::<StatefulSet>(&key)?;
        let ready = workload.and_then(|found| found.status.as_ref()?.ready_replicas);
        status::set(&all, &redis, &RedisStatus { ready }).await?;
        Ok(Next::Settled)
    })
    .await
}

struct Operator {
    cluster: Cluster,
    running: Option<Running>,
    reconciles: Arc<AtomicU64>,
}

impl Operator {
    async fn start(cluster: &Cluster) -> Operator {
        let reconciles = Arc::new(AtomicU64::new(0));
        let controller = Controller::new("redis", all::<Redis>())
            .owns(all::<StatefulSet>())
            .owns(all::<Service>())
            .owns(all::<ConfigMap>())
            .owns(all::<CronJob>())
            .reconcile(Arc::clone(&reconciles), reconcile);
        let manager = Manager::new("redis", cluster.world(), cluster.client_as("op", &["system:masters"]));
        let running = manager.controller(controller).start();
        cluster.watch_idle("redis", running.idle_probe());
        cluster.settle().await;
        Operator { cluster: cluster.clone(), running: Some(running), reconciles }
    }

    /// The requests of the operator, apart from watches.
    fn requests(&self) -> Vec<String> {
        let trace = self.cluster.trace();
        assert_eq!(trace.forgotten, 0);
        let own = trace.entries.iter().filter(|entry| entry.caller == "op" && entry.verb != "watch");
        own.map(|entry| format!("{} {}", entry.verb, entry.resource)).collect()
    }

    /// What a change costs until all is quiet: requests, and how many reconciles.
    async fn cost(&self, change: impl Future<Output = ()>) -> (Vec<String>, u64) {
        let (requests, reconciles) = (self.requests().len(), self.reconciles.load(Ordering::SeqCst));
        change.await;
        self.cluster.settle().await;
        (self.requests().split_off(requests), self.reconciles.load(Ordering::SeqCst) - reconciles)
    }
}

async fn begin(cluster: &Cluster) -> Operator {
    cluster.apply_object(&serde_json::to_value(Redis::crd()).unwrap()).await;
    Operator::start(cluster).await
}

async fn create(cluster: &Cluster) {
    let mut redis = Redis::new("cache", RedisSpec { replicas: 3 });
    redis.metadata.namespace = Some("default".to_owned());
    cluster.create(&redis).await;
}

async fn scale(cluster: &Cluster, replicas: i32) {
    cluster.patch::<Redis>("default", "cache", &json!({"spec": {"replicas": replicas}})).await;
}

fn owned(requests: &[&str]) -> Vec<String> {
    requests.iter().map(|request| (*request).to_owned()).collect()
}

const CREATE: [&str; 6] = [
    "patch redis",
    "patch redis",
    "patch configmaps",
    "patch services",
    "patch cronjobs",
    "patch statefulsets",
];

/// The numbers of the guide are those that are measured here.
fn documented(what: &str, (requests, reconciles): &(Vec<String>, u64)) {
    let page = include_str!("../../../docs/guide/requests.md");
    let row = format!("| {what} | {} | {reconciles} |", requests.len());
    assert!(page.lines().any(|line| line.starts_with(&row)), "docs/guide/requests.md lacks {row}");
}

#[test]
fn only_what_differs_is_requested() {
    testkit::run(|cluster| async move {
        let operator = begin(&cluster).await;
        let cost = operator.cost(create(&cluster)).await;
        documented("create", &cost);
        // The finalizer, the record of kinds, and the children; there is no status yet.
        assert_eq!(cost, (owned(&CREATE), 2));

        let cost = operator.cost(scale(&cluster, 5)).await;
        documented("scale", &cost);
        assert_eq!(cost, (owned(&["patch statefulsets"]), 2));

        let ready = json!({"status": {"replicas": 5, "readyReplicas": 5}});
        let change = async {
            cluster.patch_status::<StatefulSet>("default", "cache", &ready).await;
        };
        let cost = operator.cost(change).await;
        documented("a child's status changes", &cost);
        assert_eq!(cost, (owned(&["patch redis/status"]), 2));

        let day = cluster.world().sleep(Duration::from_secs(25 * 3600));
        let cost = operator.cost(day).await;
        documented("25 hours of resyncs", &cost);
        // Each of the five kinds is resynced every ten hours.
        assert_eq!(cost, (Vec::new(), 10));
    });
}

#[test]
fn a_new_process_writes_nothing_that_is_there() {
    testkit::run(|cluster| async move {
        let mut operator = begin(&cluster).await;
        create(&cluster).await;
        cluster.settle().await;
        operator.running.take().unwrap().stop().await.unwrap();
        let before = operator.requests().len();
        let second = Operator::start(&cluster).await;
        // Whether the object still exists, and what the server writes in another way than it was sent.
        let requests = second.requests().split_off(before);
        assert_eq!(requests, ["get redis", "patch cronjobs", "patch statefulsets"]);
        documented(
            "a new process finds all as it should be",
            &(requests, second.reconciles.load(Ordering::SeqCst)),
        );
        let versions = |trace: testkit::Trace| trace.writes().last().unwrap().resource_version;
        let last = versions(cluster.trace());
        let (requests, _) = second.cost(cluster.world().sleep(Duration::from_secs(11 * 3600))).await;
        assert_eq!((requests, versions(cluster.trace())), (Vec::new(), last));
    });
}

#[test]
fn what_others_change_is_written_back() {
    testkit::run(|cluster| async move {
        let operator = begin(&cluster).await;
        create(&cluster).await;
        cluster.settle().await;
        for (patch, expected) in [
            (json!({"data": {"redis.conf": "appendonly no"}}), &["patch configmaps"][..]),
            (json!({"data": {"theirs": "x"}}), &[]),
            (json!({"metadata": {"labels": {"setpoint.dev/set": null}}}), &["patch configmaps"]),
        ] {
            let change = async {
                cluster.patch::<ConfigMap>("default", "cache", &patch).await;
            };
            assert_eq!(operator.cost(change).await.0, expected, "{patch}");
        }
        let delete = async { cluster.delete::<Service>("default", "cache").await };
        assert_eq!(operator.cost(delete).await.0, ["patch services"]);
        let map: ConfigMap = cluster.get("default", "cache").await;
        let data = map.data.unwrap();
        assert_eq!((data["redis.conf"].as_str(), data["theirs"].as_str()), ("appendonly yes", "x"));
    });
}
