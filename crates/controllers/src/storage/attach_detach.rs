//! Attaches the volumes of CSI drivers to the nodes whose pods use them: one VolumeAttachment for a volume and a node,
//! which the driver's own attacher carries out.

mod plan;

use super::{claim_facts, claim_users};
use crate::pod;
use k8s_openapi::api::{
    core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::{CSIDriver, VolumeAttachment},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, predicate::Predicate};
use plan::{AttachableVolume, AttachmentPlan, NodeVolumes};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// Kubernetes: what its events name as their source.
const COMPONENT: &str = "attachdetach-controller";
/// The index of attachments by their node.
const BY_NODE: &str = "node";

/// Its keys are those of nodes. The primary kind is pods all the same: from there it finds the nodes of a claim.
pub(crate) fn controller() -> Controller {
    let never = Predicate::new(|_| false);
    let attachments = all::<VolumeAttachment>().index(BY_NODE, |it| vec![it.spec.node_name.clone()]);
    Controller::new("persistentvolume-attach-detach-controller", all::<Pod>().when(never))
        .watches(all::<Node>(), |node| vec![Key::of(node)])
        .watches(all::<Pod>(), node_with_claims)
        .watches_through(all::<PersistentVolumeClaim>(), nodes_of_claim)
        .watches(attachments, |attachment| vec![Key::new(None, &attachment.spec.node_name)])
        .reads(all::<PersistentVolume>())
        .reads(all::<CSIDriver>())
        .reconcile((), reconcile)
        .event_component(COMPONENT)
}

/// The node of a pod that uses claims.
fn node_with_claims(pod: &Pod) -> Vec<Key> {
    match pod::node_name(pod) {
        node if !node.is_empty() && !claim_users::claims(pod).is_empty() => vec![Key::new(None, node)],
        _ => Vec::new(),
    }
}

fn nodes_of_claim(pods: &View<Pod>, claim: &PersistentVolumeClaim) -> Vec<Key> {
    let users = claim_users::of_claim(pods, &Key::of(claim)).unwrap_or_default();
    users.iter().flat_map(|pod| node_with_claims(pod)).collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let node = context.get::<Node>(&key)?;
    let attachments = context.view::<VolumeAttachment>()?.indexed(BY_NODE, key.name())?;
    let wanted = match &node {
        Some(_) => wanted(&context, key.name())?,
        None => BTreeMap::new(),
    };
    let status = node.as_ref().and_then(|node| node.status.as_ref());
    let plan = plan::plan(&NodeVolumes {
        wanted: &wanted,
        attachments: &attachments,
        in_use: status.and_then(|status| status.volumes_in_use.as_deref()).unwrap_or_default(),
        reported: status.and_then(|status| status.volumes_attached.as_deref()).unwrap_or_default(),
        node: key.name(),
    });
    carry_out(&context, node.as_deref(), plan).await?;
    Ok(Next::Settled)
}

/// The volumes that the pods of a node use and that have to be attached, by the names of their attachments.
fn wanted(context: &Context<()>, node: &str) -> Result<BTreeMap<String, AttachableVolume>, Failure> {
    let mut wanted = BTreeMap::new();
    let (claims, volumes) = (context.view::<PersistentVolumeClaim>()?, context.view::<PersistentVolume>()?);
    for pod in pod::on_node(&context.view::<Pod>()?, node)?.iter().filter(|pod| !pod::is_finished(pod)) {
        for claim in claim_users::claims(pod) {
            let Some(claim) = claims.get(&claim)? else { continue };
            let Some(volume) = volumes.get(&Key::new(None, claim_facts::volume(&claim)))? else { continue };
            let Some(volume) = AttachableVolume::of(&volume) else { continue };
            let driver = context.get::<CSIDriver>(&Key::new(None, &volume.driver))?;
            // Kubernetes: a driver that is not known is attached.
            if driver.is_none_or(|driver| driver.spec.attach_required != Some(false)) {
                wanted.insert(volume.attachment_name(node), volume);
            }
        }
    }
    Ok(wanted)
}

async fn carry_out(context: &Context<()>, node: Option<&Node>, plan: AttachmentPlan) -> Result<(), Failure> {
    let attachments = context.cluster::<VolumeAttachment>();
    for attachment in &plan.create {
        match attachments.create(&PostParams::default(), attachment).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => drop(other?),
        }
    }
    for attachment in &plan.delete {
        delete(context, attachment).await?;
    }
    if let (Some(node), Some(attached)) = (node, plan.report) {
        let patch =
            Patch::Merge(json!({"metadata": {"uid": node.uid()}, "status": {"volumesAttached": attached}}));
        let nodes = context.cluster::<Node>();
        match nodes.patch_status(&node.name_any(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}

async fn delete(context: &Context<()>, attachment: &Arc<VolumeAttachment>) -> Result<(), Failure> {
    let preconditions = Preconditions { uid: attachment.uid(), resource_version: None };
    let parameters = DeleteParams::default().preconditions(preconditions);
    match context.cluster::<VolumeAttachment>().delete(&attachment.name_any(), &parameters).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
