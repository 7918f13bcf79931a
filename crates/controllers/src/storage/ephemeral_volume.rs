//! Generic ephemeral volumes: creates the claim of each, which belongs to its pod.

use super::claim_users;
use crate::pod;
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, Pod, Volume},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{ResourceExt, api::PostParams};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};

/// Kubernetes: `--concurrent-ephemeralvolume-syncs`.
const WORKERS: usize = 5;
/// Kubernetes: what its events name as their source.
const COMPONENT: &str = "ephemeral_volume";

pub(crate) fn controller() -> Controller {
    Controller::new("ephemeral-volume-controller", all::<Pod>())
        .watches_through(all::<PersistentVolumeClaim>(), users)
        .workers(WORKERS)
        .reconcile((), reconcile)
        .event_component(COMPONENT)
}

/// The pods for which a claim is made again after it was deleted.
fn users(pods: &View<Pod>, claim: &PersistentVolumeClaim) -> Vec<Key> {
    let users = claim_users::of_claim(pods, &Key::of(claim)).unwrap_or_default();
    users.iter().map(|pod| Key::of(&**pod)).collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else { return Ok(Next::Settled) };
    if pod.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled);
    }
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let Some(claim) = claim(&pod, volume) else { continue };
        let claim_key = Key::new(key.namespace(), &claim.name_any());
        let problem = match context.get::<PersistentVolumeClaim>(&claim_key)? {
            Some(found) if claim_users::is_made_for(&found, &pod) => continue,
            Some(_) => format!("PVC {claim_key} was not created for pod {key} (pod is not owner)"),
            None => {
                let claims = context.namespaced::<PersistentVolumeClaim>(&key);
                match claims.create(&PostParams::default(), &claim).await {
                    Ok(_) => continue,
                    Err(error) if pod::is_namespace_terminating(&error) => return Ok(Next::Settled),
                    Err(error) => format!("create PVC {}: {}", claim_key.name(), pod::message(&error)),
                }
            }
        };
        let message = format!("ephemeral volume {}: {problem}", volume.name);
        context.events().warning(&*pod, "FailedBinding", "", message.clone());
        return Err(Failure::transient(message));
    }
    Ok(Next::Settled)
}

/// The claim of a volume, if the volume is a generic ephemeral one.
fn claim(pod: &Pod, volume: &Volume) -> Option<PersistentVolumeClaim> {
    let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
    let meta = template.metadata.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        name: Some(claim_users::ephemeral_name(pod, volume)),
        annotations: meta.annotations,
        labels: meta.labels,
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Some(PersistentVolumeClaim { metadata, spec: Some(template.spec.clone()), status: None })
}
