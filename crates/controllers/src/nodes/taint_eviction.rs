//! Pods that do not tolerate a NoExecute taint of their node are deleted, at once or after their tolerationSeconds.

use super::{NO_EXECUTE, taints};
use crate::{placement::tolerates, pod};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Taint, Toleration};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, event::EventType, retry};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Kubernetes: so many pods are handled at once.
const WORKERS: usize = 8;

pub(crate) fn controller() -> Controller {
    Controller::new("taint-eviction-controller", all::<Pod>())
        .watches_through(all::<Node>(), |pods: &View<Pod>, node: &Node| {
            let pods = if no_execute(node).next().is_some() {
                pod::on_node(pods, &node.name_any())
            } else {
                Ok(Vec::new())
            };
            pods.unwrap_or_default().iter().map(|pod| Key::of(&**pod)).collect()
        })
        .workers(WORKERS)
        .reconcile(Scheduled::default(), reconcile)
}

/// The pods that will be deleted unless the taint goes before.
#[derive(Debug, Default)]
struct Scheduled(Mutex<BTreeSet<Key>>);

impl Scheduled {
    fn add(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
    }

    /// Returns whether the deletion of the pod was scheduled.
    fn remove(&self, key: &Key) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }
}

async fn reconcile(context: Context<Scheduled>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else {
        record_stay(&context, &key);
        return Ok(Next::Settled);
    };
    let node = match pod::node_name(&pod) {
        "" => None,
        name => context.get::<Node>(&Key::new(None, name))?,
    };
    let Some(node) = node.filter(|_| pod.metadata.deletion_timestamp.is_none()) else {
        return Ok(Next::Settled);
    };
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let now = context.wall();
    match stays_until(tolerations, no_execute(&node), now) {
        Stay::Forever => {
            record_stay(&context, &key);
            Ok(Next::Settled)
        }
        Stay::Until(time) if time > now => {
            context.state().add(&key);
            Ok(Next::CheckAfter(Duration::try_from(time.duration_since(now)).unwrap_or_default()))
        }
        Stay::Until(_) => {
            context.state().remove(&key);
            evict(&context, &key, &pod, &TEXTS).await?;
            Ok(Next::Settled)
        }
    }
}

/// Records that a scheduled deletion does not happen.
///
/// Kubernetes: also if the pod is gone before it was due. The event names the pod without its UID.
fn record_stay(context: &Context<Scheduled>, key: &Key) {
    if !context.state().remove(key) {
        return;
    }
    let pod = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        ..ObjectReference::default()
    };
    let note = format!("Cancelling deletion of Pod {key}");
    context.events().record(pod, EventType::Normal, TEXTS.event, "Delete", note);
}

fn no_execute(node: &Node) -> impl Iterator<Item = &Taint> {
    taints(node).iter().filter(|taint| taint.effect == NO_EXECUTE)
}

/// How long a pod may stay on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    Forever,
    Until(Timestamp),
}

/// The time counts from when the taint was added, so that a restart of this process does not prolong it.
pub(crate) fn stays_until<'a>(
    tolerations: &[Toleration],
    taints: impl Iterator<Item = &'a Taint>,
    now: Timestamp,
) -> Stay {
    let mut stay = Stay::Forever;
    for taint in taints {
        let matching: Vec<&Toleration> = tolerations.iter().filter(|it| tolerates(it, taint)).collect();
        if matching.is_empty() {
            return Stay::Until(now);
        }
        // Kubernetes: of several tolerations of a taint, the shortest counts.
        let Some(seconds) = matching.iter().filter_map(|it| it.toleration_seconds).min() else { continue };
        let added = taint.time_added.as_ref().map_or(now, |added| added.0);
        let until = added.saturating_add(SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX);
        stay = match stay {
            Stay::Until(earlier) if earlier <= until => stay,
            _ => Stay::Until(until),
        };
    }
    stay
}

/// The texts of the event and the condition of an evicted pod.
pub(crate) struct EvictionTexts {
    /// The reason of the event, and its note for the pod with this key.
    pub(crate) event: &'static str,
    pub(crate) note: fn(&Key) -> String,
    /// Of the condition of the pod.
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

// Kubernetes: these texts.
const TEXTS: EvictionTexts = EvictionTexts {
    event: "TaintManagerEviction",
    note: |key| format!("Marking for deletion Pod {key}"),
    reason: "DeletionByTaintManager",
    message: "Taint manager: deleting due to NoExecute taint",
};

/// Says on the pod why it goes, and deletes it.
pub(crate) async fn evict<S>(
    context: &Context<S>,
    key: &Key,
    pod: &Pod,
    texts: &EvictionTexts,
) -> Result<(), Failure> {
    context.events().normal(pod, texts.event, "Delete", (texts.note)(key));
    let pods = context.namespaced::<Pod>(key);
    if pod::condition(pod, "DisruptionTarget").is_none_or(|condition| condition.status != "True") {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": texts.reason,
            "message": texts.message,
            "lastTransitionTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(context.wall())});
        let patch =
            Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}}));
        match pods.patch_status(key.name(), &PatchParams::default(), &patch).await {
            Err(error) if retry::is_missing(&error) => return Ok(()),
            result => drop(result?),
        }
    }
    match pods.delete(key.name(), &DeleteParams::default()).await {
        Err(error) if retry::is_missing(&error) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates_every_taint() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let taint = |key: &str, value: &str| {
            json!({"key": key, "value": value, "effect": "NoExecute",
            "timeAdded": "2026-01-01T00:59:00Z"})
        };
        let at = |text: &str| Stay::Until(text.parse().unwrap());
        for (tolerations, taints, expected) in [
            (json!([]), json!([]), Stay::Forever),
            (json!([]), json!([taint("a", "")]), Stay::Until(now)),
            (json!([{"operator": "Exists"}]), json!([taint("a", "")]), Stay::Forever),
            (
                json!([{"key": "a", "operator": "Exists"}]),
                json!([taint("a", ""), taint("b", "")]),
                Stay::Until(now),
            ),
            (json!([{"key": "a", "value": "x"}]), json!([taint("a", "x")]), Stay::Forever),
            (json!([{"key": "a", "value": "x"}]), json!([taint("a", "y")]), Stay::Until(now)),
            (
                json!([{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]),
                json!([taint("a", "")]),
                Stay::Until(now),
            ),
            (
                json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 300}]),
                json!([taint("a", "")]),
                at("2026-01-01T01:04:00Z"),
            ),
            (
                json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 300},
                    {"operator": "Exists", "tolerationSeconds": 100}]),
                json!([taint("a", ""), taint("b", "")]),
                at("2026-01-01T01:00:40Z"),
            ),
            (
                json!([{"key": "a", "operator": "Exists", "tolerationSeconds": -5}]),
                json!([taint("a", "")]),
                at("2026-01-01T00:59:00Z"),
            ),
        ] {
            let read = |value: &Value| value.to_string();
            let tolerations: Vec<Toleration> = serde_json::from_str(&read(&tolerations)).unwrap();
            let taints: Vec<Taint> = serde_json::from_str(&read(&taints)).unwrap();
            assert_eq!(stays_until(&tolerations, taints.iter(), now), expected, "{tolerations:?} {taints:?}");
        }
    }
}
