//! What a Job asks for, and what its status says so far.

use k8s_openapi::api::{
    batch::v1::{Job, JobCondition, JobSpec, JobStatus, PodFailurePolicy},
    core::v1::Pod,
};
use kube::core::Selector;

/// Kubernetes: the finalizer of pods that are not in the counters of their Job yet.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Kubernetes: the value of `spec.managedBy` that means this controller.
const MANAGER: &str = "kubernetes.io/job-controller";
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";
pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
pub(super) const SUSPENDED: &str = "Suspended";

/// A Job with a spec, and its status, empty if there is none.
#[derive(Clone, Debug)]
pub(super) struct Desired<'a> {
    pub(super) job: &'a Job,
    pub(super) spec: &'a JobSpec,
    pub(super) status: JobStatus,
}

impl<'a> Desired<'a> {
    /// `None` if the Job has no spec, which the server never stores.
    pub(super) fn read(job: &'a Job) -> Option<Desired<'a>> {
        let status = job.status.clone().unwrap_or_default();
        Some(Desired { job, spec: job.spec.as_ref()?, status })
    }

    pub(super) fn parallelism(&self) -> usize {
        count(self.spec.parallelism.unwrap_or(1))
    }

    /// `None`: it is complete as soon as one pod has succeeded and all have ended.
    pub(super) fn completions(&self) -> Option<usize> {
        self.spec.completions.map(count)
    }

    /// How many indexes an indexed Job has; `None` if it is not indexed.
    pub(super) fn indexes(&self) -> Option<usize> {
        let is_indexed = self.spec.completion_mode.as_deref() == Some("Indexed");
        is_indexed.then(|| self.completions().unwrap_or_default())
    }

    pub(super) fn has_known_mode(&self) -> bool {
        matches!(self.spec.completion_mode.as_deref(), None | Some("Indexed" | "NonIndexed"))
    }

    pub(super) fn back_off_limit(&self) -> usize {
        count(self.spec.backoff_limit.unwrap_or(6))
    }

    pub(super) fn limit_per_index(&self) -> Option<usize> {
        self.spec.backoff_limit_per_index.map(count)
    }

    pub(super) fn failure_policy(&self) -> Option<&PodFailurePolicy> {
        self.spec.pod_failure_policy.as_ref()
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.job.metadata.deletion_timestamp.is_some()
    }

    /// Whether a pod that is being deleted is replaced only after it has ended.
    pub(super) fn replaces_only_failed(&self) -> bool {
        self.spec.pod_replacement_policy.as_deref() == Some("Failed") || self.failure_policy().is_some()
    }

    /// Whether a pod counts as failed. If terminating pods are replaced at once, they do: pods of lost nodes
    /// never reach the phase Failed.
    pub(super) fn is_failed(&self, pod: &Pod) -> bool {
        match crate::pod::phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ => !self.replaces_only_failed() && pod.metadata.deletion_timestamp.is_some(),
        }
    }

    /// The index of a pod, if the Job is indexed and has such an index.
    pub(super) fn index_of(&self, pod: &Pod) -> Option<usize> {
        completion_index(pod).filter(|index| Some(*index) < self.indexes())
    }

    pub(super) fn condition(&self, condition_type: &str) -> Option<&JobCondition> {
        let conditions = self.status.conditions.iter().flatten();
        conditions.into_iter().find(|it| it.type_ == condition_type && it.status == "True")
    }
}

pub(super) fn selector(job: &Job) -> Option<Selector> {
    job.spec.as_ref()?.selector.clone()?.try_into().ok()
}

/// Whether another controller manages it.
pub(super) fn is_managed_elsewhere(job: &Job) -> bool {
    let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|manager| manager != MANAGER)
}

/// The condition with which it has ended, if it has: Complete or Failed.
pub(crate) fn finished(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let is_final = |it: &&JobCondition| matches!(&*it.type_, COMPLETE | FAILED) && it.status == "True";
    conditions.iter().find(is_final).map(|it| &*it.type_)
}

pub(super) fn completion_index(pod: &Pod) -> Option<usize> {
    annotation(pod, COMPLETION_INDEX)?.parse().ok()
}

pub(super) fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}
