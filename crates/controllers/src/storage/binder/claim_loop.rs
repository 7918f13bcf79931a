//! The loop over claims: finds each a volume, or asks for one.

use super::{
    WORKERS, bind,
    claim_plan::{self, ClaimPlan, ClaimState, Notice},
    default_class,
};
use crate::{
    pod,
    storage::{
        claim_facts::{self, BIND_COMPLETED},
        claim_users, volume_facts,
    },
};
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{Resource, ResourceExt, api::PostParams};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};
use std::sync::Arc;

/// The index of claims by the volume that they name.
const BY_VOLUME: &str = "volume";
/// The index of claims without a volume by their class.
const WAITING: &str = "waiting-in-class";
/// The index of volumes by the claim that they are for.
const BY_CLAIM: &str = "claim";
/// The index of volumes that refer to no claim by their class.
const FREE: &str = "free-in-class";

/// Kubernetes: which provisioner is asked for the volume, with the name of the annotation today and before.
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const BETA_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";

pub(super) fn controller() -> Controller {
    let volumes = all::<PersistentVolume>().index(BY_CLAIM, claim_of_volume).index(FREE, |volume| {
        let is_free = volume_facts::claim_reference(volume).is_none();
        is_free.then(|| volume_facts::class(volume).to_owned()).into_iter().collect()
    });
    Controller::new("persistentvolume-binder-claims", all::<PersistentVolumeClaim>())
        .index(BY_VOLUME, |claim| named(claim_facts::volume(claim)))
        .index(WAITING, |claim| match claim_facts::volume(claim) {
            "" => vec![claim_facts::class(claim).to_owned()],
            _ => Vec::new(),
        })
        .watches_through(volumes, claims_of_volume)
        .watches_through(all::<StorageClass>(), |claims, class| {
            // Claims without a class wait for a default class.
            let mut keys = waiting(claims, &class.name_any());
            keys.extend(waiting(claims, ""));
            keys
        })
        .watches_through(all::<Pod>(), claims_of_pod)
        .workers(WORKERS)
        .reconcile((), reconcile)
}

fn named(name: &str) -> Vec<String> {
    if name.is_empty() { Vec::new() } else { vec![name.to_owned()] }
}

fn claim_of_volume(volume: &PersistentVolume) -> Vec<String> {
    let reference = volume_facts::claim_reference(volume);
    reference.map(|reference| volume_facts::claim_key(reference).to_string()).into_iter().collect()
}

/// The claims that a volume is for, that name it, or that may want it.
fn claims_of_volume(claims: &View<PersistentVolumeClaim>, volume: &PersistentVolume) -> Vec<Key> {
    let mut keys: Vec<Key> = claim_of_volume(volume).iter().map(|key| Key::parse(key)).collect();
    let named = claims.indexed(BY_VOLUME, &volume.name_any()).unwrap_or_default();
    keys.extend(named.iter().map(|claim| Key::of(&**claim)));
    if keys.is_empty() && volume_facts::phase(volume) == "Available" {
        keys.extend(waiting(claims, volume_facts::class(volume)));
    }
    keys
}

fn waiting(claims: &View<PersistentVolumeClaim>, class: &str) -> Vec<Key> {
    let claims = claims.indexed(WAITING, class).unwrap_or_default();
    claims.iter().map(|claim| Key::of(&**claim)).collect()
}

/// Claims without a volume say which pods they wait for.
fn claims_of_pod(claims: &View<PersistentVolumeClaim>, pod: &Pod) -> Vec<Key> {
    if !pod::node_name(pod).is_empty() {
        return Vec::new();
    }
    let has_volume = |key: &Key| match claims.get(key) {
        Ok(Some(claim)) => !claim_facts::volume(&claim).is_empty(),
        _ => true,
    };
    claim_users::claims(pod).into_iter().filter(|key| !has_volume(key)).collect()
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(claim) = context.get::<PersistentVolumeClaim>(&key)? else { return Ok(Next::Settled) };
    let named_volume = named_volume(&context, &claim).await?;
    let classes = context.view::<StorageClass>()?;
    let class_name = claim_facts::class(&claim);
    let class = classes.get(&Key::new(None, class_name))?;
    let (mut volumes, mut default_class, mut unscheduled_pods) = (Vec::new(), None, Vec::new());
    if claim_facts::volume(&claim).is_empty() {
        let view = context.view::<PersistentVolume>()?;
        volumes = view.indexed(BY_CLAIM, key.as_str())?;
        volumes.extend(view.indexed(FREE, class_name)?);
        default_class = default_class::name(&classes.list()?);
        let pods = claim_users::of_claim(&context.view::<Pod>()?, &key)?;
        let waits = |pod: &&Arc<Pod>| pod::node_name(pod).is_empty() && !pod::is_finished(pod);
        unscheduled_pods = pods.iter().filter(waits).map(|pod| pod.name_any()).collect();
    }
    let plan = claim_plan::plan(&ClaimState {
        claim: &claim,
        named_volume: named_volume.as_ref(),
        volumes: &volumes,
        class: class.as_deref(),
        default_class: default_class.as_deref(),
        unscheduled_pods: &unscheduled_pods,
    });
    carry_out(&context, &claim, plan).await
}

/// The volume that the claim names. Before a bound claim counts as lost, the server is asked.
async fn named_volume(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
) -> Result<Option<Arc<PersistentVolume>>, Failure> {
    let name = claim_facts::volume(claim);
    if name.is_empty() {
        return Ok(None);
    }
    let cached = context.get::<PersistentVolume>(&Key::new(None, name))?;
    if cached.is_some() || !claim.annotations().contains_key(BIND_COMPLETED) {
        return Ok(cached);
    }
    Ok(context.cluster::<PersistentVolume>().get_opt(name).await?.map(Arc::new))
}

async fn carry_out(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
    plan: ClaimPlan,
) -> Result<Next, Failure> {
    match plan {
        ClaimPlan::Bind(volume) => {
            bind::bind(context, &volume, claim).await?;
            Ok(Next::Settled)
        }
        ClaimPlan::AssignClass(class) => {
            let mut changed = claim.clone();
            changed.spec.get_or_insert_default().storage_class_name = Some(class);
            replace(context, &changed).await?;
            Ok(Next::Settled)
        }
        ClaimPlan::Wait(notice) => {
            if let Some(notice) = &notice {
                record(context, claim, notice);
            }
            bind::set_claim_phase(context, claim, "Pending", None).await?;
            Ok(Next::WaitFor("a volume"))
        }
        ClaimPlan::Provision(provisioner) => provision(context, claim, &provisioner).await,
        ClaimPlan::Lose(notice) => {
            if claim_facts::phase(claim) != "Lost" {
                bind::set_claim_phase(context, claim, "Lost", None).await?;
                record(context, claim, &notice);
            }
            Ok(Next::Settled)
        }
        ClaimPlan::Fail(notice) => {
            record(context, claim, &notice);
            Err(Failure::transient(notice.message))
        }
    }
}

async fn provision(
    context: &Context<()>,
    claim: &PersistentVolumeClaim,
    provisioner: &str,
) -> Result<Next, Failure> {
    if claim.annotations().get(PROVISIONER).is_none_or(|it| it != provisioner) {
        let mut changed = claim.clone();
        for name in [PROVISIONER, BETA_PROVISIONER] {
            changed.annotations_mut().insert(name.to_owned(), provisioner.to_owned());
        }
        replace(context, &changed).await?;
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
         system administrator. If volume creation is delayed, please verify that the provisioner is running and \
         correctly registered."
    );
    record(context, claim, &Notice::normal("ExternalProvisioning", message));
    Ok(Next::WaitFor("the provisioner"))
}

async fn replace(context: &Context<()>, claim: &PersistentVolumeClaim) -> Result<(), Failure> {
    let claims = context.namespaced::<PersistentVolumeClaim>(&Key::of(claim));
    claims.replace(&claim.name_any(), &PostParams::default(), claim).await?;
    Ok(())
}

fn record(context: &Context<()>, claim: &PersistentVolumeClaim, notice: &Notice) {
    let Notice { event_type, reason, message } = notice;
    context.events().record(claim.object_ref(&()), *event_type, reason, "", message.clone());
}
