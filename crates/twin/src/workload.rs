//! Stories of workloads: what users and nodes do to a cluster, step by step, drawn from a seed.

pub mod compare;
mod generate;
pub mod level;
mod manifest;
pub mod play;
pub mod run;

pub use generate::{Limits, story};
pub use manifest::{Behaviour, SCRIPT, is_healthy, is_restarting};

use serde_json::Value;
use std::fmt;

/// How many nodes the cluster of a story has.
pub const NODES: usize = 3;
/// The label by which workloads, services and budgets select pods; its value is the name of the workload.
pub const APP: &str = "app";

/// What happens to workloads in one namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadStory {
    pub steps: Vec<Edit>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// The object has no namespace.
    Create {
        kind: Kind,
        name: String,
        object: Value,
    },
    /// A merge patch.
    Patch {
        kind: Kind,
        name: String,
        patch: Value,
    },
    Delete {
        kind: Kind,
        name: String,
        policy: Policy,
    },
    /// Deletes a pod of a workload: the `nth` in some order, modulo their number.
    DeletePod {
        app: String,
        nth: usize,
    },
    /// Evicts a pod, as `kubectl drain` does: a budget may forbid it.
    EvictPod {
        app: String,
        nth: usize,
    },
    /// Makes `owner`, which may not exist, one more owner of an object of the same kind.
    SetOwner {
        kind: Kind,
        name: String,
        owner: String,
        blocks: bool,
    },
    /// The last step of a story.
    DeleteNamespace,
    /// Removes the label of a pod, so that it no longer matches the selector of its workload.
    ReleasePod {
        app: String,
        nth: usize,
    },
    /// The kubelet of a node stops: its lease is not renewed, its pods do not go on.
    StopNode(usize),
    StartNode(usize),
    /// So many seconds pass.
    Wait(u64),
    /// Nothing happens until the control loops have nothing left to do.
    Settle,
}

/// The kinds of objects in stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    ConfigMap,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceQuota,
    Service,
    StatefulSet,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Background,
    Foreground,
    Orphan,
}

impl Kind {
    pub fn api_version(self) -> &'static str {
        match self {
            Kind::CronJob | Kind::Job => "batch/v1",
            Kind::DaemonSet | Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet => "apps/v1",
            Kind::PodDisruptionBudget => "policy/v1",
            Kind::ConfigMap
            | Kind::Pod
            | Kind::ReplicationController
            | Kind::ResourceQuota
            | Kind::Service => "v1",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::ConfigMap => "ConfigMap",
            Kind::CronJob => "CronJob",
            Kind::DaemonSet => "DaemonSet",
            Kind::Deployment => "Deployment",
            Kind::Job => "Job",
            Kind::Pod => "Pod",
            Kind::PodDisruptionBudget => "PodDisruptionBudget",
            Kind::ReplicaSet => "ReplicaSet",
            Kind::ReplicationController => "ReplicationController",
            Kind::ResourceQuota => "ResourceQuota",
            Kind::Service => "Service",
            Kind::StatefulSet => "StatefulSet",
        }
    }

    pub fn plural(self) -> String {
        format!("{}s", self.name().to_lowercase())
    }

    /// The path of the objects in a namespace.
    pub fn collection(self, namespace: &str) -> String {
        let version = self.api_version();
        let root = if version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{version}/namespaces/{namespace}/{}", self.plural())
    }
}

impl Policy {
    /// Kubernetes: the value of `propagationPolicy`.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Background => "Background",
            Policy::Foreground => "Foreground",
            Policy::Orphan => "Orphan",
        }
    }
}

impl WorkloadStory {
    /// Whether every template that the object with this name had makes pods that become ready, or end well.
    pub fn was_always_healthy(&self, kind: Kind, name: &str) -> bool {
        self.steps.iter().all(|step| match step {
            Edit::Create { kind: its, name: called, object }
            | Edit::Patch { kind: its, name: called, patch: object } => {
                (*its, called.as_str()) != (kind, name) || is_healthy(&object["spec"]["template"])
            }
            _ => true,
        })
    }

    /// Whether pods may have been lost for reasons beyond their workload.
    pub fn loses_pods(&self) -> bool {
        let is_loss = |step: &Edit| {
            matches!(
                step,
                Edit::DeletePod { .. } | Edit::EvictPod { .. } | Edit::ReleasePod { .. } | Edit::StopNode(_)
            )
        };
        self.steps.iter().any(is_loss)
    }

    /// The objects that must not exist at the end.
    pub fn deleted(&self) -> Vec<(Kind, String)> {
        let mut deleted = Vec::new();
        for step in &self.steps {
            match step {
                Edit::Delete { kind, name, .. } => deleted.push((*kind, name.clone())),
                Edit::Create { kind, name, .. } => deleted.retain(|it| (it.0, &it.1) != (*kind, name)),
                _ => {}
            }
        }
        deleted
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Create { kind, name, object } => write!(out, "create {} {name} {object}", kind.name()),
            Edit::Patch { kind, name, patch } => write!(out, "patch {} {name} {patch}", kind.name()),
            Edit::Delete { kind, name, policy } => {
                write!(out, "delete {} {name} {}", kind.name(), policy.name())
            }
            Edit::DeletePod { app, nth } => write!(out, "delete pod {nth} of {app}"),
            Edit::EvictPod { app, nth } => write!(out, "evict pod {nth} of {app}"),
            Edit::SetOwner { kind, name, owner, blocks } => {
                let how = if *blocks { "an owner that it blocks" } else { "an owner" };
                write!(out, "make {} {owner} {how} of {name}", kind.name())
            }
            Edit::DeleteNamespace => out.write_str("delete the namespace"),
            Edit::ReleasePod { app, nth } => write!(out, "remove the label of pod {nth} of {app}"),
            Edit::StopNode(node) => write!(out, "stop node-{node}"),
            Edit::StartNode(node) => write!(out, "start node-{node}"),
            Edit::Wait(seconds) => write!(out, "wait {seconds} s"),
            Edit::Settle => out.write_str("settle"),
        }
    }
}

impl fmt::Display for WorkloadStory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(out, "  {step}"))
    }
}
