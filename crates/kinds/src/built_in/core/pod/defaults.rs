//! What a pod says without being told: requests from limits, host ports, and values of its many types.

use serde_json::json;

use super::{container_image, resources};
use crate::defaults::field_and_list;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};

/// Kubernetes: ephemeral containers have no resources and no ports of their own.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Init containers were annotations before they were fields. Kubernetes drops what is left of that.
const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
];

const FILE_MODE: &[(&str, DefaultValue)] = &[("defaultMode", DefaultValue::Number(0o644))];
const TERMINATION_MESSAGE: &[(&str, DefaultValue)] = &[
    ("terminationMessagePath", DefaultValue::Text("/dev/termination-log")),
    ("terminationMessagePolicy", DefaultValue::Text("File")),
];

pub(super) const DEFAULTS: &[TypeDefaults] = &[
    TypeDefaults::of("core.v1.Pod")
        .rule(default_pod)
        .values(&[("spec.enableServiceLinks", DefaultValue::Flag(true))]),
    TypeDefaults::of("core.v1.PodSpec").rule(name_service_account).values(&[
        ("dnsPolicy", DefaultValue::Text("ClusterFirst")),
        ("restartPolicy", DefaultValue::Text("Always")),
        ("securityContext", DefaultValue::EmptyObject),
        ("terminationGracePeriodSeconds", DefaultValue::Number(30)),
        ("schedulerName", DefaultValue::Text("default-scheduler")),
    ]),
    TypeDefaults::of("core.v1.PodStatus").rule(default_pod_ips),
    TypeDefaults::of("core.v1.PodTemplateSpec").rule(forget_old_annotations),
    TypeDefaults::of("core.v1.Container")
        .rule(container_image::default_of_container)
        .values(TERMINATION_MESSAGE),
    TypeDefaults::of("core.v1.EphemeralContainer")
        .rule(container_image::default_of_container)
        .values(TERMINATION_MESSAGE),
    TypeDefaults::of("core.v1.HTTPGetAction")
        .values(&[("path", DefaultValue::Text("/")), ("scheme", DefaultValue::Text("HTTP"))]),
    TypeDefaults::of("core.v1.Probe").values(&[
        ("timeoutSeconds", DefaultValue::Number(1)),
        ("periodSeconds", DefaultValue::Number(10)),
        ("successThreshold", DefaultValue::Number(1)),
        ("failureThreshold", DefaultValue::Number(3)),
    ]),
    TypeDefaults::of("core.v1.ObjectFieldSelector").values(&[("apiVersion", DefaultValue::Text("v1"))]),
    TypeDefaults::of("core.v1.Volume").rule(default_volume),
    TypeDefaults::of("core.v1.ConfigMapVolumeSource").values(FILE_MODE),
    TypeDefaults::of("core.v1.DownwardAPIVolumeSource").values(FILE_MODE),
    TypeDefaults::of("core.v1.ProjectedVolumeSource").values(FILE_MODE),
    TypeDefaults::of("core.v1.SecretVolumeSource").values(FILE_MODE),
    TypeDefaults::of("core.v1.HostPathVolumeSource").values(&[("type", DefaultValue::Text(""))]),
    TypeDefaults::of("core.v1.ImageVolumeSource").rule(container_image::default_of_volume),
    TypeDefaults::of("core.v1.ServiceAccountTokenProjection")
        .values(&[("expirationSeconds", DefaultValue::Number(3600))]),
];

fn default_pod(pod: &mut Members) {
    forget_old_annotations(pod);
    let spec = member::made(pod, "spec");
    for list in LISTS {
        for container in member::items_mut(spec, list) {
            if let Some(resources) = member::present(container, "resources") {
                member::add_missing(resources, "requests", "limits");
            }
        }
    }
    resources::complete(spec);
    if member::integer(spec, "terminationGracePeriodSeconds") < 0 {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    if member::flag(spec, "hostNetwork") {
        for list in LISTS {
            for container in member::items_mut(spec, list) {
                member::items_mut(container, "ports").for_each(default_host_port);
            }
        }
    }
}

/// A service account has an old name and a new one. The new one wins, and the old one says the same.
pub(super) fn name_service_account(spec: &mut Members) {
    let name = ["serviceAccountName", "serviceAccount"].map(|field| member::text(spec, field));
    let Some(name) = name.into_iter().find(|name| !name.is_empty()).map(str::to_owned) else { return };
    spec.insert("serviceAccount".to_owned(), name.clone().into());
    spec.insert("serviceAccountName".to_owned(), name.into());
}

fn forget_old_annotations(object: &mut Members) {
    let Some(metadata) = member::present(object, "metadata") else { return };
    let Some(annotations) = member::present(metadata, "annotations") else { return };
    let before = annotations.len();
    annotations.retain(|name, _| !OLD_ANNOTATIONS.contains(&&**name));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

fn default_host_port(port: &mut Members) {
    let number = member::integer(port, "containerPort");
    if member::integer(port, "hostPort") == 0 && number != 0 {
        port.insert("hostPort".to_owned(), number.into());
    }
}

fn default_pod_ips(status: &mut Members) {
    field_and_list::agree(status, "podIP", "podIPs", |ip| json!({"ip": ip}), |item| item.get("ip")?.as_str());
}

/// A volume of no sort is an empty directory.
fn default_volume(volume: &mut Members) {
    if volume.keys().all(|name| name == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}
