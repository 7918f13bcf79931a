//! The list of the control loops: their names, their service accounts, and how they are made.

use crate::{
    cluster_role_aggregation,
    lifecycle::{garbage_collection, namespaces, pod_garbage, ttl_after_finished},
    workload::{replica_set, replication_controller},
};
use operator::Controller;

/// One control loop of Kubernetes.
#[derive(Clone, Copy, Debug)]
pub struct ControlLoop {
    /// Kubernetes: the name for `--controllers`.
    pub name: &'static str,
    /// Kubernetes: the service account in kube-system whose permissions it has.
    pub account: &'static str,
    /// Whether it runs only if it is named.
    pub is_on_request: bool,
    /// One for each kind whose keys it reconciles.
    pub(crate) controllers: fn() -> Vec<Controller>,
}

/// All control loops, in the order of their names.
pub const ALL: &[ControlLoop] = &[
    ControlLoop {
        name: "clusterrole-aggregation-controller",
        account: "clusterrole-aggregation-controller",
        is_on_request: false,
        controllers: || vec![cluster_role_aggregation::controller()],
    },
    ControlLoop {
        name: "garbage-collector-controller",
        account: "generic-garbage-collector",
        is_on_request: false,
        controllers: garbage_collection::controllers,
    },
    ControlLoop {
        name: "namespace-controller",
        account: "namespace-controller",
        is_on_request: false,
        controllers: || vec![namespaces::controller()],
    },
    ControlLoop {
        name: "pod-garbage-collector-controller",
        account: "pod-garbage-collector",
        is_on_request: false,
        controllers: || vec![pod_garbage::controller()],
    },
    ControlLoop {
        name: "replicaset-controller",
        account: "replicaset-controller",
        is_on_request: false,
        controllers: || vec![replica_set::controller()],
    },
    ControlLoop {
        name: "replicationcontroller-controller",
        account: "replication-controller",
        is_on_request: false,
        controllers: || vec![replication_controller::controller()],
    },
    ControlLoop {
        name: "ttl-after-finished-controller",
        account: "ttl-after-finished-controller",
        is_on_request: false,
        controllers: || vec![ttl_after_finished::controller()],
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
