//! Every resource and its strategy, in the order of discovery. What is not said is as in [`PLAIN`].

use crate::defaults::member::Members;
use api::name::NameRule;

use super::{
    Counts, CreateRule, GcPolicy, Generation, Path, Status, StatusMetadata, Strategy, UpdateRule,
    api_service, certificate_request, custom_resource_definition, daemon_set, device, disabled, job,
    limit_range, namespace, pod, secret, service, service_account, volume,
};

const SPEC: &[Path] = &[&["spec"]];
const TEMPLATE: Path = &["spec", "template", "spec"];
const JOB_TEMPLATE: Path = &["spec", "jobTemplate", "spec", "template", "spec"];
const WEBHOOKS: &[Path] = &[&["webhooks"]];
const ENDPOINTS: &[Path] = &[&["metadata", "labels"], &["addressType"], &["endpoints"], &["ports"]];
const FLOW: &str = "flowcontrol.apiserver.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const NETWORK: &str = "networking.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const DEVICES: &str = "resource.k8s.io";

pub(super) const PLAIN: Strategy = Strategy {
    name: NameRule::DnsSubdomain,
    allow_create_on_update: false,
    allow_unconditional_update: true,
    gc_policy: GcPolicy::Delete,
    generation: Generation { first: 0, counts: Counts::Nothing },
    status: Status::Plain,
    status_metadata: StatusMetadata::Anything,
    own_reset: None,
    status_reset: None,
    create: None,
    update: None,
    on_status: None,
    settle: None,
    graceful: false,
    return_deleted_object: false,
    pod_spec: None,
    disabled: &[],
};

pub(super) static CUSTOM: Strategy = PLAIN.conditional().counting_content();
pub(super) static CUSTOM_WITH_STATUS: Strategy =
    PLAIN.conditional().counting_content().status().status_metadata(StatusMetadata::Nothing);

pub(super) static TABLE: &[(&str, &str, Strategy)] = &[
    ("", "configmaps", PLAIN),
    ("", "endpoints", PLAIN.allow_create_on_update()),
    // Kubernetes: events of the core group may be called anything.
    ("", "events", PLAIN.named(NameRule::PathSegment).allow_create_on_update().gc_policy(GcPolicy::None)),
    ("", "limitranges", PLAIN.allow_create_on_update().on_create(limit_range::create)),
    (
        "",
        "namespaces",
        PLAIN
            .return_deleted_object()
            .named(NameRule::DnsLabel)
            .status()
            .on_create(namespace::create)
            .on_update(namespace::update),
    ),
    ("", "nodes", PLAIN.status().takes_status().lacks(disabled::OF_NODES)),
    (
        "",
        "persistentvolumeclaims",
        PLAIN
            .return_deleted_object()
            .status()
            .on_create(volume::create_claim)
            .on_update(volume::update_claim),
    ),
    (
        "",
        "persistentvolumes",
        PLAIN
            .return_deleted_object()
            .status()
            .on_create(volume::create_volume)
            .on_status(volume::volume_status),
    ),
    (
        "",
        "pods",
        PLAIN
            .return_deleted_object()
            .counting(SPEC)
            .takes_status()
            .status_metadata(StatusMetadata::AllBut(&["ownerReferences"]))
            .status_resets(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
            .on_create(pod::create)
            .on_update(pod::update)
            .on_status(pod::status)
            .graceful()
            .runs(&["spec"])
            .lacks(disabled::OF_PODS),
    ),
    (
        "",
        "podtemplates",
        PLAIN.return_deleted_object().counting(&[&["template"]]).runs(&["template", "spec"]),
    ),
    ("", "replicationcontrollers", PLAIN.counting(SPEC).status().gc_policy(GcPolicy::Orphan).runs(TEMPLATE)),
    ("", "resourcequotas", PLAIN.return_deleted_object().status()),
    ("", "secrets", PLAIN.on_update(secret::update)),
    (
        "",
        "serviceaccounts",
        PLAIN.return_deleted_object().on_create(service_account::create).on_update(service_account::update),
    ),
    (
        "",
        "services",
        PLAIN
            .return_deleted_object()
            .named(NameRule::DnsLabel)
            .allow_create_on_update()
            .status()
            .on_create(service::create)
            .on_update(service::update),
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        PLAIN
            .named(NameRule::PathSegment)
            .conditional()
            .status()
            .status_metadata(StatusMetadata::AllBut(&[
                "labels",
                "annotations",
                "finalizers",
                "ownerReferences",
            ]))
            .status_resets(&[&["spec"], &["metadata"]])
            .on_create(api_service::create),
    ),
    ("apps", "controllerrevisions", PLAIN),
    (
        "apps",
        "daemonsets",
        PLAIN
            .counting(SPEC)
            .status()
            .on_create(daemon_set::create)
            .on_update(daemon_set::update)
            .on_status(daemon_set::status)
            .runs(TEMPLATE),
    ),
    (
        "apps",
        "deployments",
        PLAIN
            .counting(&[&["spec"], &["metadata", "annotations"]])
            .status()
            .status_metadata(StatusMetadata::AllBut(&["labels"]))
            .status_resets(&[&["spec"], &["metadata", "labels"]])
            .runs(TEMPLATE),
    ),
    ("apps", "replicasets", PLAIN.counting(SPEC).status().runs(TEMPLATE)),
    (
        "apps",
        "statefulsets",
        PLAIN
            .named(NameRule::DnsLabel)
            .counting(SPEC)
            .status()
            .runs(TEMPLATE)
            .lacks(disabled::OF_STATEFUL_SETS),
    ),
    ("events.k8s.io", "events", PLAIN.allow_create_on_update().gc_policy(GcPolicy::None)),
    ("autoscaling", "horizontalpodautoscalers", PLAIN.status()),
    ("batch", "cronjobs", PLAIN.counting(SPEC).status().runs(JOB_TEMPLATE)),
    (
        "batch",
        "jobs",
        PLAIN
            .counting(SPEC)
            .status()
            .gc_policy(GcPolicy::Orphan)
            .on_create(job::create)
            .on_status(job::status)
            .settled(job::settle)
            .runs(TEMPLATE),
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        PLAIN
            .named(NameRule::PathSegment)
            .status()
            .resets(&[&["spec"], &["status"]])
            .status_resets(&[&["spec"], &["status", "conditions"]])
            .on_create(certificate_request::create)
            .on_update(certificate_request::update)
            .on_status(certificate_request::status),
    ),
    (NETWORK, "ingressclasses", PLAIN.counting(SPEC)),
    (NETWORK, "ingresses", PLAIN.counting(SPEC).status()),
    (NETWORK, "ipaddresses", PLAIN.named(NameRule::PathSegment)),
    (NETWORK, "networkpolicies", PLAIN.counting(SPEC)),
    (NETWORK, "servicecidrs", PLAIN.status().status_metadata(StatusMetadata::Little)),
    (
        "policy",
        "poddisruptionbudgets",
        PLAIN.named(NameRule::PathSegment).conditional().counting(SPEC).status(),
    ),
    (RBAC, "clusterrolebindings", PLAIN.named(NameRule::PathSegment).allow_create_on_update()),
    (RBAC, "clusterroles", PLAIN.named(NameRule::PathSegment).allow_create_on_update()),
    (RBAC, "rolebindings", PLAIN.named(NameRule::PathSegment).allow_create_on_update()),
    (RBAC, "roles", PLAIN.named(NameRule::PathSegment).allow_create_on_update()),
    // Kubernetes: a new one has no generation, but changes are counted.
    (
        STORAGE,
        "csidrivers",
        PLAIN
            .return_deleted_object()
            .conditional()
            .counting(SPEC)
            .first_generation(0)
            .lacks(disabled::OF_CSI_DRIVERS),
    ),
    (STORAGE, "csinodes", PLAIN.return_deleted_object().conditional()),
    (STORAGE, "csistoragecapacities", PLAIN.conditional()),
    (STORAGE, "storageclasses", PLAIN.return_deleted_object()),
    (
        STORAGE,
        "volumeattachments",
        PLAIN.return_deleted_object().conditional().status().status_metadata(StatusMetadata::Little),
    ),
    (STORAGE, "volumeattributesclasses", PLAIN.return_deleted_object()),
    (ADMISSION, "mutatingadmissionpolicies", PLAIN.conditional().counting(SPEC)),
    (ADMISSION, "mutatingadmissionpolicybindings", PLAIN.conditional().counting(SPEC)),
    (ADMISSION, "mutatingwebhookconfigurations", PLAIN.conditional().counting(WEBHOOKS)),
    (
        ADMISSION,
        "validatingadmissionpolicies",
        PLAIN.conditional().counting(SPEC).status().status_metadata(StatusMetadata::Little),
    ),
    (ADMISSION, "validatingadmissionpolicybindings", PLAIN.conditional().counting(SPEC)),
    (ADMISSION, "validatingwebhookconfigurations", PLAIN.conditional().counting(WEBHOOKS)),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        PLAIN
            .conditional()
            .counting(SPEC)
            .status()
            .on_create(custom_resource_definition::create)
            .on_update(custom_resource_definition::update),
    ),
    // Kubernetes: what may change of a priority class is not counted.
    ("scheduling.k8s.io", "priorityclasses", PLAIN.first_generation(1)),
    (
        "coordination.k8s.io",
        "leases",
        PLAIN.allow_create_on_update().conditional().lacks(disabled::OF_LEASES),
    ),
    ("node.k8s.io", "runtimeclasses", PLAIN.allow_create_on_update().conditional()),
    ("discovery.k8s.io", "endpointslices", PLAIN.counting(ENDPOINTS).lacks(disabled::OF_ENDPOINT_SLICES)),
    (DEVICES, "deviceclasses", PLAIN.return_deleted_object().counting(SPEC)),
    (
        DEVICES,
        "resourceclaims",
        PLAIN
            .return_deleted_object()
            .status()
            .status_metadata(StatusMetadata::Little)
            .on_status(device::claim_status),
    ),
    (DEVICES, "resourceclaimtemplates", PLAIN.return_deleted_object()),
    (
        DEVICES,
        "resourceslices",
        PLAIN
            .return_deleted_object()
            .counting(SPEC)
            .on_create(device::create_slice)
            .on_update(device::update_slice)
            .lacks(disabled::OF_RESOURCE_SLICES),
    ),
    (FLOW, "flowschemas", PLAIN.counting(SPEC).status().status_metadata(StatusMetadata::Nothing)),
    (
        FLOW,
        "prioritylevelconfigurations",
        PLAIN.counting(SPEC).status().status_metadata(StatusMetadata::Nothing),
    ),
];

/// The words of the table.
impl Strategy {
    const fn named(mut self, rule: NameRule) -> Self {
        self.name = rule;
        self
    }

    const fn allow_create_on_update(mut self) -> Self {
        self.allow_create_on_update = true;
        self
    }

    const fn conditional(mut self) -> Self {
        self.allow_unconditional_update = false;
        self
    }

    const fn gc_policy(mut self, gc_policy: GcPolicy) -> Self {
        self.gc_policy = gc_policy;
        self
    }

    const fn counting(mut self, fields: &'static [Path]) -> Self {
        self.generation = Generation { first: 1, counts: Counts::Fields(fields) };
        self
    }

    const fn counting_content(mut self) -> Self {
        self.generation = Generation { first: 1, counts: Counts::Content };
        self
    }

    const fn first_generation(mut self, first: i64) -> Self {
        self.generation.first = first;
        self
    }

    const fn status(mut self) -> Self {
        self.status = Status::Apart;
        self
    }

    const fn takes_status(mut self) -> Self {
        self.status = Status::ApartOnceCreated;
        self
    }

    const fn status_metadata(mut self, allowed: StatusMetadata) -> Self {
        self.status_metadata = allowed;
        self
    }

    const fn resets(mut self, fields: &'static [Path]) -> Self {
        self.own_reset = Some(fields);
        self
    }

    const fn status_resets(mut self, fields: &'static [Path]) -> Self {
        self.status_reset = Some(fields);
        self
    }

    const fn on_create(mut self, rule: CreateRule) -> Self {
        self.create = Some(rule);
        self
    }

    const fn on_update(mut self, rule: UpdateRule) -> Self {
        self.update = Some(rule);
        self
    }

    const fn settled(mut self, rule: fn(&mut Members)) -> Self {
        self.settle = Some(rule);
        self
    }

    const fn on_status(mut self, rule: UpdateRule) -> Self {
        self.on_status = Some(rule);
        self
    }

    const fn runs(mut self, pod_spec: Path) -> Self {
        self.pod_spec = Some(pod_spec);
        self
    }

    const fn lacks(mut self, fields: &'static [Path]) -> Self {
        self.disabled = fields;
        self
    }

    const fn graceful(mut self) -> Self {
        self.graceful = true;
        self
    }

    /// Whoever deletes one is shown it once more.
    const fn return_deleted_object(mut self) -> Self {
        self.return_deleted_object = true;
        self
    }
}
