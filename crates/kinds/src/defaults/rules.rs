//! A type in, the rule for it out: the defaults that depend on other fields.

use serde_json::{Value, json};

use super::member::{self, Members};
use super::{
    container_image, custom_resource_definition, device, pod, scaling, secret, service, twin, workload,
};

/// Completes one object in place. What lies below it has its turn later.
pub(super) type Rule = fn(&mut Members);

/// The rule for a type, by its name without `io.k8s.api.`.
pub(super) fn rule(type_name: &str) -> Option<Rule> {
    Some(match type_name {
        "apps.v1.DaemonSet" => workload::daemon_set,
        "apps.v1.Deployment" => workload::deployment,
        "apps.v1.StatefulSet" => workload::stateful_set,
        "autoscaling.v1.HorizontalPodAutoscaler" => scaling::first_version,
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => scaling::behavior,
        "batch.v1.Job" => workload::job,
        "core.v1.Container" | "core.v1.EphemeralContainer" => container_image::container,
        "core.v1.ImageVolumeSource" => container_image::volume,
        "core.v1.LimitRangeItem" => limit_range_item,
        "core.v1.Namespace" => namespace,
        "core.v1.NodeSpec" => twin::node_spec,
        "core.v1.NodeStatus" => node_status,
        "core.v1.Pod" => pod::pod,
        "core.v1.PodSpec" => pod::pod_spec,
        "core.v1.PodStatus" => twin::pod_status,
        "core.v1.PodTemplateSpec" => pod::forget_old_annotations,
        "core.v1.ReplicationController" => workload::replication_controller,
        "core.v1.Secret" => secret::secret,
        "core.v1.Service" => service::service,
        "core.v1.Volume" => volume,
        "networking.v1.NetworkPolicySpec" => network_policy,
        "rbac.v1.Subject" => subject,
        "resource.v1.DeviceSubRequest" | "resource.v1.ExactDeviceRequest" => device::request,
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition" => {
            custom_resource_definition::definition
        }
        _ => return None,
    })
}

/// A volume of no sort is an empty directory.
fn volume(volume: &mut Members) {
    if volume.keys().all(|name| name == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// One that is yet to be named is labelled once it is.
fn namespace(namespace: &mut Members) {
    let metadata = member::made(namespace, "metadata");
    let name = member::text(metadata, "name").to_owned();
    if !name.is_empty() {
        member::made(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
    } else if metadata.is_empty() {
        namespace.remove("metadata");
    }
}

fn node_status(status: &mut Members) {
    if let Some(capacity) = status.get("capacity").filter(|_| !status.contains_key("allocatable")).cloned() {
        status.insert("allocatable".to_owned(), capacity);
    }
}

/// The limit is the maximum, the request is the limit or else the minimum.
fn limit_range_item(item: &mut Members) {
    if member::text(item, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        add_missing(item, to, from);
    }
}

/// Copies the entries of one map that another does not have.
pub(super) fn add_missing(of: &mut Members, to: &str, from: &str) {
    let Some(entries) = member::object(of, from).filter(|entries| !entries.is_empty()).cloned() else {
        return;
    };
    let to = member::made(of, to);
    for (name, value) in entries {
        to.entry(name).or_insert(value);
    }
}

fn network_policy(spec: &mut Members) {
    if !member::is_set(spec, "policyTypes") {
        let egress = member::is_set(spec, "egress").then_some("Egress");
        let types: Vec<Value> = std::iter::once("Ingress").chain(egress).map(Value::from).collect();
        spec.insert("policyTypes".to_owned(), types.into());
    }
}

fn subject(subject: &mut Members) {
    if matches!(member::text(subject, "kind"), "User" | "Group") {
        member::default_to(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}
