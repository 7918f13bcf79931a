//! Plays a story in a namespace of one server, in real time, and collects what stands in the end.

use super::{APP, Edit, Kind, NODES, WorkloadStory};
use crate::client::{Client, ReadUntil};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use world::World;

/// The collections in which a story leaves something: their paths, with the namespace to be filled in.
const COLLECTED: [(&str, &str); 18] = [
    ("Namespace", "/api/v1/namespaces?fieldSelector=metadata.name%3D{}"),
    ("ConfigMap", "/api/v1/namespaces/{}/configmaps"),
    ("Pod", "/api/v1/namespaces/{}/pods"),
    ("ReplicationController", "/api/v1/namespaces/{}/replicationcontrollers"),
    ("Service", "/api/v1/namespaces/{}/services"),
    ("Endpoints", "/api/v1/namespaces/{}/endpoints"),
    ("PersistentVolumeClaim", "/api/v1/namespaces/{}/persistentvolumeclaims"),
    ("ResourceQuota", "/api/v1/namespaces/{}/resourcequotas"),
    ("Event", "/api/v1/namespaces/{}/events"),
    ("Deployment", "/apis/apps/v1/namespaces/{}/deployments"),
    ("ReplicaSet", "/apis/apps/v1/namespaces/{}/replicasets"),
    ("StatefulSet", "/apis/apps/v1/namespaces/{}/statefulsets"),
    ("DaemonSet", "/apis/apps/v1/namespaces/{}/daemonsets"),
    ("ControllerRevision", "/apis/apps/v1/namespaces/{}/controllerrevisions"),
    ("Job", "/apis/batch/v1/namespaces/{}/jobs"),
    ("CronJob", "/apis/batch/v1/namespaces/{}/cronjobs"),
    ("PodDisruptionBudget", "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"),
    ("EndpointSlice", "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"),
];
/// What is looked at to see whether anything still changes.
const MOVING: [&str; 9] = [
    "Pod",
    "ReplicaSet",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "PersistentVolumeClaim",
    "ConfigMap",
    "Namespace",
];
const LOOK: Duration = Duration::from_millis(400);
/// Nothing has changed for so long: between steps, and in the end.
const STILL: Duration = Duration::from_millis(2500);
const STILL_IN_THE_END: Duration = Duration::from_secs(5);
/// Containers that crash again and again never stand still.
const SETTLE_LIMIT: Duration = Duration::from_secs(40);
/// Longer than the deadlines and the back-offs of a short story.
const END_LIMIT: Duration = Duration::from_secs(150);

/// The UID of an owner that does not exist.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// An object and its kind.
pub type KindAndObject = (&'static str, Value);

/// One server, and the namespace of one run of a story.
#[derive(Debug)]
pub struct WorkloadPlayer {
    world: World,
    client: Client,
    address: SocketAddr,
    namespace: String,
}

impl WorkloadPlayer {
    pub fn new(world: &World, address: SocketAddr, namespace: &str) -> WorkloadPlayer {
        let client = Client::new(world, address);
        WorkloadPlayer { world: world.clone(), client, address, namespace: namespace.to_owned() }
    }

    /// Plays the story, and removes the namespace.
    pub async fn play(&mut self, story: &WorkloadStory) -> Result<Vec<KindAndObject>> {
        let namespace = json!({"metadata": {"name": self.namespace}});
        self.send("POST", "/api/v1/namespaces", Some(&namespace)).await?;
        for step in &story.steps {
            self.carry_out(step).await.with_context(|| step.to_string())?;
        }
        self.settle_in_the_end().await?;
        let found = self.collect(|_| true).await;
        self.delete_namespace().await?;
        for (_, object) in self.collect(|kind| kind == "ConfigMap").await? {
            let path = Kind::ConfigMap.collection(&self.namespace);
            let path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
            self.change("PATCH", &path, Some(&json!({"metadata": {"finalizers": null}}))).await?;
        }
        found
    }

    async fn delete_namespace(&mut self) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        self.send("DELETE", &path, None).await.map(drop)
    }

    async fn carry_out(&mut self, step: &Edit) -> Result<()> {
        match step {
            Edit::Create { kind, object, .. } => {
                self.change("POST", &kind.collection(&self.namespace), Some(object)).await
            }
            Edit::Patch { kind, name, patch } => {
                let path = format!("{}/{name}", kind.collection(&self.namespace));
                self.change("PATCH", &path, Some(patch)).await
            }
            Edit::Delete { kind, name, policy } => {
                let path = format!(
                    "{}/{name}?propagationPolicy={}",
                    kind.collection(&self.namespace),
                    policy.name()
                );
                self.change("DELETE", &path, None).await
            }
            Edit::DeletePod { app, nth } => match self.pod(app, *nth).await? {
                Some(path) => self.change("DELETE", &path, None).await,
                None => Ok(()),
            },
            Edit::EvictPod { app, nth } => match self.pod(app, *nth).await? {
                Some(path) => {
                    let name = path.rsplit('/').next().unwrap_or_default();
                    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                        "metadata": {"name": name, "namespace": self.namespace}});
                    self.change("POST", &format!("{path}/eviction"), Some(&eviction)).await
                }
                None => Ok(()),
            },
            Edit::SetOwner { kind, name, owner, blocks } => self.set_owner(*kind, name, owner, *blocks).await,
            Edit::DeleteNamespace => self.delete_namespace().await,
            Edit::ReleasePod { app, nth } => match self.pod(app, *nth).await? {
                Some(path) => {
                    let patch = json!({"metadata": {"labels": {APP: null}}});
                    self.change("PATCH", &path, Some(&patch)).await
                }
                None => Ok(()),
            },
            Edit::StopNode(_) | Edit::StartNode(_) => bail!("stories share the nodes"),
            Edit::Wait(seconds) => {
                self.world.sleep(Duration::from_secs(*seconds)).await;
                Ok(())
            }
            Edit::Settle => self.settle().await,
        }
    }

    async fn set_owner(&mut self, kind: Kind, name: &str, owner: &str, blocks: bool) -> Result<()> {
        let collection = kind.collection(&self.namespace);
        let owned = self.send("GET", &format!("{collection}/{name}"), None).await?;
        let found = self.send("GET", &format!("{collection}/{owner}"), None).await?;
        let uid = found["metadata"]["uid"].as_str().unwrap_or(NO_UID);
        let mut references = owned["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        references.retain(|it| it["uid"] != uid);
        references.push(json!({"apiVersion": kind.api_version(), "kind": kind.name(), "name": owner,
            "uid": uid, "blockOwnerDeletion": blocks}));
        let patch = json!({"metadata": {"ownerReferences": references}});
        self.change("PATCH", &format!("{collection}/{name}"), Some(&patch)).await
    }

    async fn pod(&mut self, app: &str, nth: usize) -> Result<Option<String>> {
        let pods = Kind::Pod.collection(&self.namespace);
        let list = self.send("GET", &format!("{pods}?labelSelector={APP}%3D{app}"), None).await?;
        let items = list["items"].as_array().into_iter().flatten();
        // Names are random: pods of one template stand together, so that both sides lose the same.
        let mut found: Vec<(String, &str)> = items
            .map(|pod| {
                let template =
                    format!("{}{}", pod["spec"]["containers"][0]["image"], pod["metadata"]["annotations"]);
                (template, pod["metadata"]["name"].as_str().unwrap_or_default())
            })
            .collect();
        found.sort_unstable();
        Ok((!found.is_empty()).then(|| format!("{pods}/{}", found[nth % found.len()].1)))
    }

    /// A change whose object may be gone, or not gone yet.
    async fn change(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<()> {
        let answer = self.send(method, path, body).await?;
        match answer["code"].as_u64() {
            // A budget forbids an eviction with 429.
            None | Some(404 | 409 | 429) => Ok(()),
            Some(200..300) => Ok(()),
            Some(_) => bail!("{answer}"),
        }
    }

    async fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("authorization", "Bearer admin-token")
            .header("content-type", content_type)
            .body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())))?;
        let reply = self.client.send(request, false, &ReadUntil::End).await?;
        serde_json::from_slice(&reply.body).with_context(|| format!("{method} {path}: {}", reply.status))
    }

    /// Everything in the namespace, of these kinds.
    async fn collect(&mut self, wanted: impl Fn(&str) -> bool) -> Result<Vec<KindAndObject>> {
        let mut found = Vec::new();
        for (kind, path) in COLLECTED.into_iter().filter(|(kind, _)| wanted(kind)) {
            let path = path.replace("{}", &self.namespace);
            let mut list = self.send("GET", &path, None).await?;
            let Value::Array(items) = list["items"].take() else { bail!("{path}: {list}") };
            found.extend(items.into_iter().map(|item| (kind, item)));
        }
        Ok(found)
    }

    async fn settle(&mut self) -> Result<()> {
        self.wait(STILL, SETTLE_LIMIT, is_observed).await
    }

    async fn settle_in_the_end(&mut self) -> Result<()> {
        self.wait(STILL_IN_THE_END, END_LIMIT, is_done).await
    }

    /// Waits until `is_done`, and nothing has changed for so long; but not longer than the limit.
    async fn wait(
        &mut self,
        still: Duration,
        limit: Duration,
        is_done: fn(&[KindAndObject]) -> bool,
    ) -> Result<()> {
        let begun = self.world.now();
        let (mut before, mut since) = (Vec::new(), begun);
        loop {
            let found = self.collect(|kind| MOVING.contains(&kind)).await?;
            let now = self.world.now();
            let state: Vec<String> = found.iter().map(moving_part).collect();
            if state != before || !is_done(&found) {
                (before, since) = (state, now);
            }
            if now.since(since) >= still || now.since(begun) >= limit {
                return Ok(());
            }
            self.world.sleep(LOOK).await;
        }
    }
}

/// What of an object changes while control loops work. Restarts of containers do not count.
fn moving_part((kind, object): &KindAndObject) -> String {
    let metadata = &object["metadata"];
    if *kind != "Pod" {
        return format!("{} {}", metadata["uid"], metadata["resourceVersion"]);
    }
    let status = &object["status"];
    let ready = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
    let ready = ready.map(|it| it["status"].clone()).unwrap_or_default();
    let (deletion, node) = (&metadata["deletionTimestamp"], &object["spec"]["nodeName"]);
    format!("{} {deletion} {node} {} {ready} {}", metadata["uid"], status["phase"], metadata["finalizers"])
}

/// Whether the control loops have seen the last edit of every workload.
fn is_observed(found: &[KindAndObject]) -> bool {
    found.iter().all(|(kind, object)| match *kind {
        // Their status does not tell.
        "Pod" | "Job" | "PersistentVolumeClaim" | "ConfigMap" | "Namespace" => true,
        _ => object["status"]["observedGeneration"] == object["metadata"]["generation"],
    })
}

/// Whether nothing waits for a deadline or a back-off.
fn is_done(found: &[KindAndObject]) -> bool {
    is_observed(found)
        && found.iter().all(|(kind, object)| {
            let (spec, status) = (&object["spec"], &object["status"]);
            let condition = |wanted: &str| {
                let conditions = status["conditions"].as_array().into_iter().flatten();
                conditions.into_iter().find(|it| it["type"] == wanted).cloned().unwrap_or_default()
            };
            match *kind {
                "Pod" => object["metadata"]["deletionTimestamp"].is_null(),
                "Job" => {
                    let is_held =
                        spec["suspend"] == true || spec["parallelism"] == 0 || spec["managedBy"].is_string();
                    is_held
                        || [condition("Complete"), condition("Failed")]
                            .iter()
                            .any(|it| it["status"] == "True")
                }
                "Deployment" => {
                    let reason = condition("Progressing")["reason"].clone();
                    let is_over = reason == "NewReplicaSetAvailable" || reason == "ProgressDeadlineExceeded";
                    is_over || spec["paused"] == true
                }
                // Those with finalizers stay.
                "ConfigMap" | "Namespace" => true,
                _ => object["metadata"]["deletionTimestamp"].is_null(),
            }
        })
}

/// Waits until a server has its nodes and the control loops that schedule pods on them.
pub async fn wait_for_nodes(world: &World, address: SocketAddr) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(240);
    let (mut player, begun) = (WorkloadPlayer::new(world, address, "default"), world.now());
    loop {
        let list = player.send("GET", "/api/v1/nodes", None).await?;
        let nodes = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        if nodes.len() == NODES && nodes.iter().all(|node| node["spec"]["taints"].is_null()) {
            return Ok(());
        }
        if world.now().since(begun) > LIMIT {
            bail!("the nodes of {address} are not ready: {list}");
        }
        world.sleep(LOOK).await;
    }
}
