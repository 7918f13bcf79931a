//! The list of the control loops: their names, their service accounts, and how they are made.

use crate::{
    Settings,
    account::{default_account, root_ca, token_cleaner, token_secret},
    bootstrap,
    certificate::{approving, cleaner, signing},
    cluster_role_aggregation, disruption,
    lifecycle::{garbage_collection, namespaces, pod_garbage, ttl_after_finished},
    network::{endpoint_slice, endpoint_slice_mirroring, endpoints, service_cidr},
    nodes::{health, ipam, taint_eviction, ttl},
    resource_claim::{self, device_taint},
    storage::{
        attach_detach, attributes_class_protection, binder, claim_protection, ephemeral_volume, expander,
        volume_protection,
    },
    workload::{cron_job, daemon_set, deployment, job, replica_set, replication_controller, stateful_set},
};
use operator::Controller;

/// One control loop of Kubernetes.
#[derive(Clone, Copy, Debug)]
pub struct ControlLoop {
    /// Kubernetes: the name for `--controllers`.
    pub name: &'static str,
    /// Kubernetes: the service account in kube-system whose permissions it has, or [`MANAGER`].
    pub account: &'static str,
    /// Whether it runs only if it is named.
    pub is_on_request: bool,
    /// One for each kind whose keys it reconciles; none if it lacks a setting.
    pub(crate) controllers: fn(&Settings) -> Vec<Controller>,
}

/// Kubernetes: the user of the manager itself, for the loop that makes the tokens of all service accounts.
pub(crate) const MANAGER: &str = "system:kube-controller-manager";

/// All control loops, in the order of their names.
pub const ALL: &[ControlLoop] = &[
    ControlLoop {
        name: "bootstrap-signer-controller",
        account: "bootstrap-signer",
        is_on_request: true,
        controllers: |_| vec![bootstrap::signer::controller()],
    },
    ControlLoop {
        name: "certificatesigningrequest-approving-controller",
        account: "certificate-controller",
        is_on_request: false,
        controllers: |_| vec![approving::controller()],
    },
    ControlLoop {
        name: "certificatesigningrequest-cleaner-controller",
        account: "certificate-controller",
        is_on_request: false,
        controllers: |_| vec![cleaner::controller()],
    },
    ControlLoop {
        name: "certificatesigningrequest-signing-controller",
        account: "certificate-controller",
        is_on_request: false,
        controllers: |settings| signing::controller(settings).into_iter().collect(),
    },
    ControlLoop {
        name: "clusterrole-aggregation-controller",
        account: "clusterrole-aggregation-controller",
        is_on_request: false,
        controllers: |_| vec![cluster_role_aggregation::controller()],
    },
    ControlLoop {
        name: "cronjob-controller",
        account: "cronjob-controller",
        is_on_request: false,
        controllers: |_| vec![cron_job::controller()],
    },
    ControlLoop {
        name: "daemonset-controller",
        account: "daemon-set-controller",
        is_on_request: false,
        controllers: |_| vec![daemon_set::controller()],
    },
    ControlLoop {
        name: "deployment-controller",
        account: "deployment-controller",
        is_on_request: false,
        controllers: |_| vec![deployment::controller()],
    },
    ControlLoop {
        name: "device-taint-eviction-controller",
        account: "device-taint-eviction-controller",
        is_on_request: false,
        controllers: |_| vec![device_taint::controller()],
    },
    ControlLoop {
        name: "disruption-controller",
        account: "disruption-controller",
        is_on_request: false,
        controllers: |_| vec![disruption::budgets(), disruption::pods()],
    },
    ControlLoop {
        name: "endpoints-controller",
        account: "endpoint-controller",
        is_on_request: false,
        controllers: |_| vec![endpoints::controller()],
    },
    ControlLoop {
        name: "endpointslice-controller",
        account: "endpointslice-controller",
        is_on_request: false,
        controllers: |_| vec![endpoint_slice::controller()],
    },
    ControlLoop {
        name: "endpointslice-mirroring-controller",
        account: "endpointslicemirroring-controller",
        is_on_request: false,
        controllers: |_| vec![endpoint_slice_mirroring::controller()],
    },
    ControlLoop {
        name: "ephemeral-volume-controller",
        account: "ephemeral-volume-controller",
        is_on_request: false,
        controllers: |_| vec![ephemeral_volume::controller()],
    },
    ControlLoop {
        name: "garbage-collector-controller",
        account: "generic-garbage-collector",
        is_on_request: false,
        controllers: |_| garbage_collection::controllers(),
    },
    ControlLoop {
        name: "job-controller",
        account: "job-controller",
        is_on_request: false,
        controllers: |_| vec![job::controller(), job::orphan::controller()],
    },
    ControlLoop {
        name: "legacy-serviceaccount-token-cleaner-controller",
        account: "legacy-service-account-token-cleaner",
        is_on_request: false,
        controllers: |_| vec![token_cleaner::controller()],
    },
    ControlLoop {
        name: "namespace-controller",
        account: "namespace-controller",
        is_on_request: false,
        controllers: |settings| vec![namespaces::controller(settings)],
    },
    ControlLoop {
        name: "node-ipam-controller",
        account: "node-controller",
        is_on_request: false,
        controllers: |settings| ipam::controller(settings).into_iter().collect(),
    },
    ControlLoop {
        name: "node-lifecycle-controller",
        account: "node-controller",
        is_on_request: false,
        controllers: |_| vec![health::controller()],
    },
    ControlLoop {
        name: "persistentvolume-attach-detach-controller",
        account: "attachdetach-controller",
        is_on_request: false,
        controllers: |_| vec![attach_detach::controller()],
    },
    ControlLoop {
        name: "persistentvolume-binder-controller",
        account: "persistent-volume-binder",
        is_on_request: false,
        controllers: |_| binder::controllers(),
    },
    ControlLoop {
        name: "persistentvolume-expander-controller",
        account: "expand-controller",
        is_on_request: false,
        controllers: |_| vec![expander::controller()],
    },
    ControlLoop {
        name: "persistentvolume-protection-controller",
        account: "pv-protection-controller",
        is_on_request: false,
        controllers: |_| vec![volume_protection::controller()],
    },
    ControlLoop {
        name: "persistentvolumeclaim-protection-controller",
        account: "pvc-protection-controller",
        is_on_request: false,
        controllers: |_| vec![claim_protection::controller()],
    },
    ControlLoop {
        name: "pod-garbage-collector-controller",
        account: "pod-garbage-collector",
        is_on_request: false,
        controllers: |_| vec![pod_garbage::controller()],
    },
    ControlLoop {
        name: "replicaset-controller",
        account: "replicaset-controller",
        is_on_request: false,
        controllers: |_| vec![replica_set::controller()],
    },
    ControlLoop {
        name: "replicationcontroller-controller",
        account: "replication-controller",
        is_on_request: false,
        controllers: |_| vec![replication_controller::controller()],
    },
    ControlLoop {
        name: "resourceclaim-controller",
        account: "resource-claim-controller",
        is_on_request: false,
        controllers: |_| vec![resource_claim::pods::controller(), resource_claim::release::controller()],
    },
    ControlLoop {
        name: "root-ca-certificate-publisher-controller",
        account: "root-ca-cert-publisher",
        is_on_request: false,
        controllers: |settings| settings.root_ca.iter().cloned().map(root_ca::controller).collect(),
    },
    ControlLoop {
        name: "service-cidr-controller",
        account: "service-cidrs-controller",
        is_on_request: false,
        controllers: |_| vec![service_cidr::controller()],
    },
    ControlLoop {
        name: "serviceaccount-controller",
        account: "service-account-controller",
        is_on_request: false,
        controllers: |_| vec![default_account::controller()],
    },
    ControlLoop {
        name: "serviceaccount-token-controller",
        account: MANAGER,
        is_on_request: false,
        controllers: |settings| token_secret::controller(settings).into_iter().collect(),
    },
    ControlLoop {
        name: "statefulset-controller",
        account: "statefulset-controller",
        is_on_request: false,
        controllers: |_| vec![stateful_set::controller()],
    },
    ControlLoop {
        name: "taint-eviction-controller",
        account: "node-controller",
        is_on_request: false,
        controllers: |_| vec![taint_eviction::controller()],
    },
    ControlLoop {
        name: "token-cleaner-controller",
        account: "token-cleaner",
        is_on_request: true,
        controllers: |_| vec![bootstrap::token_cleaner::controller()],
    },
    ControlLoop {
        name: "ttl-after-finished-controller",
        account: "ttl-after-finished-controller",
        is_on_request: false,
        controllers: |_| vec![ttl_after_finished::controller()],
    },
    ControlLoop {
        name: "ttl-controller",
        account: "ttl-controller",
        is_on_request: false,
        controllers: |_| vec![ttl::controller()],
    },
    ControlLoop {
        name: "volumeattributesclass-protection-controller",
        account: "volumeattributesclass-protection-controller",
        is_on_request: false,
        controllers: |_| vec![attributes_class_protection::controller()],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_by_name() {
        assert!(ALL.is_sorted_by(|first, second| first.name < second.name));
    }
}
