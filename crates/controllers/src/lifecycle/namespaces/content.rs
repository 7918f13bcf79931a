//! Deletes the content of a namespace, kind by kind, and finds out what is left of it.

use super::conditions::Findings;
use crate::{discovery::Resource, pod};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams},
    core::DynamicObject,
};
use std::{collections::BTreeMap, time::Duration};

/// Kubernetes: how long finalizers are expected to take.
const FINALIZERS: Duration = Duration::from_secs(15);

/// A namespace and since when it is being deleted.
#[derive(Clone, Debug)]
pub(super) struct Terminating<'a> {
    pub(super) namespace: &'a str,
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
}

/// What a pass over all kinds has done.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub(super) findings: Findings,
    /// How long the deletion of what is left is expected to take; zero if nothing is left.
    pub(super) estimate: Duration,
    /// The kinds that still have objects.
    pub(super) remaining: Vec<Resource>,
}

/// What is left of one kind.
#[derive(Debug, Default)]
struct Remains {
    estimate: Duration,
    count: usize,
    finalizers: BTreeMap<String, usize>,
    failure: Option<String>,
}

const NOT_FOUND: u16 = 404;
const METHOD_NOT_ALLOWED: u16 = 405;

impl Pass {
    /// The first failure, if there was one.
    pub(super) fn failure(&self) -> Option<&str> {
        let Findings { content_failures, discovery_failure, .. } = &self.findings;
        content_failures.first().or(discovery_failure.as_ref()).map(String::as_str)
    }

    fn add(&mut self, resource: &Resource, remains: Remains) {
        self.estimate = self.estimate.max(remains.estimate);
        if let Some(failure) = remains.failure {
            self.findings.content_failures.push(failure);
        }
        if remains.count > 0 {
            self.remaining.push(resource.clone());
            let name = format!("{}.{}", resource.api.plural, resource.api.group);
            self.findings.remaining.insert(name, remains.count);
            for (finalizer, count) in remains.finalizers {
                *self.findings.finalizers.entry(finalizer).or_default() += count;
            }
        }
    }
}

/// Deletes what can be deleted. Pods go first, and as long as one is left nothing else is touched: they may need
/// the other objects (a NetworkPolicy, a Secret) until they have ended.
pub(super) async fn delete_all(client: &Client, namespace: &Terminating<'_>, resources: &[Resource]) -> Pass {
    let mut pass = Pass::default();
    let is_pods = |resource: &Resource| resource.is("", "pods");
    if let Some(pods) = resources.iter().find(|resource| is_pods(resource)) {
        let remains = match estimate_pods(client, namespace).await {
            Ok(estimate) => delete_kind(client, namespace, pods, estimate).await,
            Err(error) => Remains { failure: Some(pod::message(&error)), ..Remains::default() },
        };
        pass.add(pods, remains);
        if !pass.remaining.is_empty() {
            // Kubernetes: while there are pods, the conditions do not tell what is left.
            (pass.findings.remaining, pass.findings.finalizers) = (BTreeMap::new(), BTreeMap::new());
            return pass;
        }
    }
    for resource in resources.iter().filter(|resource| !is_pods(resource)) {
        let remains = delete_kind(client, namespace, resource, Duration::ZERO).await;
        pass.add(resource, remains);
    }
    pass
}

/// The longest grace period of the pods that still run; zero if it should be over.
async fn estimate_pods(client: &Client, namespace: &Terminating<'_>) -> Result<Duration, kube::Error> {
    // Live: the pods that are deleted here may be younger than a cache.
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace.namespace);
    let pods = pods.list(&ListParams::default()).await?;
    let running = pods.items.iter().filter(|pod| !pod::is_finished(pod));
    let seconds = running.filter_map(|pod| pod.spec.as_ref()?.termination_grace_period_seconds).max();
    let estimate = Duration::from_secs(seconds.and_then(|it| u64::try_from(it).ok()).unwrap_or_default());
    let waited = Duration::try_from(namespace.now.duration_since(namespace.since)).unwrap_or_default();
    Ok(if waited >= estimate { Duration::ZERO } else { estimate })
}

async fn delete_kind(
    client: &Client,
    namespace: &Terminating<'_>,
    resource: &Resource,
    estimate: Duration,
) -> Remains {
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace.namespace, &resource.api);
    match try_delete_kind(&objects, resource).await {
        Ok(finalizers) => remains(namespace.namespace, resource, &finalizers, estimate),
        Err(error) => Remains { estimate, failure: Some(pod::message(&error)), ..Remains::default() },
    }
}

/// Deletes the objects of one kind; returns the finalizers of each object that is left.
async fn try_delete_kind(
    objects: &Api<DynamicObject>,
    resource: &Resource,
) -> Result<Vec<Vec<String>>, kube::Error> {
    // Background: everything in the namespace is deleted anyway, and orphaning would only delay that.
    let background = DeleteParams::background();
    let is_done = resource.has_verbs(&["deletecollection"])
        && supported(objects.delete_collection(&background, &ListParams::default()).await)?.is_some();
    if !is_done {
        for name in list(objects, resource).await?.into_iter().map(|(name, _)| name) {
            supported(objects.delete(&name, &background).await)?;
        }
    }
    Ok(list(objects, resource).await?.into_iter().map(|(_, finalizers)| finalizers).collect())
}

/// The names and finalizers of the objects of a kind; none if the server does not list them.
async fn list(
    objects: &Api<DynamicObject>,
    resource: &Resource,
) -> Result<Vec<(String, Vec<String>)>, kube::Error> {
    if !resource.has_verbs(&["list"]) {
        return Ok(Vec::new());
    }
    let found = supported(objects.list_metadata(&ListParams::default()).await)?;
    let found = found.into_iter().flat_map(|list| list.items).map(|object| object.metadata);
    Ok(found.map(|meta| (meta.name.unwrap_or_default(), meta.finalizers.unwrap_or_default())).collect())
}

/// `None` if the server has no such resource or does not support the request.
fn supported<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Err(kube::Error::Api(status)) if matches!(status.code, NOT_FOUND | METHOD_NOT_ALLOWED) => Ok(None),
        other => other.map(Some),
    }
}

fn remains(namespace: &str, resource: &Resource, objects: &[Vec<String>], estimate: Duration) -> Remains {
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for finalizer in objects.iter().flatten() {
        *finalizers.entry(finalizer.clone()).or_default() += 1;
    }
    let count = objects.len();
    if count == 0 {
        return Remains::default();
    }
    let api = &resource.api;
    match (estimate.is_zero(), finalizers.is_empty()) {
        (false, _) => Remains { estimate, count, finalizers, failure: None },
        (true, false) => Remains { estimate: FINALIZERS, count, finalizers, failure: None },
        (true, true) => Remains {
            estimate,
            count,
            finalizers,
            failure: Some(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {}/{}, Resource={}",
                api.group, api.version, api.plural
            )),
        },
    }
}
