//! Namespaces: deletes the content of those that are being deleted, and then lets them go.

mod conditions;
mod content;

use crate::{
    Settings,
    discovery::{Discovered, Resource, discover},
    pod, status,
};
use conditions::{Findings, conditions};
use content::{Pass, Terminating, delete_all};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus};
use kube::{
    Api,
    api::PostParams,
    core::{DynamicObject, PartialObjectMeta},
};
use operator::{
    Context, Controller, Failure, Key, Next, all,
    cache::{Caches, Delta, Scope, View},
    queue::{Pace, Queue, Reason},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

/// Kubernetes: other API servers need this time to notice that nothing more may be created in the namespace.
const NOTICE: Duration = Duration::from_secs(5);

/// A single server knows at once: only creates that it has admitted before need time, to be committed.
const COMMIT: Duration = Duration::from_millis(200);

/// Kubernetes: `--concurrent-namespace-syncs`.
const WORKERS: usize = 10;

/// Kubernetes: a failed deletion is tried again at least so often.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Kubernetes: what this loop removes from `spec.finalizers`.
const FINALIZER: &str = "kubernetes";

pub(crate) fn controller(settings: &Settings) -> Controller {
    let watched = Arc::new(WatchedContent {
        has_other_servers: settings.has_other_servers,
        ..WatchedContent::default()
    });
    let connected = Arc::clone(&watched);
    Controller::new("namespace-controller", all::<Namespace>())
        .queue(move |queue| drop(connected.queue.set(queue)))
        .workers(WORKERS)
        .pace(Pace { longest_pause: LONGEST_PAUSE, ..Pace::default() })
        .reconcile(watched, reconcile)
}

async fn reconcile(context: Context<Arc<WatchedContent>>, key: Key) -> Result<Next, Failure> {
    let watched = context.state();
    let Some(namespace) = context.get::<Namespace>(&key)? else {
        watched.forget(context.caches(), &key);
        return Ok(Next::Settled);
    };
    let Some(since) = namespace.metadata.deletion_timestamp.as_ref().map(|time| time.0) else {
        return Ok(Next::Settled);
    };
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
    if finalizers.is_none_or(Vec::is_empty) {
        watched.forget(context.caches(), &key);
        return Ok(Next::Settled);
    }
    let terminating = Terminating { namespace: key.name(), since, now: context.wall() };
    if let Some(pause) = watched.pause(&key, &terminating) {
        return Ok(Next::CheckAfter(pause));
    }
    let pass = match discover(&context.client()).await {
        Ok(discovered) => {
            let mut pass = delete_all(&context.client(), &terminating, &deletable(&discovered)).await;
            pass.findings.discovery_failure = stale_groups(&discovered);
            pass
        }
        Err(error) => {
            let discovery_failure = Some(pod::message(&error));
            Pass { findings: Findings { discovery_failure, ..Findings::default() }, ..Pass::default() }
        }
    };
    write_status(&context, &namespace, &pass.findings).await?;
    watched.replace(context.caches(), &key, &pass.remaining);
    if let Some(failure) = pass.failure() {
        return Err(Failure::transient(failure.to_owned()));
    }
    if !pass.estimate.is_zero() {
        // The views report earlier that everything is gone. Kubernetes: half of the estimate.
        return Ok(Next::CheckAfter(pass.estimate / 2 + Duration::from_secs(1)));
    }
    finalize(&context, &key).await
}

/// The kinds whose objects are in namespaces and can be deleted.
fn deletable(discovered: &Discovered) -> Vec<Resource> {
    let is_deletable = |resource: &&Resource| resource.is_namespaced && resource.has_verbs(&["delete"]);
    discovered.preferred().filter(is_deletable).cloned().collect()
}

/// Kubernetes: the text of the condition if the servers of some groups do not answer.
fn stale_groups(discovered: &Discovered) -> Option<String> {
    let stale = &discovered.stale;
    let groups: Vec<String> =
        stale.iter().map(|group| format!("{group}: stale GroupVersion discovery: {group}")).collect();
    let (count, groups) = (stale.len(), groups.join(", "));
    (!stale.is_empty()).then(|| {
        format!(
            "Discovery failed for some groups, {count} failing: unable to retrieve the complete list of server APIs: {groups}"
        )
    })
}

async fn write_status(
    context: &Context<Arc<WatchedContent>>,
    namespace: &Namespace,
    findings: &Findings,
) -> Result<(), Failure> {
    let before = namespace.status.clone().unwrap_or_default();
    let conditions = conditions(findings, before.conditions.unwrap_or_default(), context.wall());
    let after = NamespaceStatus { phase: Some("Terminating".to_owned()), conditions: Some(conditions) };
    status::replace(&context.cluster::<Namespace>(), namespace, &after).await.map(drop)
}

async fn finalize(context: &Context<Arc<WatchedContent>>, key: &Key) -> Result<Next, Failure> {
    // From the cache again: the status was written just now.
    let Some(namespace) = context.get::<Namespace>(key)? else { return Ok(Next::Settled) };
    let mut namespace = Namespace::clone(&namespace);
    if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    let namespaces: Api<Namespace> = context.cluster();
    match namespaces.replace_subresource("finalize", key.name(), &PostParams::default(), &namespace).await {
        Ok(_) => Ok(Next::Settled),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::Settled),
        Err(error) => Err(error.into()),
    }
}

/// Views of what is left in namespaces that are being deleted: they report when it is gone.
#[derive(Default)]
struct WatchedContent {
    has_other_servers: bool,
    /// When the deletion of each namespace was first seen.
    seen: Mutex<BTreeMap<Key, Timestamp>>,
    queue: OnceLock<Queue>,
    /// By namespace.
    views: Mutex<BTreeMap<Key, Vec<Arc<WatchedKind>>>>,
}

struct WatchedKind {
    resource: Resource,
    view: View<PartialObjectMeta<DynamicObject>>,
}

impl WatchedContent {
    /// For how long the content is to be left alone still.
    fn pause(&self, namespace: &Key, terminating: &Terminating<'_>) -> Option<Duration> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = *seen.entry(namespace.clone()).or_insert(terminating.now);
        // The deletionTimestamp has no fractions of a second.
        let (since, notice) =
            if self.has_other_servers { (terminating.since, NOTICE) } else { (seen, COMMIT) };
        let waited = Duration::try_from(terminating.now.duration_since(since)).unwrap_or_default();
        notice.checked_sub(waited).filter(|left| !left.is_zero())
    }

    /// The namespace is not deleted, or lets go: nothing is watched for it.
    fn forget(&self, caches: &Caches, namespace: &Key) {
        self.replace(caches, namespace, &[]);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
    }

    /// Watches these kinds in the namespace, and no others.
    fn replace(&self, caches: &Caches, namespace: &Key, remaining: &[Resource]) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let before = views.remove(namespace).unwrap_or_default();
        let is_kept = |kind: &Arc<WatchedKind>| remaining.contains(&kind.resource);
        let (mut kept, dropped): (Vec<_>, Vec<_>) = before.into_iter().partition(is_kept);
        dropped.iter().for_each(|kind| caches.close(&kind.view));
        let known: BTreeSet<String> = kept.iter().map(|kind| kind.resource.api.plural.clone()).collect();
        for resource in remaining.iter().filter(|resource| {
            resource.has_verbs(&["list", "watch"]) && !known.contains(&resource.api.plural)
        }) {
            let scope = Scope::default().in_namespace(namespace.name());
            let view = caches.dynamic_metadata(&resource.api, scope);
            kept.push(Arc::new(WatchedKind { resource: resource.clone(), view }));
            self.report_end(namespace, &kept[kept.len() - 1]);
        }
        if !kept.is_empty() {
            views.insert(namespace.clone(), kept);
        }
    }

    /// Reconciles the namespace when the last object of the kind is gone.
    fn report_end(&self, namespace: &Key, kind: &Arc<WatchedKind>) {
        let Some(queue) = self.queue.get().cloned() else { return };
        let (weak, namespace) = (Arc::downgrade(kind), namespace.clone());
        kind.view.subscribe(Arc::new(move |delta: &Delta| {
            let is_last = delta.after.is_none() && weak.upgrade().is_some_and(|kind| kind.view.is_empty());
            if is_last {
                queue.add(&namespace, Reason::Changed);
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_left_alone_until_every_server_knows_of_the_deletion() {
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let key = Key::parse("doomed");
        for (has_other_servers, pauses) in [(true, [4_100, 3_900, 0]), (false, [200, 0, 0])] {
            let watched = WatchedContent { has_other_servers, ..WatchedContent::default() };
            for (after, pause) in [900, 1_100, 5_000].into_iter().zip(pauses) {
                let now = since + Duration::from_millis(after);
                let left = watched.pause(&key, &Terminating { namespace: "doomed", since, now });
                assert_eq!(
                    left.unwrap_or_default(),
                    Duration::from_millis(pause),
                    "{has_other_servers} {after}"
                );
            }
        }
    }
}
