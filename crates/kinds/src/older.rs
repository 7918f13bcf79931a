//! Kinds that Kubernetes still reads though it serves them no more, or only where asked to.

/// A group, one of its older versions, and the kinds in it.
// Kubernetes: who sends one of these to where a newer version is served hears of the version, not of the kind.
const OLDER: [(&str, &str, &[&str]); 32] = [
    (
        "admissionregistration.k8s.io",
        "v1alpha1",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "v1beta1",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", "v1beta1", &["ConversionReview", "CustomResourceDefinition"]),
    ("apiregistration.k8s.io", "v1beta1", &["APIService"]),
    ("apps", "v1beta1", &["ControllerRevision", "Deployment", "DeploymentRollback", "Scale", "StatefulSet"]),
    (
        "apps",
        "v1beta2",
        &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "Scale", "StatefulSet"],
    ),
    ("authentication.k8s.io", "v1alpha1", &["SelfSubjectReview"]),
    ("authentication.k8s.io", "v1beta1", &["SelfSubjectReview", "TokenReview"]),
    (
        "authorization.k8s.io",
        "v1beta1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    ("batch", "v1beta1", &["CronJob"]),
    ("certificates.k8s.io", "v1alpha1", &["ClusterTrustBundle"]),
    (
        "certificates.k8s.io",
        "v1beta1",
        &["CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"],
    ),
    ("coordination.k8s.io", "v1alpha2", &["LeaseCandidate"]),
    ("coordination.k8s.io", "v1beta1", &["Lease", "LeaseCandidate"]),
    ("discovery.k8s.io", "v1beta1", &["EndpointSlice"]),
    ("events.k8s.io", "v1beta1", &["Event"]),
    (
        "extensions",
        "v1beta1",
        &["DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"],
    ),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("networking.k8s.io", "v1beta1", &["IPAddress", "Ingress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", "v1alpha1", &["RuntimeClass"]),
    ("node.k8s.io", "v1beta1", &["RuntimeClass"]),
    ("policy", "v1beta1", &["Eviction", "PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", "v1alpha1", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("rbac.authorization.k8s.io", "v1beta1", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("resource.k8s.io", "v1alpha3", &["DeviceTaintRule", "ResourcePoolStatusRequest"]),
    (
        "resource.k8s.io",
        "v1beta1",
        &["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    ),
    (
        "resource.k8s.io",
        "v1beta2",
        &["DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    ),
    ("scheduling.k8s.io", "v1beta1", &["PriorityClass"]),
    ("storage.k8s.io", "v1alpha1", &["CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"]),
    (
        "storage.k8s.io",
        "v1beta1",
        &[
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
];

/// Whether there is such a kind in an older version.
pub fn is_older(group: &str, version: &str, kind: &str) -> bool {
    OLDER.iter().any(|(of, at, kinds)| (*of, *at) == (group, version) && kinds.contains(&kind))
}
