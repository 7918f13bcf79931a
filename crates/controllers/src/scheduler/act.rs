//! Carries decisions out: bindings, conditions, events, deletions of victims, and the writes for volumes.

use super::{
    facts::{PodFacts, SCHEDULER},
    state::RejectedPod,
    volumes::VolumeWrite,
};
use crate::{
    pod,
    storage::{claim_facts::SELECTED_NODE, volume_facts::BOUND_BY_CONTROLLER},
};
use futures::future::join_all;
use k8s_openapi::{
    api::core::v1::{Binding, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use operator::{
    Key, World,
    cache::LeftToWatch,
    event::{EventType, Recorder},
};
use serde_json::{Value, json};

/// Kubernetes: longer notes of events are refused.
const LONGEST_NOTE: usize = 1024;

/// What is needed to write.
#[derive(Clone)]
pub(super) struct DecisionWriter {
    pub(super) world: World,
    pub(super) client: Client,
    pub(super) events: Recorder,
}

impl DecisionWriter {
    /// Binds the pod to the node.
    pub(super) async fn bind(&self, pod: &PodFacts, node: &str) -> Result<(), kube::Error> {
        let metadata = ObjectMeta {
            name: Some(pod.name.clone()),
            namespace: Some(pod.namespace.clone()),
            uid: Some(pod.uid.clone()),
            ..ObjectMeta::default()
        };
        let target = ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        };
        let binding = Binding { metadata, target };
        let bind = kube::core::Request::new(Pod::url_path(&(), Some(&pod.namespace)));
        let binding = serde_json::to_vec(&binding).map_err(kube::Error::SerdeError)?;
        let bind = bind.create_subresource("binding", &pod.name, &PostParams::default(), binding);
        let mut bind = bind.map_err(kube::Error::BuildRequest)?;
        // Until the watch reports it, the state assumes that the pod is there.
        bind.extensions_mut().insert(LeftToWatch);
        let _: Value = self.client.request(bind).await?;
        let note = format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
        self.events.record(reference(pod), EventType::Normal, "Scheduled", "Binding", note);
        Ok(())
    }

    /// Tells the user that no node fits, and deletes the victims if that helps.
    pub(super) async fn reject(&self, rejected: &RejectedPod) {
        let RejectedPod { pod, message, nominated_node, victims } = rejected;
        self.report(pod, "Unschedulable", message, nominated_node.as_deref()).await;
        let node = nominated_node.as_deref().unwrap_or_default();
        join_all(victims.iter().map(|victim| self.evict(pod, victim, node))).await;
    }

    /// Tells the user that the attempt has failed.
    pub(super) async fn report_failure(&self, pod: &PodFacts, error: &kube::Error) {
        let message = format!("binding rejected: {}", pod::message(error));
        self.report(pod, "SchedulerError", &message, pod.nominated_node.as_deref()).await;
    }

    async fn report(&self, pod: &PodFacts, reason: &str, message: &str, nominated_node: Option<&str>) {
        let note = if message.len() > LONGEST_NOTE {
            let end = (0..=LONGEST_NOTE - 4).rev().find(|end| message.is_char_boundary(*end));
            format!("{} ...", &message[..end.unwrap_or_default()])
        } else {
            message.to_owned()
        };
        self.events.record(reference(pod), EventType::Warning, "FailedScheduling", "Scheduling", note);
        let mut status = json!({});
        let before = pod.scheduled_condition.as_ref();
        let is_reported = before.is_some_and(|before| {
            before.status == "False"
                && before.reason.as_deref() == Some(reason)
                && before.message.as_deref() == Some(message)
                && before.observed_generation == pod.generation
        });
        if !is_reported {
            let since = before.filter(|before| before.status == "False");
            let since = since.and_then(|before| before.last_transition_time.clone());
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
                "lastProbeTime": null, "observedGeneration": pod.generation,
                "lastTransitionTime": since.unwrap_or_else(|| Time(self.world.wall())),
            }]);
        }
        if pod.nominated_node.as_deref() != nominated_node {
            status["nominatedNodeName"] = json!(nominated_node);
        }
        if status != json!({}) {
            self.patch_status(pod, status).await.ok();
        }
    }

    /// Deletes a victim so that the pod fits the node.
    async fn evict(&self, pod: &PodFacts, victim: &PodFacts, node: &str) {
        let message = format!("{SCHEDULER}: preempting to accommodate a higher priority pod");
        let condition = json!({"conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message,
            "lastProbeTime": null, "observedGeneration": victim.generation,
            "lastTransitionTime": Time(self.world.wall()),
        }]});
        if !victim.is_preempted && self.patch_status(victim, condition).await.is_err() {
            return;
        }
        let preconditions = Preconditions { uid: Some(victim.uid.clone()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        if let Err(error) = self.pods(victim).delete(&victim.name, &params).await {
            tracing::debug!(victim = %victim.key(), %error, "victim not deleted");
            return;
        }
        let note = format!("Preempted by pod {} on node {node}", pod.uid);
        self.events.record(reference(victim), EventType::Normal, "Preempted", "Preempting", note);
    }

    /// Makes the claims of the pod get volumes that the node reaches.
    pub(super) async fn prepare_volumes(
        &self,
        node: &str,
        writes: &[VolumeWrite],
    ) -> Result<(), kube::Error> {
        for write in writes {
            match write {
                VolumeWrite::SelectNode(claim) => {
                    let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
                    let claims = self.claims(claim);
                    claims.patch(claim.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
                }
                VolumeWrite::Reserve { volume, claim } => self.reserve(volume, claim).await?,
                VolumeWrite::Wait => {}
            }
        }
        Ok(())
    }

    async fn reserve(&self, volume: &str, claim: &Key) -> Result<(), kube::Error> {
        let Some(found) = self.claims(claim).get_opt(claim.name()).await? else { return Ok(()) };
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let Some(present) = volumes.get_opt(volume).await? else { return Ok(()) };
        // With the version that was read: another claim must not lose the volume.
        let patch = json!({
            "metadata": {
                "annotations": {BOUND_BY_CONTROLLER: "yes"},
                "resourceVersion": present.metadata.resource_version,
            },
            "spec": {"claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.name(),
                "namespace": claim.namespace(), "uid": found.metadata.uid,
                "resourceVersion": found.metadata.resource_version,
            }},
        });
        volumes.patch(volume, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    async fn patch_status(&self, pod: &PodFacts, status: Value) -> Result<(), kube::Error> {
        let patch = json!({"metadata": {"uid": pod.uid}, "status": status});
        let patch = Patch::Strategic(patch);
        let patched = self.pods(pod).patch_status(&pod.name, &PatchParams::default(), &patch).await;
        if let Err(error) = &patched {
            tracing::debug!(pod = %pod.key(), %error, "status not written");
        }
        patched.map(drop)
    }

    fn pods(&self, pod: &PodFacts) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace)
    }

    fn claims(&self, claim: &Key) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), claim.namespace().unwrap_or_default())
    }
}

fn reference(pod: &PodFacts) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(pod.namespace.clone()),
        name: Some(pod.name.clone()),
        uid: Some(pod.uid.clone()),
        ..ObjectReference::default()
    }
}
