//! Deployments: replace the pods of one template by those of the next, through ReplicaSets.

mod plan;
mod progress;
mod revision;
mod rollback;
mod sizes;
mod template;

use crate::{claim, pod};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet},
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
    core::Selector,
};
use operator::{Context, Controller, Failure, Key, Next, all, owner};
use plan::{ObservedSets, RolloutPlan, SetUpdate};
use progress::wanted;
use rollback::Rollback;
use sizes::Strategy;
use std::{collections::BTreeSet, time::Duration};

/// Kubernetes: so many Deployments are reconciled at once.
const WORKERS: usize = 5;
/// How long the watch may take to show a ReplicaSet whose creation was not confirmed.
const CACHE_LAG: Duration = Duration::from_secs(1);

pub(crate) fn controller() -> Controller {
    Controller::new("deployment-controller", all::<Deployment>())
        .owns(all::<ReplicaSet>())
        .watches_through(all::<ReplicaSet>(), |owners, set| claim::claimants(owners, set, selector))
        // Their end shows in the status of their ReplicaSet, which triggers.
        .reads(all::<Pod>())
        .workers(WORKERS)
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(deployment) = context.get::<Deployment>(&key)? else { return Ok(Next::Settled) };
    let (Some(spec), Some(selector)) = (&deployment.spec, selector(&deployment)) else {
        return Ok(Next::Settled);
    };
    let candidates = claim::candidates(&context.view::<ReplicaSet>()?, &*deployment)?;
    let sets = claim::claim(&context, &*deployment, &selector, candidates).await?;
    let sets: Vec<ReplicaSet> = sets.iter().map(|set| ReplicaSet::clone(set)).collect();
    let is_deleting = deployment.metadata.deletion_timestamp.is_some();
    let is_paused = spec.paused.unwrap_or_default();
    if let Some(wanted) = revision::rollback_to(&deployment).filter(|_| !is_deleting && !is_paused) {
        return roll_back(&context, &key, rollback::plan(&deployment, spec, sets, wanted)).await;
    }
    let with_pods = match Strategy::of(spec) {
        Strategy::Recreate => sets_with_pods(&context, &sets)?,
        Strategy::RollingUpdate(_) => BTreeSet::new(),
    };
    let owner = owner::reference(&*deployment)?;
    let observed =
        ObservedSets { deployment: &deployment, spec, owner, sets, with_pods, now: context.wall() };
    Work { context: &context, deployment: &deployment, spec }.carry_out(plan::plan(&observed)).await
}

fn selector(deployment: &Deployment) -> Option<Selector> {
    deployment.spec.as_ref()?.selector.clone().try_into().ok()
}

/// The UIDs of the ReplicaSets that have pods which have not ended.
fn sets_with_pods(context: &Context<()>, sets: &[ReplicaSet]) -> Result<BTreeSet<String>, Failure> {
    let (pods, mut found) = (context.view::<Pod>()?, BTreeSet::new());
    for uid in sets.iter().filter_map(|set| set.metadata.uid.as_ref()) {
        if pods.owned_by(uid)?.iter().any(|pod| !pod::is_finished(pod)) {
            found.insert(uid.clone());
        }
    }
    Ok(found)
}

async fn roll_back(context: &Context<()>, key: &Key, rollback: Rollback) -> Result<Next, Failure> {
    let Rollback { deployment, event_type, reason, message } = rollback;
    let api = context.namespaced::<Deployment>(key);
    api.replace(&deployment.name_any(), &PostParams::default(), &deployment).await?;
    match event_type {
        operator::event::EventType::Normal => {
            context.events().normal(&deployment, reason, "RollBack", message);
        }
        operator::event::EventType::Warning => {
            context.events().warning(&deployment, reason, "RollBack", message);
        }
    }
    Ok(Next::Settled)
}

/// The writes of one reconcile.
struct Work<'a> {
    context: &'a Context<()>,
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
}

/// Why there is no new ReplicaSet.
enum NotCreated {
    /// The namespace is being deleted, and the Deployment with it.
    NamespaceTerminating,
    /// An earlier attempt has created it, and the cache does not show it yet.
    NotCachedYet,
    /// A ReplicaSet of something else has its name.
    Collision,
    Refused(kube::Error),
}

impl Work<'_> {
    async fn carry_out(&self, plan: RolloutPlan) -> Result<Next, Failure> {
        let RolloutPlan { create, updates, delete, revision, mut status, check_after } = plan;
        if let Some(set) = &create
            && let Err(problem) = self.create(set).await
        {
            return self.report_not_created(set, problem).await;
        }
        let sets = self.context.namespaced::<ReplicaSet>(&Key::of(self.deployment));
        for update in updates {
            self.update(&sets, update).await?;
        }
        for name in delete {
            match sets.delete(&name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        status.conditions = status.conditions.filter(|conditions| !conditions.is_empty());
        self.write_status(revision, status).await?;
        Ok(check_after.map_or(Next::Settled, Next::CheckAfter))
    }

    async fn create(&self, set: &ReplicaSet) -> Result<(), NotCreated> {
        let sets = self.context.namespaced::<ReplicaSet>(&Key::of(self.deployment));
        match sets.create(&PostParams::default(), set).await {
            Ok(_) => {
                if wanted(set) > 0 {
                    self.tell_scaled(set, 0);
                }
                Ok(())
            }
            Err(error) if pod::is_namespace_terminating(&error) => Err(NotCreated::NamespaceTerminating),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                // From the server: the cache would have shown one of this Deployment, unless it lags behind.
                let live = sets.get_opt(&set.name_any()).await.map_err(NotCreated::Refused)?;
                let is_ours = live.is_none_or(|live| {
                    let own = live.spec.as_ref().and_then(|spec| spec.template.as_ref());
                    owner::is_controlled_by(&live, self.deployment)
                        && own.is_some_and(|own| template::is_same(own, &self.spec.template))
                });
                Err(if is_ours { NotCreated::NotCachedYet } else { NotCreated::Collision })
            }
            Err(error) => Err(NotCreated::Refused(error)),
        }
    }

    async fn report_not_created(&self, set: &ReplicaSet, problem: NotCreated) -> Result<Next, Failure> {
        let mut status = self.deployment.status.clone().unwrap_or_default();
        match problem {
            NotCreated::NamespaceTerminating => Ok(Next::Settled),
            NotCreated::NotCachedYet => Ok(Next::CheckAfter(CACHE_LAG)),
            NotCreated::Collision => {
                // The next hash is another one.
                status.collision_count = Some(status.collision_count.unwrap_or_default() + 1);
                self.write_status(None, status).await?;
                Ok(Next::Settled)
            }
            NotCreated::Refused(error) => {
                let (name, cause) = (set.name_any(), pod::message(&error));
                let message = format!("Failed to create new replica set {name:?}: {cause}");
                let conditions = status.conditions.get_or_insert_default();
                let note = (progress::CREATE_FAILED, message.as_str());
                progress::note_new_set(conditions, self.spec, note, self.now());
                // The refusal counts more than a conflict here.
                drop(self.write_status(None, status).await);
                self.context.events().warning(self.deployment, progress::CREATE_FAILED, "Create", message);
                Err(Failure::transient(error))
            }
        }
    }

    async fn update(&self, sets: &Api<ReplicaSet>, update: SetUpdate) -> Result<(), Failure> {
        let SetUpdate { set, replicas_before } = update;
        sets.replace(&set.name_any(), &PostParams::default(), &set).await?;
        if wanted(&set) != replicas_before {
            self.tell_scaled(&set, replicas_before);
        }
        Ok(())
    }

    fn tell_scaled(&self, set: &ReplicaSet, before: i32) {
        let (name, after) = (set.name_any(), wanted(set));
        let direction = if after > before { "up" } else { "down" };
        let note = format!("Scaled {direction} replica set {name} from {before} to {after}");
        self.context.events().normal(self.deployment, "ScalingReplicaSet", "Scale", note);
    }

    /// Writes the status, and the revision with it, if they differ.
    async fn write_status(&self, revision: Option<String>, status: DeploymentStatus) -> Result<(), Failure> {
        let before = serde_json::to_value(self.deployment.status.clone().unwrap_or_default())?;
        let is_same_status = before == serde_json::to_value(&status)?;
        let known = self.deployment.annotations().get(revision::REVISION);
        let revision = revision.filter(|revision| Some(revision) != known);
        if is_same_status && revision.is_none() {
            return Ok(());
        }
        let mut deployment = self.deployment.clone();
        deployment.status = Some(status);
        if let Some(revision) = revision {
            deployment.annotations_mut().insert(revision::REVISION.to_owned(), revision);
        }
        let api = self.context.namespaced::<Deployment>(&Key::of(&deployment));
        match api.replace_status(&deployment.name_any(), &PostParams::default(), &deployment).await {
            Ok(_) => Ok(()),
            // Deleted meanwhile: there is no status to write.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn now(&self) -> Timestamp {
        self.context.wall()
    }
}
