//! The table of kinds that have rules of their own. A kind that is missing here is checked for its metadata.

use api::name::NameRule;

use super::super::{
    admission_policy, api_service, autoscaler, certificate_request, config_map, cron_job,
    custom_resource_definition, daemon_set, deployment, device, endpoints, event, flow_control, ingress, job,
    lease, namespace, network_policy, node, persistent_volume, persistent_volume_claim, pod, priority_class,
    quota, rbac, replication_controller, review, secret, service, stateful_set, storage, webhook,
};
use super::Change::{Alone, AsNew, AsNewThen, BodyThen, JustAsNew, MetadataThen, ThenAsNew};
use super::Metadata::{Unchecked, WithAnyFinalizer};
use super::{Kind, anything, kind, nothing};

const ADMISSION: &str = "admissionregistration.k8s.io";
const APPS: &str = "apps";
const AUTHORIZATION: &str = "authorization.k8s.io";
const BATCH: &str = "batch";
const COORDINATION: &str = "coordination.k8s.io";
const DEVICES: &str = "resource.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    kind("", "ConfigMap", config_map::body, ThenAsNew(config_map::change)),
    kind("", "Secret", secret::body, ThenAsNew(secret::change)),
    kind("", "Namespace", namespace::body, AsNew)
        .named(NameRule::DnsLabel)
        .with(&[("status", namespace::status), ("finalize", namespace::finalize)]),
    kind("", "Pod", pod::body, Alone(pod::change)).with(&[
        ("status", pod::status),
        ("ephemeralcontainers", pod::ephemeral_containers),
        ("resize", pod::resize),
    ]),
    kind("", "Binding", pod::binding, AsNew).metadata(Unchecked),
    kind("", "PodTemplate", replication_controller::pod_template, BodyThen(nothing)),
    kind("", "ReplicationController", replication_controller::body, BodyThen(nothing))
        .with(&[("status", deployment::replica_status)]),
    kind("", "Service", service::body, Alone(service::change))
        .checked_first(service::addresses_of)
        .named(NameRule::DnsLabel)
        .with(&[("status", service::status)]),
    kind("", "ServiceAccount", anything, AsNew),
    kind("", "Endpoints", endpoints::body, MetadataThen(endpoints::change)),
    kind(
        "",
        "PersistentVolumeClaim",
        persistent_volume_claim::body,
        AsNewThen(persistent_volume_claim::change),
    )
    .with(&[("status", persistent_volume_claim::status)]),
    kind("", "PersistentVolume", persistent_volume::body, JustAsNew(persistent_volume::change)),
    kind("", "Node", node::body, AsNewThen(node::change)).with(&[("status", node::change)]),
    kind("", "Event", event::legacy, Alone(event::legacy_change)).metadata(Unchecked),
    kind("", "LimitRange", quota::limit_range, JustAsNew(nothing)),
    kind("", "ResourceQuota", quota::body, Alone(quota::change)).with(&[("status", quota::status)]),
    kind("events.k8s.io", "Event", event::body, Alone(event::change)).metadata(Unchecked),
    kind(APPS, "Deployment", deployment::body, BodyThen(deployment::same_selector))
        .with(&[("status", deployment::status)]),
    kind(APPS, "ReplicaSet", deployment::replica_set, BodyThen(deployment::same_selector))
        .with(&[("status", deployment::replica_status)]),
    kind(APPS, "StatefulSet", stateful_set::body, Alone(stateful_set::change))
        .named(NameRule::DnsLabel)
        .with(&[("status", stateful_set::status)]),
    kind(APPS, "DaemonSet", daemon_set::body, BodyThen(deployment::same_selector))
        .with(&[("status", daemon_set::status)]),
    kind(APPS, "ControllerRevision", daemon_set::new_revision, MetadataThen(daemon_set::revision_change)),
    kind("autoscaling", "Scale", autoscaler::scale, AsNew),
    kind("autoscaling", "HorizontalPodAutoscaler", autoscaler::body, Alone(autoscaler::change))
        .with(&[("status", autoscaler::status)]),
    kind(BATCH, "Job", job::body, AsNewThen(job::change)).with(&[("status", job::status)]),
    kind(BATCH, "CronJob", cron_job::body, Alone(cron_job::change)).without_metadata_of_status(),
    kind("discovery.k8s.io", "EndpointSlice", endpoints::slice, JustAsNew(endpoints::slice_change)),
    kind(COORDINATION, "Lease", lease::body, BodyThen(nothing))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind(COORDINATION, "LeaseCandidate", lease::candidate, BodyThen(lease::candidate_change))
        .metadata(WithAnyFinalizer(NameRule::PathSegment)),
    kind("policy", "PodDisruptionBudget", priority_class::disruption_budget, AsNew)
        .metadata(Unchecked)
        .with(&[("status", priority_class::disruption_status)]),
    kind("scheduling.k8s.io", "PriorityClass", priority_class::body, Alone(priority_class::change)),
    kind("node.k8s.io", "RuntimeClass", node::runtime_class, AsNewThen(node::runtime_class_change))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind(NETWORKING, "Ingress", ingress::body, Alone(ingress::change))
        .with(&[("status", service::ingress_status)]),
    kind(NETWORKING, "IngressClass", ingress::class, ThenAsNew(ingress::class_change)),
    kind(NETWORKING, "NetworkPolicy", network_policy::body, BodyThen(nothing)),
    kind(NETWORKING, "IPAddress", network_policy::ip_address, AsNewThen(network_policy::ip_address_change))
        .named(NameRule::PathSegment),
    kind(NETWORKING, "ServiceCIDR", network_policy::service_cidr, Alone(network_policy::service_cidr_change)),
    kind(RBAC, "Role", rbac::role, AsNew).named(NameRule::PathSegment),
    kind(RBAC, "ClusterRole", rbac::cluster_role, AsNew).named(NameRule::PathSegment),
    kind(RBAC, "RoleBinding", rbac::role_binding, AsNewThen(rbac::same_role)).named(NameRule::PathSegment),
    kind(RBAC, "ClusterRoleBinding", rbac::cluster_role_binding, AsNewThen(rbac::same_role))
        .named(NameRule::PathSegment),
    kind(DEVICES, "DeviceClass", device::class, AsNew),
    kind(DEVICES, "ResourceClaim", device::claim, MetadataThen(device::claim_change))
        .with(&[("status", device::claim_status)]),
    kind(DEVICES, "ResourceClaimTemplate", device::template, AsNewThen(device::template_change)),
    kind(DEVICES, "ResourceSlice", device::slice, Alone(device::slice_change)),
    kind(STORAGE, "StorageClass", storage::class, AsNewThen(storage::class_change)),
    kind(STORAGE, "VolumeAttachment", storage::attachment, JustAsNew(storage::attachment_change)),
    kind(STORAGE, "CSINode", storage::node, JustAsNew(storage::node_change)),
    kind(STORAGE, "CSIDriver", storage::driver, BodyThen(storage::driver_change)),
    kind(STORAGE, "CSIStorageCapacity", storage::capacity, AsNewThen(storage::capacity_change)),
    kind(
        STORAGE,
        "VolumeAttributesClass",
        storage::attributes_class,
        ThenAsNew(storage::attributes_class_change),
    ),
    kind(ADMISSION, "ValidatingWebhookConfiguration", webhook::validating, JustAsNew(nothing))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind(ADMISSION, "MutatingWebhookConfiguration", webhook::mutating, JustAsNew(nothing))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind(ADMISSION, "ValidatingAdmissionPolicy", admission_policy::validating, JustAsNew(nothing))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain))
        .without_metadata_of_status(),
    kind(
        ADMISSION,
        "ValidatingAdmissionPolicyBinding",
        admission_policy::validating_binding,
        JustAsNew(nothing),
    )
    .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind(ADMISSION, "MutatingAdmissionPolicy", admission_policy::mutating, JustAsNew(nothing))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind(ADMISSION, "MutatingAdmissionPolicyBinding", admission_policy::mutating_binding, JustAsNew(nothing))
        .metadata(WithAnyFinalizer(NameRule::DnsSubdomain)),
    kind("apiregistration.k8s.io", "APIService", api_service::body, AsNew)
        .metadata(WithAnyFinalizer(NameRule::PathSegment))
        .with(&[("status", api_service::status)]),
    kind("authentication.k8s.io", "TokenRequest", review::token_request, AsNew).metadata(Unchecked),
    kind("authentication.k8s.io", "TokenReview", anything, AsNew).metadata(Unchecked),
    kind("authentication.k8s.io", "SelfSubjectReview", anything, AsNew).metadata(Unchecked),
    kind(AUTHORIZATION, "SubjectAccessReview", review::subject_review, AsNew).metadata(Unchecked),
    kind(AUTHORIZATION, "SelfSubjectAccessReview", review::self_review, AsNew).metadata(Unchecked),
    kind(AUTHORIZATION, "LocalSubjectAccessReview", review::local_review, AsNew).metadata(Unchecked),
    kind(AUTHORIZATION, "SelfSubjectRulesReview", anything, AsNew).metadata(Unchecked),
    kind(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        certificate_request::body,
        AsNewThen(certificate_request::change),
    )
    .named(NameRule::PathSegment)
    .with(&[("status", certificate_request::status), ("approval", certificate_request::approval)]),
    kind(FLOW_CONTROL, "FlowSchema", flow_control::schema, JustAsNew(nothing))
        .with(&[("status", flow_control::status)])
        .without_metadata_of_status(),
    kind(FLOW_CONTROL, "PriorityLevelConfiguration", flow_control::level, JustAsNew(nothing))
        .with(&[("status", flow_control::status)])
        .without_metadata_of_status(),
    kind(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        custom_resource_definition::body,
        Alone(custom_resource_definition::change),
    )
    .metadata(WithAnyFinalizer(NameRule::DnsSubdomain))
    .with(&[("status", custom_resource_definition::status)]),
];
