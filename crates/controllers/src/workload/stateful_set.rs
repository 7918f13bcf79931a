//! StatefulSets: pods with names and volumes that they keep, created, updated and deleted in order.

mod carry_out;
mod desired;
mod identity;
mod plan;
mod retention;
mod revisions;
mod status;

use super::history;
use crate::{claim, pod, status as object_status};
use carry_out::{StatefulWork, Versioned};
use desired::StatefulSpec;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{Resource, ResourceExt, core::Selector};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View};
use plan::{Claims, StatefulState};
use revisions::StatefulRevisions;
use status::StatefulCounts;
use std::sync::Arc;

/// Kubernetes: so many sets are reconciled at once.
const WORKERS: usize = 5;

pub(crate) fn controller() -> Controller {
    Controller::new("statefulset-controller", all::<StatefulSet>())
        .owns(all::<Pod>())
        .watches_through(all::<Pod>(), |sets, pod| claim::claimants(sets, pod, selector))
        // A pod may wait for a claim to be deleted.
        .watches_through(all::<PersistentVolumeClaim>(), users_of)
        .reads(all::<ControllerRevision>())
        .workers(WORKERS)
        .reconcile((), reconcile)
}

/// Claims and revisions are read from caches that already hold what this process has written; Kubernetes waits
/// instead until its caches have caught up.
async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(set) = context.get::<StatefulSet>(&key)? else { return Ok(Next::Settled) };
    let Some(desired) = StatefulSpec::of(&set) else { return Ok(Next::Settled) };
    let Some(selector) = selector(&set) else { return Ok(Next::Settled) };
    let known = history::claimed(&context, &*set, &selector).await?;
    let pods = pods(&context, &set, &selector).await?;
    let template = &desired.spec.template;
    let Some(revisions) = revisions::current_and_update(&context, &set, template, &known).await? else {
        return Ok(Next::Settled);
    };
    let now = context.wall();
    let names = [&revisions.current, &revisions.update].map(|revision| revision.name_any());
    let [current_revision, update_revision] = [names[0].as_str(), names[1].as_str()];
    let claims = claims(&context, &desired, &pods)?;
    let observed = StatefulState { desired, pods: &pods, claims: &claims, update_revision, now };
    let work = work(&context, desired, &revisions);
    let (deleted, done) = work.all(&plan::plan(&observed)).await;
    let counted = StatefulCounts {
        desired,
        pods: &pods,
        deleted: &deleted,
        current_revision,
        update_revision,
        collisions: revisions.collisions,
        now,
    };
    let api = context.namespaced::<StatefulSet>(&key);
    let written = object_status::replace(&api, &*set, &status::status(&counted)).await;
    done?;
    written?;
    revisions::truncate(&context, &set, &known, &revisions, &pods).await?;
    let pods = pods.iter().map(|pod| &**pod);
    Ok(pod::next_available(pods, desired.min_ready_seconds, now).map_or(Next::Settled, Next::CheckAfter))
}

/// The pods of the set, after orphans were adopted. Pods without its name are not its own.
async fn pods(
    context: &Context<()>,
    set: &StatefulSet,
    selector: &Selector,
) -> Result<Vec<Arc<Pod>>, Failure> {
    let name = set.name_any();
    let mut candidates = claim::candidates(&context.view::<Pod>()?, set)?;
    candidates.retain(|pod| identity::ordinal(&name, &pod.name_any()).is_some());
    claim::claim(context, set, selector, candidates).await
}

/// The claims of the pods that the set has or should have.
fn claims(context: &Context<()>, desired: &StatefulSpec<'_>, pods: &[Arc<Pod>]) -> Result<Claims, Failure> {
    let (mut claims, templates) = (Claims::new(), desired.claim_templates());
    if templates.is_empty() {
        return Ok(claims);
    }
    let view: View<PersistentVolumeClaim> = context.view()?;
    let (namespace, name) = (desired.set.meta().namespace.as_deref(), desired.name());
    let present = pods.iter().filter_map(|pod| identity::ordinal(&name, &pod.name_any()));
    for ordinal in desired.ordinals().chain(present) {
        for template in templates {
            let name = desired.claim_name(template, ordinal);
            if let Some(claim) = view.get(&Key::new(namespace, &name))? {
                claims.insert(name, claim);
            }
        }
    }
    Ok(claims)
}

fn work<'a>(
    context: &'a Context<()>,
    desired: StatefulSpec<'a>,
    revisions: &StatefulRevisions,
) -> StatefulWork<'a> {
    let versioned = |revision: &ControllerRevision| Versioned {
        revision: revision.name_any(),
        // A revision without a template of a pod restores nothing.
        template: history::template_of(revision).unwrap_or_else(|| desired.spec.template.clone()),
    };
    StatefulWork {
        context,
        desired,
        current: versioned(&revisions.current),
        update: versioned(&revisions.update),
    }
}

/// The sets in the namespace of a claim whose pods would have a claim of that name.
fn users_of(sets: &View<StatefulSet>, claim: &PersistentVolumeClaim) -> Vec<Key> {
    let Some((stem, ordinal)) = claim.metadata.name.as_deref().and_then(|name| name.rsplit_once('-')) else {
        return Vec::new();
    };
    if ordinal.parse::<i32>().is_err() {
        return Vec::new();
    }
    let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
    let sets = sets.in_namespace(namespace).unwrap_or_default();
    let uses = |set: &&Arc<StatefulSet>| {
        let templates = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_deref());
        let name = set.name_any();
        templates.unwrap_or_default().iter().any(|template| stem == format!("{}-{name}", template.name_any()))
    };
    sets.iter().filter(uses).map(|set| Key::of(&**set)).collect()
}

fn selector(set: &StatefulSet) -> Option<Selector> {
    set.spec.as_ref()?.selector.clone().try_into().ok()
}
