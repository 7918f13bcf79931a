//! Claims of devices: made for pods from templates, reserved, released, and pods that lose their device.

pub(crate) mod device_taint;
pub(crate) mod pods;
pub(crate) mod release;

use k8s_openapi::api::{
    core::v1::{Pod, PodResourceClaim},
    resource::v1::{ResourceClaim, ResourceClaimConsumerReference},
};
use operator::Key;

/// Kubernetes: the annotation of a generated claim with the name that the pod gives it.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// Kubernetes: the finalizer of an allocated claim.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// Kubernetes: a claim is reserved for so many at most.
const MAX_RESERVED: usize = 256;

/// Which claim an entry of a pod's `resourceClaims` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryClaim<'a> {
    /// A claim that someone else has made.
    Given(&'a str),
    /// A claim that was made for this pod: it has to own it.
    Generated(&'a str),
    /// The template makes no claim for this pod.
    NotNeeded,
    /// It is not made yet.
    Missing,
}

fn entries(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

fn claim_name<'a>(pod: &'a Pod, entry: &'a PodResourceClaim) -> EntryClaim<'a> {
    if let Some(name) = &entry.resource_claim_name {
        return EntryClaim::Given(name);
    }
    let statuses = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_deref());
    match statuses.unwrap_or_default().iter().find(|status| status.name == entry.name) {
        None => EntryClaim::Missing,
        Some(status) => {
            status.resource_claim_name.as_deref().map_or(EntryClaim::NotNeeded, EntryClaim::Generated)
        }
    }
}

/// The keys of the claims that a pod uses.
fn claims_of(pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref();
    let named = entries(pod).iter().filter_map(|entry| match claim_name(pod, entry) {
        EntryClaim::Given(name) | EntryClaim::Generated(name) => Some(name),
        EntryClaim::NotNeeded | EntryClaim::Missing => None,
    });
    // Made by the scheduler for extended resources.
    let extended = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    let extended = extended.map(|status| status.resource_claim_name.as_str());
    named.chain(extended).map(|name| Key::new(namespace, name)).collect()
}

fn is_owned_by(claim: &ResourceClaim, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().any(|it| it.controller == Some(true) && Some(&it.uid) == pod.metadata.uid.as_ref())
}

fn reserved_for(claim: &ResourceClaim) -> &[ResourceClaimConsumerReference] {
    claim.status.as_ref().and_then(|status| status.reserved_for.as_deref()).unwrap_or_default()
}

fn is_reserved_for(claim: &ResourceClaim, pod: &Pod) -> bool {
    reserved_for(claim).iter().any(|it| Some(&it.uid) == pod.metadata.uid.as_ref())
}

fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

fn is_pod(consumer: &ResourceClaimConsumerReference) -> bool {
    consumer.api_group.as_deref().unwrap_or_default().is_empty() && consumer.resource == "pods"
}
