//! Admission: built-in plugins, policies and webhooks, in Kubernetes' order.
//!
//! A plugin is a file. [`mutate`] runs before an object is prepared and validated, [`validate`] after. Each
//! plugin decides for itself whether a request concerns it.

mod always_pull_images;
mod authority;
mod certificate;
mod claim_resize;
mod configured;
mod default_class;
mod default_toleration_seconds;
mod evaluation;
mod external_ips;
mod facts;
mod limit_ranger;
mod matching;
mod namespace_lifecycle;
mod node_restriction;
mod node_taint;
mod object_protection;
mod owner_references;
mod plugin;
mod pod_resize;
mod pod_resources;
mod pod_security;
mod pod_topology_labels;
mod policy;
mod priority;
mod reinvocation;
pub(crate) mod resource_quota;
mod runtime_class;
mod service_account;
mod webhook;

pub(crate) use configured::Configured;
pub use plugin::{AdmissionPlugin, AdmissionPluginError, AdmissionPlugins};
pub(crate) use pod_security::POD_TEMPLATES;

use crate::{call::Call, refusal::Refusal};
use AdmissionPlugin as P;
use api::{kind::GroupResource, object};
use reinvocation::Reinvocation;
use serde_json::Value;

// Kubernetes: the error while webhooks or policies are not all known.
const NOT_READY: &str = "not yet ready to handle request";

/// A request under admission.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    pub(crate) call: &'a Call,
    pub(crate) operation: Operation,
    /// The new object: defaulted, in the version of the request. Null for a delete.
    pub(crate) object: Value,
    /// The current object.
    pub(crate) old: Option<&'a Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A connection to a pod, a service or a node.
    Connect,
}

impl Operation {
    /// As in webhook rules and error messages.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

impl<'a> Review<'a> {
    pub(crate) fn create(call: &'a Call, object: Value) -> Review<'a> {
        Review { call, operation: Operation::Create, object, old: None }
    }

    pub(crate) fn update(call: &'a Call, object: Value, old: &'a Value) -> Review<'a> {
        Review { call, operation: Operation::Update, object, old: Some(old) }
    }

    pub(crate) fn delete(call: &'a Call, old: &'a Value) -> Review<'a> {
        Review { call, operation: Operation::Delete, object: Value::Null, old: Some(old) }
    }

    /// Whether the request is for this resource, without a subresource.
    pub(crate) fn is_on(&self, group: &str, resource: &str) -> bool {
        self.call.served.is(group, resource) && self.call.target.subresource.is_empty()
    }

    /// Whether the request is for this subresource.
    pub(crate) fn is_on_sub(&self, group: &str, resource: &str, subresource: &str) -> bool {
        self.call.served.is(group, resource) && self.call.target.subresource == subresource
    }

    /// Whether a plugin is enabled.
    fn runs(&self, plugin: AdmissionPlugin) -> bool {
        self.call.inner.admission_plugins.has(plugin)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.call.target.namespace
    }

    /// The object's name; empty where it is still to be generated.
    pub(crate) fn name(&self) -> &str {
        match self.call.target.name.as_str() {
            "" => object::name(&self.object),
            name => name,
        }
    }

    pub(crate) fn resource(&self) -> GroupResource {
        self.call.resource()
    }

    /// 403, in Kubernetes' format.
    pub(crate) fn forbidden(&self, reason: impl std::fmt::Display) -> Refusal {
        // Kubernetes: names are generated after the mutating plugins have run.
        let names = [self.name(), object::generate_name(&self.object)];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
        Refusal::forbidden(&self.resource(), name, reason.to_string())
    }
}

/// Mutating admission: changes the object before it is prepared and validated.
pub(crate) async fn mutate(review: &mut Review<'_>) -> Result<(), Refusal> {
    let mut rounds = Reinvocation::default();
    mutate_once(review, &mut rounds).await?;
    if rounds.is_wanted {
        rounds.begin_second();
        mutate_once(review, &mut rounds).await?;
    }
    Ok(())
}

async fn mutate_once(review: &mut Review<'_>, rounds: &mut Reinvocation) -> Result<(), Refusal> {
    if review.runs(P::NamespaceLifecycle) {
        namespace_lifecycle::check(review).await?; // rejects creates in a missing or terminating namespace
    }
    if review.runs(P::LimitRanger) {
        limit_ranger::fill(review).await?; // default requests and limits of containers
    }
    if review.runs(P::ServiceAccount) {
        service_account::fill(review).await?; // the service account of a pod and its token volume
    }
    if review.runs(P::NodeRestriction) {
        node_restriction::check(review).await?; // a kubelet writes only its own node and pods
    }
    if review.runs(P::TaintNodesByCondition) {
        node_taint::fill(review); // a new node is tainted as not ready
    }
    if review.runs(P::AlwaysPullImages) {
        always_pull_images::fill(review); // no pod uses an image that a node has cached
    }
    if review.runs(P::Priority) {
        priority::fill(review).await?; // pod priority from its class
    }
    if review.runs(P::DefaultTolerationSeconds) {
        default_toleration_seconds::fill(review); // tolerations for lost nodes
    }
    default_class::fill(review).await?; // DefaultStorageClass, DefaultIngressClass
    if review.runs(P::StorageObjectInUseProtection) {
        object_protection::fill(review); // finalizers for volumes and claims
    }
    if review.runs(P::RuntimeClass) {
        runtime_class::fill(review).await?; // pod overhead and scheduling from the runtime class
    }
    if review.runs(P::PodTopologyLabels) {
        pod_topology_labels::fill(review).await?; // zone and region of the pod's node
    }
    if review.runs(P::MutatingAdmissionPolicy) {
        policy::mutate(review, rounds).await?;
    }
    if review.runs(P::MutatingAdmissionWebhook) {
        webhook::mutate(review, rounds).await?;
    }
    Ok(())
}

/// Admission of a subresource request that is not stored, such as an Eviction or Binding. `check` validates
/// the mutated object, which is returned.
pub(crate) async fn subresource(
    call: &Call,
    request: Value,
    check: impl Fn(&Value) -> Result<(), Refusal>,
) -> Result<Value, Refusal> {
    let mut review = Review::create(call, request);
    mutate(&mut review).await?;
    check(&review.object)?;
    validate(&review).await?;
    Ok(review.object)
}

/// Admission of a review, which is not stored: only webhooks are called. Returns what they made of it.
pub(crate) async fn admit_review(call: &Call, object: Value) -> Result<Value, Refusal> {
    let mut review = Review::create(call, object);
    if review.runs(P::MutatingAdmissionWebhook) {
        webhook::mutate(&mut review, &mut Reinvocation::default()).await?;
    }
    if review.runs(P::ValidatingAdmissionWebhook) {
        webhook::validate(&review).await?;
    }
    Ok(review.object)
}

/// Admission of a connection with these options: policies and webhooks, as no built-in plugin is concerned. What mutating
/// webhooks make of the options is left out.
pub(crate) async fn connect(call: &Call, options: Value) -> Result<(), Refusal> {
    let mut review = Review { call, operation: Operation::Connect, object: options, old: None };
    if review.runs(P::MutatingAdmissionWebhook) {
        webhook::mutate(&mut review, &mut Reinvocation::default()).await?;
    }
    if review.runs(P::ValidatingAdmissionPolicy) {
        policy::validate(&review).await?;
    }
    if review.runs(P::ValidatingAdmissionWebhook) {
        webhook::validate(&review).await?;
    }
    Ok(())
}

/// Admission of a delete: mutating and validating.
pub(crate) async fn delete(call: &Call, old: &Value) -> Result<(), Refusal> {
    let mut review = Review::delete(call, old);
    mutate(&mut review).await?;
    validate(&review).await
}

/// Validating admission, the last stage before the commit. Quota comes after it, within the commit.
pub(crate) async fn validate(review: &Review<'_>) -> Result<(), Refusal> {
    if review.runs(P::LimitRanger) {
        limit_ranger::check(review).await?;
    }
    if review.runs(P::ServiceAccount) {
        service_account::check(review).await?;
    }
    if review.runs(P::AlwaysPullImages) {
        always_pull_images::check(review)?;
    }
    if review.runs(P::PodSecurity) {
        pod_security::check(review).await?;
    }
    if review.runs(P::Priority) {
        priority::check(review).await?;
    }
    if review.runs(P::OwnerReferencesPermissionEnforcement) {
        owner_references::check(review).await?;
    }
    if review.runs(P::PersistentVolumeClaimResize) {
        claim_resize::check(review).await?;
    }
    if review.runs(P::RuntimeClass) {
        runtime_class::check(review).await?;
    }
    certificate::check(review).await?; // CertificateApproval, …Signing, …SubjectRestriction, ClusterTrustBundleAttest
    if review.runs(P::DenyServiceExternalIps) {
        external_ips::check(review)?;
    }
    if review.runs(P::PodResizeValidator) {
        pod_resize::check(review).await?;
    }
    if review.runs(P::ValidatingAdmissionPolicy) {
        policy::validate(review).await?;
    }
    if review.runs(P::ValidatingAdmissionWebhook) {
        webhook::validate(review).await?;
    }
    // Webhooks take their time: the namespace may be going by now.
    if review.runs(P::NamespaceLifecycle) {
        namespace_lifecycle::check(review).await?;
    }
    Ok(())
}
