//! The two types whose internal form has other fields than the one on the wire: what a pod shares with its host lies
//! in its security context.

use serde_json::{Map, Value};

/// Kubernetes: the two forms list their sources in different orders.
pub(super) const VOLUME: &str = "io.k8s.api.core.v1.Volume";
pub(super) const SPEC: &str = "io.k8s.api.core.v1.PodSpec";
pub(super) const CONTEXT: &str = "io.k8s.api.core.v1.PodSecurityContext";

/// A pod's fields that move, and what Go shows where they are not set.
pub(super) const HOST: [(&str, &str); 5] = [
    ("hostNetwork", "false"),
    ("hostPID", "false"),
    ("hostIPC", "false"),
    ("shareProcessNamespace", "null"),
    ("hostUsers", "null"),
];

/// The fields of the internal type, in its order.
pub(super) const SPEC_FIELDS: [&str; 36] = [
    "volumes",
    "initContainers",
    "containers",
    "ephemeralContainers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "nodeSelector",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeName",
    "securityContext",
    "imagePullSecrets",
    "hostname",
    "subdomain",
    "setHostnameAsFQDN",
    "affinity",
    "schedulerName",
    "tolerations",
    "hostAliases",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "dnsConfig",
    "readinessGates",
    "runtimeClassName",
    "overhead",
    "enableServiceLinks",
    "topologySpreadConstraints",
    "os",
    "schedulingGates",
    "resourceClaims",
    "resources",
    "hostnameOverride",
    "schedulingGroup",
];
pub(super) const CONTEXT_FIELDS: [&str; 13] = [
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "seccompProfile",
    "appArmorProfile",
    "seLinuxChangePolicy",
];

/// The spec with what it shares moved to where Go holds it.
pub(super) fn rearranged(spec: &Value) -> Value {
    let mut spec = spec.as_object().cloned().unwrap_or_default();
    let mut context: Map<_, _> =
        spec.get("securityContext").and_then(Value::as_object).cloned().unwrap_or_default();
    for (field, _) in HOST {
        if let Some(value) = spec.remove(field) {
            context.insert(field.to_owned(), value);
        }
    }
    spec.insert("securityContext".to_owned(), context.into());
    spec.into()
}
