//! Makes volumes for claims, and lets them grow: what external-provisioner and external-resizer do for a CSI driver.

use super::{
    claim_plan::{self, ClaimPlan, SELECTED_NODE},
    new_volume,
};
use k8s_openapi::{
    api::{
        core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{ResourceExt, api::PostParams};
use operator::{Context, Controller, Failure, Key, Next, all, status};
use std::sync::Arc;

/// So many claims at once.
const WORKERS: usize = 16;

pub(super) fn controller() -> Controller {
    Controller::new("simulated-claims", all::<PersistentVolumeClaim>())
        .reads(all::<PersistentVolume>())
        .reads(all::<StorageClass>())
        .reads(all::<Node>())
        .workers(WORKERS)
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(claim) = context.get::<PersistentVolumeClaim>(&key)? else { return Ok(Next::Settled) };
    let spec = claim.spec.clone().unwrap_or_default();
    let class_key = Key::new(None, spec.storage_class_name.as_deref().unwrap_or_default());
    let class = context.get::<StorageClass>(&class_key)?;
    let volume_key = Key::new(None, spec.volume_name.as_deref().unwrap_or_default());
    let volume = context.get::<PersistentVolume>(&volume_key)?;
    match (claim_plan::plan(&claim, class.as_deref(), volume.as_deref()), class, volume) {
        (ClaimPlan::Provision { node }, Some(class), _) => {
            provision(&context, &claim, &class, node.as_deref()).await?;
        }
        (ClaimPlan::Refuse(problem), Some(class), _) => fail(&context, &claim, &class, problem),
        (ClaimPlan::Resize(size), _, Some(volume)) => resize(&context, &claim, &volume, &size).await?,
        _ => {}
    }
    Ok(Next::Settled)
}

async fn provision(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&str>,
) -> Result<(), Failure> {
    let name = new_volume::name(claim);
    if context.get::<PersistentVolume>(&Key::new(None, &name))?.is_some() {
        return Ok(());
    }
    let node = match node {
        None => None,
        Some(node) => match find_node(context, node).await? {
            Some(node) => Some(node),
            None => return reschedule(context, claim, class, node).await,
        },
    };
    let note = format!("External provisioner is provisioning volume for claim \"{}\"", Key::of(claim));
    context.events().normal(claim, "Provisioning", "", note);
    let volume = new_volume::new_volume(claim, class, node.as_deref());
    match context.cluster::<PersistentVolume>().create(&PostParams::default(), &volume).await {
        // An earlier attempt has made it.
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
        other => drop(other?),
    }
    let note = format!("Successfully provisioned volume {name}");
    context.events().normal(claim, "ProvisioningSucceeded", "", note);
    Ok(())
}

/// The server is asked before a node counts as gone.
async fn find_node(context: &Context<()>, name: &str) -> Result<Option<Arc<Node>>, Failure> {
    let cached = context.get::<Node>(&Key::new(None, name))?;
    if cached.is_some() {
        return Ok(cached);
    }
    Ok(context.cluster::<Node>().get_opt(name).await?.map(Arc::new))
}

/// The node that the scheduler has selected is gone: it selects another one.
async fn reschedule(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: &str,
) -> Result<(), Failure> {
    fail(context, claim, class, &format!("error getting node {node:?}"));
    let mut changed = claim.clone();
    changed.annotations_mut().remove(SELECTED_NODE);
    let claims = context.namespaced::<PersistentVolumeClaim>(&Key::of(claim));
    claims.replace(&claim.name_any(), &PostParams::default(), &changed).await?;
    Ok(())
}

fn fail(context: &Context<()>, claim: &PersistentVolumeClaim, class: &StorageClass, problem: &str) {
    let note = format!("failed to provision volume with StorageClass {:?}: {problem}", class.name_any());
    context.events().warning(claim, "ProvisioningFailed", "", note);
}

/// First the volume, then the claim: a claim never shows more than its volume has.
async fn resize(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    size: &Quantity,
) -> Result<(), Failure> {
    let name = volume.name_any();
    if claim_plan::is_smaller(volume, size) {
        let note = format!("External resizer is resizing volume {name}");
        context.events().normal(claim, "Resizing", "", note);
        let mut changed = volume.clone();
        let capacity = changed.spec.get_or_insert_default().capacity.get_or_insert_default();
        capacity.insert("storage".to_owned(), size.clone());
        context.cluster::<PersistentVolume>().replace(&name, &PostParams::default(), &changed).await?;
    }
    let claims = context.namespaced::<PersistentVolumeClaim>(&Key::of(claim));
    status::set_if_unchanged(&claims, claim, &resized(claim, size)).await?;
    context.events().normal(claim, "VolumeResizeSuccessful", "", "Resize volume succeeded");
    Ok(())
}

fn resized(claim: &PersistentVolumeClaim, size: &Quantity) -> PersistentVolumeClaimStatus {
    let mut status = claim.status.clone().unwrap_or_default();
    for sizes in [&mut status.capacity, &mut status.allocated_resources] {
        sizes.get_or_insert_default().insert("storage".to_owned(), size.clone());
    }
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|it| !matches!(it.type_.as_str(), "Resizing" | "FileSystemResizePending"));
    }
    status
}
