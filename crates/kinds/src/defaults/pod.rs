//! What a pod says without being told, beyond what its template would: requests from limits, and host ports.

use super::member::{self, Members};
use super::pod_resources;
use super::rules::add_missing;

/// Kubernetes: ephemeral containers have no resources and no ports of their own.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Init containers were annotations before they were fields. Kubernetes drops what is left of that.
const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
];

pub(super) fn pod(pod: &mut Members) {
    forget_old_annotations(pod);
    let spec = member::made(pod, "spec");
    for list in LISTS {
        for container in member::items_mut(spec, list) {
            if let Some(resources) = member::present(container, "resources") {
                add_missing(resources, "requests", "limits");
            }
        }
    }
    pod_resources::complete(spec);
    if member::integer(spec, "terminationGracePeriodSeconds") < 0 {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    if member::flag(spec, "hostNetwork") {
        for list in LISTS {
            for container in member::items_mut(spec, list) {
                member::items_mut(container, "ports").for_each(host_port);
            }
        }
    }
}

pub(super) fn pod_spec(spec: &mut Members) {
    name_service_account(spec);
}

/// A service account has an old name and a new one. The new one wins, and the old one says the same.
pub(crate) fn name_service_account(spec: &mut Members) {
    let name = ["serviceAccountName", "serviceAccount"].map(|field| member::text(spec, field));
    let Some(name) = name.into_iter().find(|name| !name.is_empty()).map(str::to_owned) else { return };
    spec.insert("serviceAccount".to_owned(), name.clone().into());
    spec.insert("serviceAccountName".to_owned(), name.into());
}

pub(super) fn forget_old_annotations(object: &mut Members) {
    let Some(metadata) = member::present(object, "metadata") else { return };
    let Some(annotations) = member::present(metadata, "annotations") else { return };
    let before = annotations.len();
    annotations.retain(|name, _| !OLD_ANNOTATIONS.contains(&&**name));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

fn host_port(port: &mut Members) {
    let number = member::integer(port, "containerPort");
    if member::integer(port, "hostPort") == 0 && number != 0 {
        port.insert("hostPort".to_owned(), number.into());
    }
}
