//! The list of the control loops: their names, their service accounts, and how they are made.

use crate::{
    network::{endpoint_slice, endpoint_slice_mirroring, endpoints},
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
        name: "endpoints-controller",
        account: "endpoint-controller",
        is_on_request: false,
        controllers: || vec![endpoints::controller()],
    },
    ControlLoop {
        name: "endpointslice-controller",
        account: "endpointslice-controller",
        is_on_request: false,
        controllers: || vec![endpoint_slice::controller()],
    },
    ControlLoop {
        name: "endpointslice-mirroring-controller",
        account: "endpointslicemirroring-controller",
        is_on_request: false,
        controllers: || vec![endpoint_slice_mirroring::controller()],
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
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_by_name() {
        assert!(ALL.is_sorted_by(|first, second| first.name < second.name));
    }
}
