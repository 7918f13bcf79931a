//! Claims that pods use stay until those pods are gone.

use super::{
    claim_users,
    protection_finalizer::{self, ProtectionPlan},
};
use crate::pod;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{
    ResourceExt,
    api::{ListParams, ObjectMeta},
};
use operator::{Context, Controller, Failure, Key, Next, all};

const FINALIZER: &str = "kubernetes.io/pvc-protection";
/// Kubernetes: so many namespaces are looked at at once.
const WORKERS: usize = 30;

pub(crate) fn controller() -> Controller {
    Controller::new("persistentvolumeclaim-protection-controller", all::<PersistentVolumeClaim>())
        .watches(all::<Pod>(), claim_users::claims)
        .workers(WORKERS)
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(claim) = context.get::<PersistentVolumeClaim>(&key)? else { return Ok(Next::Settled) };
    let claims = context.namespaced::<PersistentVolumeClaim>(&key);
    match protection_finalizer::plan(&*claim, FINALIZER) {
        ProtectionPlan::Keep => {}
        ProtectionPlan::Add => protection_finalizer::add(&claims, &*claim, FINALIZER).await?,
        ProtectionPlan::Remove => {
            if is_used(&context, &key, &claim).await? {
                return Ok(Next::WaitFor("pods that use the claim"));
            }
            protection_finalizer::remove(&claims, &*claim, FINALIZER).await?;
        }
    }
    Ok(Next::Settled)
}

async fn is_used(context: &Context<()>, key: &Key, claim: &PersistentVolumeClaim) -> Result<bool, Failure> {
    let known = claim_users::of_claim(&context.view::<Pod>()?, key)?;
    if known.iter().any(|pod| uses(pod, claim)) {
        return Ok(true);
    }
    // Live: a pod that the watch has not shown yet may have been bound to a node a moment ago.
    let pods = context.namespaced::<Pod>(key).list(&ListParams::default()).await?;
    Ok(pods.items.iter().any(|pod| uses(pod, claim)))
}

/// Kubernetes: a pod without a node does not count, a finished one does. No kubelet starts a pod whose claim is being
/// deleted.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    if pod::node_name(pod).is_empty() || pod.metadata.namespace != claim.metadata.namespace {
        return false;
    }
    let name = claim.name_any();
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| {
        let is_named = volume.persistent_volume_claim.as_ref().is_some_and(|it| it.claim_name == name);
        let is_own = || {
            volume.ephemeral.is_some()
                && claim_users::ephemeral_name(pod, volume) == name
                && claim_users::is_made_for(claim, pod)
                && !is_shut_down(&pod.metadata)
        };
        is_named || is_own()
    })
}

/// Kubernetes: the garbage collector has deleted it in the foreground, and its kubelet has stopped it.
fn is_shut_down(pod: &ObjectMeta) -> bool {
    pod.deletion_timestamp.is_some() && pod.deletion_grace_period_seconds == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn pods_with_a_node_use_their_claims() {
        let claim = json!({"metadata": {"name": "p-v", "namespace": "default", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true}]}});
        let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
        let (named, ephemeral) = (
            json!({"name": "v", "persistentVolumeClaim": {"claimName": "p-v"}}),
            json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
        );
        let pod = |uid: &str, node: &str, grace: Option<i64>, phase: &str, volume: &Value| -> Pod {
            let deleted = grace.map(|_| "2026-01-01T00:00:00Z");
            let pod = json!({"metadata": {"name": "p", "namespace": "default", "uid": uid,
                "deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace},
                "spec": {"nodeName": node, "containers": [], "volumes": [volume]}, "status": {"phase": phase}});
            serde_json::from_value(pod).unwrap()
        };
        for (pod, expected) in [
            (pod("1", "n", None, "Running", &named), true),
            (pod("1", "", None, "Pending", &named), false),
            (pod("1", "n", None, "Succeeded", &named), true),
            (pod("1", "n", Some(0), "Running", &named), true),
            (pod("1", "n", None, "Running", &ephemeral), true),
            (pod("1", "n", Some(30), "Running", &ephemeral), true),
            (pod("1", "n", Some(0), "Running", &ephemeral), false),
            (pod("2", "n", None, "Running", &ephemeral), false),
        ] {
            assert_eq!(uses(&pod, &claim), expected, "{pod:?}");
        }
    }
}
