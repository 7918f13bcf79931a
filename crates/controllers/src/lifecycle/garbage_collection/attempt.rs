//! One attempt: asks the server about an object and its owners, and carries out what follows.

use super::{
    collector::{Collector, Needed},
    graph::{InvalidOwner, Subject},
    identity::{Deletion, FOREGROUND, Identity, KindName, ORPHAN, OwnerRef, Uid},
    requests::{Deleted, RequestProblem, Requests},
    verdict::{Owners, Policy, Verdict, verdict},
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ObjectMeta;
use operator::{Context, Failure, Key, Next, event::EventType};
use std::{sync::Arc, time::Duration};

/// How many dependents are orphaned at once.
const ORPHANED_AT_ONCE: usize = 20;

/// How often the server is asked again for an owner that exists and that no watch has reported yet. An owner that
/// was created and deleted while a watch was interrupted is never reported.
// Kubernetes: pauses from milliseconds up to this.
const CHECK_UNREPORTED: Duration = Duration::from_secs(1000);
/// If its kind is watched, the report is near.
const CHECK_SOON: Duration = Duration::from_secs(10);

/// The reconcile function: the key is a UID.
pub(super) async fn reconcile(context: Context<Arc<Collector>>, key: Key) -> Result<Next, Failure> {
    let collector = context.state();
    collector.synced(context.world(), Needed::First).await;
    let Some((uid, number)) = collector.asked(key.as_str()) else { return Ok(Next::Settled) };
    for invalid in collector.take_invalid_owners(&uid) {
        report(&context, &invalid);
    }
    let requests = Requests { client: context.client(), discovered: collector.discovered() };
    let attempt = Attempt { context: &context, collector, requests, uid };
    match attempt.run().await {
        Ok(()) => {}
        // It cannot be found out whether the owner exists: the object stays as it is.
        Err(RequestProblem::NoNamespace) => {}
        Err(RequestProblem::UnknownKind) => {
            collector.wait_for_kind(&attempt.uid, &attempt.requests.discovered);
            return Ok(Next::WaitFor("the kind of an owner is not served"));
        }
        Err(RequestProblem::Failed(failure)) => return Err(failure),
    }
    if let Some(virtual_owner) = collector.subject(&attempt.uid).filter(|subject| subject.is_virtual) {
        let is_monitored = collector.is_monitored(&virtual_owner.identity.kind);
        return Ok(Next::CheckAfter(if is_monitored { CHECK_SOON } else { CHECK_UNREPORTED }));
    }
    collector.done(&attempt.uid, number);
    Ok(Next::Settled)
}

fn report(context: &Context<Arc<Collector>>, invalid: &InvalidOwner) {
    let InvalidOwner { dependent, dependent_identity, owner, owner_identity } = invalid;
    let namespace = dependent_identity.namespace().map(str::to_owned);
    let quoted = format!("{:?}", namespace.as_deref().unwrap_or_default());
    let regarding = ObjectReference {
        api_version: Some(dependent_identity.kind.api_version().to_owned()),
        kind: Some(dependent_identity.kind.kind().to_owned()),
        name: Some(dependent_identity.key.name().to_owned()),
        namespace,
        uid: Some(dependent.to_string()),
        ..ObjectReference::default()
    };
    let message = format!("ownerRef {} does not exist in namespace {quoted}", owner_identity.text(owner));
    context.events().record(regarding, EventType::Warning, "OwnerRefInvalidNamespace", "", message);
}

struct Attempt<'a> {
    context: &'a Context<Arc<Collector>>,
    collector: &'a Collector,
    requests: Requests,
    uid: Uid,
}

impl Attempt<'_> {
    async fn run(&self) -> Result<(), RequestProblem> {
        let Some(subject) = self.collector.subject(&self.uid) else { return Ok(()) };
        match subject.deletion {
            // Its dependents get their turn when it is gone.
            Deletion::Deleting => return Ok(()),
            Deletion::OrphansDependents => return self.orphan_dependents(&subject.identity).await,
            Deletion::AwaitsDependents | Deletion::NotDeleted => {}
        }
        // Live: what the graph says may be late, and a deletion cannot be taken back.
        let live = self.requests.get(&subject.identity).await?;
        let Some(live) = live.filter(|live| live.uid.as_deref() == Some(&*self.uid)) else {
            self.collector.confirm_absent(&self.uid, &subject.identity);
            return Ok(());
        };
        if subject.deletion == Deletion::AwaitsDependents {
            return self.delete_dependents(&subject.identity).await;
        }
        let owners = self.classify(&subject, &live).await?;
        if !owners.waiting.is_empty() {
            self.collector.synced(self.context.world(), Needed::All).await;
        }
        let Some(Subject { dependents, .. }) = self.collector.subject(&self.uid) else { return Ok(()) };
        let finalizers = live.finalizers.as_deref().unwrap_or_default();
        match verdict(owners, dependents, finalizers) {
            Verdict::Keep => Ok(()),
            Verdict::Unlink(owners) => self.requests.unlink(&subject.identity, &self.uid, &owners).await,
            Verdict::Delete(policy) => self.delete(&subject.identity, &live, policy).await,
            Verdict::UnblockAndDelete => {
                self.requests.unblock(&subject.identity, &self.uid, &live).await?;
                // The version has changed by that.
                let live = self.requests.get(&subject.identity).await?;
                let Some(live) = live.filter(|live| live.uid.as_deref() == Some(&*self.uid)) else {
                    self.collector.confirm_absent(&self.uid, &subject.identity);
                    return Ok(());
                };
                self.delete(&subject.identity, &live, Policy::Foreground).await
            }
        }
    }

    async fn delete(
        &self,
        identity: &Identity,
        live: &ObjectMeta,
        policy: Policy,
    ) -> Result<(), RequestProblem> {
        if self.requests.delete(identity, live, policy).await? == Deleted::NotFound {
            self.collector.confirm_absent(&self.uid, identity);
        }
        Ok(())
    }

    /// For an object that is deleted after its dependents.
    async fn delete_dependents(&self, identity: &Identity) -> Result<(), RequestProblem> {
        self.collector.synced(self.context.world(), Needed::All).await;
        if self.collector.ask_to_delete_blocking(&self.uid) {
            return Ok(());
        }
        self.requests.remove_finalizer(identity, &self.uid, FOREGROUND).await
    }

    /// For an object whose dependents stay.
    async fn orphan_dependents(&self, identity: &Identity) -> Result<(), RequestProblem> {
        self.collector.synced(self.context.world(), Needed::All).await;
        let owner = [Uid::clone(&self.uid)];
        let unlinked = self.collector.dependents(&self.uid).into_iter().map(|(uid, identity)| {
            let owner = &owner;
            async move { self.requests.unlink(&identity, &uid, owner).await }
        });
        stream::iter(unlinked).buffer_unordered(ORPHANED_AT_ONCE).try_collect::<()>().await?;
        self.requests.remove_finalizer(identity, &self.uid, ORPHAN).await
    }

    /// Asks the server for each owner that is not known to be absent.
    async fn classify(&self, subject: &Subject, live: &ObjectMeta) -> Result<Owners, RequestProblem> {
        let mut owners = Owners::default();
        let namespace = subject.identity.namespace();
        for reference in live.owner_references.iter().flatten() {
            let owner = OwnerRef {
                uid: Uid::from(reference.uid.as_str()),
                kind: KindName::new(&reference.api_version, &reference.kind),
                name: reference.name.as_str().into(),
                blocks: false,
            };
            if self.collector.is_known_absent(&owner, namespace) {
                owners.dangling.push(owner.uid);
                continue;
            }
            let is_namespaced = self.requests.is_namespaced(&owner.identity_in(namespace))?;
            let identity = owner.identity_in(if is_namespaced { namespace } else { None });
            let found = self.requests.get(&identity).await?;
            match found.filter(|found| found.uid.as_deref() == Some(&*owner.uid)) {
                None => {
                    self.collector.add_absent(&owner.uid, &identity);
                    owners.dangling.push(owner.uid);
                }
                Some(found) => {
                    let has_finalizer = found.finalizers.iter().flatten().any(|name| name == FOREGROUND);
                    let waits = found.deletion_timestamp.is_some() && has_finalizer;
                    if waits { owners.waiting.push(owner.uid) } else { owners.solid.push(owner.uid) }
                }
            }
        }
        Ok(owners)
    }
}
