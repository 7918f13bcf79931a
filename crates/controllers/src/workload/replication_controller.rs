//! ReplicationControllers: ReplicaSets from before there were Deployments.

use super::replica_set::{self, ReplicaOwner, Status};
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use kube::core::{Selector, labels::Expression};
use operator::Controller;

pub(crate) fn controller() -> Controller {
    replica_set::controller_of::<ReplicationController>("replication-controller")
}

impl ReplicaOwner for ReplicationController {
    const COUNTS_TERMINATING: bool = false;

    fn replicas(&self) -> usize {
        let replicas = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        usize::try_from(replicas).unwrap_or_default()
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    fn selector(&self) -> Option<Selector> {
        let labels = self.spec.as_ref()?.selector.as_ref()?;
        Some(labels.iter().map(|(name, value)| Expression::Equal(name.clone(), value.clone())).collect())
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn status(&self) -> Status {
        Status::read(&self.status)
    }
}
