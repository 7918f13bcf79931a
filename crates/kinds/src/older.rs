//! Kinds that Kubernetes still reads though it serves them no more, or only where asked to.

use crate::built_in;

/// A group, one of its older versions, and kinds in it that are served nowhere today, or in another group.
// Kubernetes: who sends one of these to where a newer version is served hears of the version, not of the kind.
const OTHERS: [(&str, &str, &[&str]); 9] = [
    ("apiextensions.k8s.io", "v1beta1", &["ConversionReview"]),
    ("apps", "v1beta1", &["DeploymentRollback", "Scale"]),
    ("apps", "v1beta2", &["Scale"]),
    ("certificates.k8s.io", "v1alpha1", &["ClusterTrustBundle"]),
    ("certificates.k8s.io", "v1beta1", &["ClusterTrustBundle", "PodCertificateRequest"]),
    (
        "extensions",
        "v1beta1",
        &["DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"],
    ),
    ("policy", "v1beta1", &["Eviction"]),
    ("resource.k8s.io", "v1alpha3", &["DeviceTaintRule", "ResourcePoolStatusRequest"]),
    ("resource.k8s.io", "v1beta2", &["DeviceTaintRule"]),
];

/// Whether there is such a kind in an older version.
pub fn is_older(group: &str, version: &str, kind: &str) -> bool {
    built_in::of_kind(group, kind).is_some_and(|it| it.older_versions.contains(&version))
        || OTHERS.iter().any(|(of, at, kinds)| (*of, *at) == (group, version) && kinds.contains(&kind))
}
