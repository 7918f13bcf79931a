//! Carries out the steps of a plan: pods and claims are created, repaired and deleted, with an event for each.

use super::{
    desired::{PodOrder, StatefulSpec},
    identity,
    plan::{PodStep, StatefulPlan, TemplateVersion},
    retention::{self, ClaimOwners, ClaimUser},
};
use crate::{pod, slow_start};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use operator::{Context, Failure, Key, owner, retry};
use std::sync::Arc;

/// What the steps need.
#[derive(Debug)]
pub(super) struct StatefulWork<'a> {
    pub(super) context: &'a Context<()>,
    pub(super) desired: StatefulSpec<'a>,
    pub(super) current: Versioned,
    pub(super) update: Versioned,
}

/// The template of a revision, and the name of the revision.
#[derive(Debug)]
pub(super) struct Versioned {
    pub(super) revision: String,
    pub(super) template: PodTemplateSpec,
}

/// Which event tells of a step.
#[derive(Clone, Copy, Debug)]
enum EventVerb {
    Create,
    Update,
    Delete,
}

/// Why a step failed: the text is in an event.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("{}", pod::message(.0))]
    Pod(#[source] kube::Error),
    #[error("failed to create PVC {}: {}", .0, pod::message(.1))]
    CreateClaim(String, #[source] kube::Error),
    #[error("could not update claim {} for delete policy ownerRefs: {}", .0, pod::message(.1))]
    UpdateClaim(String, #[source] kube::Error),
    #[error("pvc {0} is being deleted")]
    ClaimIsDeleted(String),
    #[error(transparent)]
    Owner(#[from] owner::OwnerError),
}

impl StatefulWork<'_> {
    /// Carries out the plan up to the first failure; returns the pods that were deleted to be updated.
    pub(super) async fn all(&self, plan: &StatefulPlan) -> (Vec<Arc<Pod>>, Result<(), Failure>) {
        let mut deleted = Vec::new();
        for stage in &plan.stages {
            let done = match self.desired.order {
                PodOrder::Parallel => {
                    slow_start::create(stage.len(), |number| self.step(&stage[number])).await.1
                }
                PodOrder::OrderedReady => self.one_after_the_other(stage).await,
            };
            if done.is_err() {
                return (deleted, done);
            }
        }
        for pod in &plan.outdated {
            if let Err(failure) = self.delete(pod).await {
                return (deleted, Err(failure));
            }
            deleted.push(Arc::clone(pod));
        }
        (deleted, Ok(()))
    }

    async fn one_after_the_other(&self, steps: &[PodStep]) -> Result<(), Failure> {
        for step in steps {
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&self, step: &PodStep) -> Result<(), Failure> {
        match step {
            PodStep::Create { ordinal, template } => self.create(*ordinal, *template).await,
            PodStep::Delete(pod) => self.delete(pod).await,
            PodStep::Repair { ordinal, pod } => self.repair(*ordinal, pod).await,
            PodStep::SetClaims { ordinal, pod } => {
                let user = ClaimUser { ordinal: *ordinal, pod: Some(pod) };
                self.set_claims(user).await.map_err(failure)
            }
        }
    }

    async fn create(&self, ordinal: i32, template: TemplateVersion) -> Result<(), Failure> {
        let name = self.desired.pod_name(ordinal);
        let user = ClaimUser { ordinal, pod: None };
        let created = match self.set_claims(user).await {
            Ok(()) => self.create_pod(ordinal, template).await,
            Err(error) => Err(error),
        };
        match created {
            // No event: the pod of another owner, or one that the cache has not got yet.
            Err(StepError::Pod(error)) if retry::is_conflict(&error) => Err(Failure::transient(error)),
            created => self.told(EventVerb::Create, &name, created),
        }
    }

    async fn create_pod(&self, ordinal: i32, template: TemplateVersion) -> Result<(), StepError> {
        let versioned = match template {
            TemplateVersion::Current => &self.current,
            TemplateVersion::Update => &self.update,
        };
        let owner = owner::reference(self.desired.set)?;
        let pod = identity::new_pod(&self.desired, &versioned.template, &versioned.revision, ordinal, owner);
        self.pods().create(&PostParams::default(), &pod).await.map_err(StepError::Pod)?;
        Ok(())
    }

    async fn repair(&self, ordinal: i32, pod: &Pod) -> Result<(), Failure> {
        let claims_set = self.set_claims(ClaimUser { ordinal, pod: Some(pod) }).await;
        let repaired = match claims_set {
            Ok(()) => self.replace_pod(ordinal, pod).await,
            Err(error) => Err(error),
        };
        self.told(EventVerb::Update, &pod.name_any(), repaired)
    }

    async fn replace_pod(&self, ordinal: i32, pod: &Pod) -> Result<(), StepError> {
        if identity::has_identity(&self.desired, pod, ordinal) {
            return Ok(());
        }
        let mut repaired = pod.clone();
        identity::set_identity(&self.desired, &mut repaired, ordinal);
        let replaced = self.pods().replace(&pod.name_any(), &PostParams::default(), &repaired).await;
        replaced.map(drop).map_err(StepError::Pod)
    }

    async fn delete(&self, pod: &Pod) -> Result<(), Failure> {
        let name = pod.name_any();
        let deleted = match self.pods().delete(&name, &DeleteParams::default()).await {
            Err(error) if !retry::is_missing(&error) => Err(StepError::Pod(error)),
            _ => Ok(()),
        };
        self.told(EventVerb::Delete, &name, deleted)
    }

    /// Creates the missing claims of a pod, and sets the owners of all of them.
    async fn set_claims(&self, user: ClaimUser<'_>) -> Result<(), StepError> {
        let key = Key::of(self.desired.set);
        for template in self.desired.claim_templates() {
            let name = self.desired.claim_name(template, user.ordinal);
            // A failure to read: the claim does not fit its type, and is not touched.
            let view = self.context.view::<PersistentVolumeClaim>();
            let present =
                view.ok().and_then(|view| view.get(&Key::new(key.namespace(), &name)).ok().flatten());
            match present {
                // The pods of a scale-down get no new claims.
                None if self.desired.has_ordinal(user.ordinal) => self.create_claim(template, user).await?,
                None => {}
                Some(claim) if claim.metadata.deletion_timestamp.is_some() && user.pod.is_none() => {
                    return Err(StepError::ClaimIsDeleted(name));
                }
                Some(claim) => self.set_owners(&claim, user).await?,
            }
        }
        Ok(())
    }

    async fn create_claim(
        &self,
        template: &PersistentVolumeClaim,
        user: ClaimUser<'_>,
    ) -> Result<(), StepError> {
        let (desired, pod) = (&self.desired, self.desired.pod_name(user.ordinal));
        let mut claim = template.clone();
        let name = desired.claim_name(template, user.ordinal);
        claim.metadata.name = Some(name.clone());
        claim.metadata.namespace = desired.set.metadata.namespace.clone();
        let labels = desired.spec.selector.match_labels.clone().unwrap_or_default();
        claim.metadata.labels.get_or_insert_default().extend(labels);
        // Kubernetes creates the claim first and sets its owners then; at once is one write less.
        if let ClaimOwners::Set(owners) = retention::owners(desired, user, &claim)? {
            claim.metadata.owner_references = Some(owners);
        }
        let (set, events) = (desired.name(), self.context.events());
        match self.claims().create(&PostParams::default(), &claim).await {
            Ok(_) => {
                let note = format!("Create Claim {name} Pod {pod} in StatefulSet {set} success");
                events.normal(desired.set, "SuccessfulCreate", "Create", note);
                Ok(())
            }
            Err(error) => {
                if !retry::is_conflict(&error) {
                    let text = pod::message(&error);
                    let note = format!(
                        "Create Claim {name} for Pod {pod} in StatefulSet {set} failed error: {text}"
                    );
                    events.warning(desired.set, "FailedCreate", "Create", note);
                }
                Err(StepError::CreateClaim(name, error))
            }
        }
    }

    async fn set_owners(&self, claim: &PersistentVolumeClaim, user: ClaimUser<'_>) -> Result<(), StepError> {
        let name = claim.name_any();
        if retention::has_other_controller(&self.desired, user, claim) {
            // Kubernetes: its spelling.
            let note = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, \
                 the retention policy is ignored for this claim"
            );
            self.context.events().warning(self.desired.set, "ConflictingController", "Update", note);
        }
        let ClaimOwners::Set(owners) = retention::owners(&self.desired, user, claim)? else { return Ok(()) };
        let mut changed = claim.clone();
        changed.metadata.owner_references = Some(owners);
        match self.claims().replace(&name, &PostParams::default(), &changed).await {
            Ok(_) => Ok(()),
            Err(error) => Err(StepError::UpdateClaim(name, error)),
        }
    }

    /// Records the event of a step.
    fn told(&self, verb: EventVerb, pod: &str, done: Result<(), StepError>) -> Result<(), Failure> {
        let (set, events) = (self.desired.set, self.context.events());
        let (action, success, failed) = verb.words();
        let subject = format!("{action} Pod {pod} in StatefulSet {}", set.name_any());
        match done {
            Ok(()) => {
                events.normal(set, success, action, format!("{subject} successful"));
                Ok(())
            }
            Err(error) => {
                events.warning(set, failed, action, format!("{subject} failed error: {error}"));
                Err(failure(error))
            }
        }
    }

    fn pods(&self) -> Api<Pod> {
        self.context.namespaced(&Key::of(self.desired.set))
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        self.context.namespaced(&Key::of::<StatefulSet>(self.desired.set))
    }
}

impl EventVerb {
    /// The action, and the reasons of the events of success and failure.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            EventVerb::Create => ("Create", "SuccessfulCreate", "FailedCreate"),
            EventVerb::Update => ("Update", "SuccessfulUpdate", "FailedUpdate"),
            EventVerb::Delete => ("Delete", "SuccessfulDelete", "FailedDelete"),
        }
    }
}

/// Kubernetes: whatever the server refuses is tried again, with growing pauses.
fn failure(error: StepError) -> Failure {
    match &error {
        StepError::Pod(cause) | StepError::UpdateClaim(_, cause) if retry::is_conflict(cause) => error.into(),
        _ => Failure::transient(error),
    }
}
