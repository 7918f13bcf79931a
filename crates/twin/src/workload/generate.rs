//! Draws a story: some workloads, then edits, deletions and losses of pods and nodes.

use super::{
    APP, Edit, Kind, NODES, Policy, WorkloadStory,
    manifest::{self, Behaviour, Template},
};
use crate::draw::Draw;
use serde_json::{Value, json};

const MAX_WORKLOADS: usize = 3;
const MAX_EDITS: usize = 12;
const MAX_OWNED: usize = 4;
/// A node that is gone for longer than about five minutes loses its pods.
const LONG_LOSS: u64 = 400;

/// What is left out of a story.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Only steps that take seconds, and that touch nothing outside the namespace: several stories share a cluster
    /// in real time.
    pub is_short: bool,
}

/// The story of a seed.
pub fn story(seed: u64, number: u64, limits: Limits) -> WorkloadStory {
    let mut writer = WorkloadWriter {
        draw: Draw::new(seed, number),
        limits,
        steps: Vec::new(),
        workloads: Vec::new(),
        owned: 0,
    };
    let workloads = 1 + writer.draw.below(MAX_WORKLOADS);
    // Which of several workloads gets the last pod of a quota depends on who is faster.
    if limits.is_short && workloads == 1 && writer.draw.one_in(3) {
        writer.add_quota();
    }
    for _ in 0..workloads {
        writer.add_workload();
    }
    for _ in 0..=writer.draw.below(MAX_EDITS) {
        writer.pause();
        writer.edit();
    }
    if limits.is_short && writer.draw.one_in(8) {
        writer.delete_namespace();
    }
    WorkloadStory { steps: writer.steps }
}

struct WorkloadWriter {
    draw: Draw,
    limits: Limits,
    steps: Vec<Edit>,
    workloads: Vec<Workload>,
    /// How many ConfigMaps there are that may own each other.
    owned: usize,
}

/// A workload of the story.
#[derive(Clone)]
struct Workload {
    kind: Kind,
    name: String,
    spec: Value,
    templates: Vec<Template>,
    exists: bool,
}

impl WorkloadWriter {
    fn add_workload(&mut self) {
        use Kind::{CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet};
        let kinds = [
            Deployment,
            Deployment,
            Deployment,
            Deployment,
            StatefulSet,
            StatefulSet,
            DaemonSet,
            DaemonSet,
            Job,
            Job,
            Job,
            ReplicaSet,
            ReplicationController,
            CronJob,
        ];
        let mut kind = self.draw.pick(&kinds);
        if self.limits.is_short && kind == CronJob {
            kind = Deployment;
        }
        let name = format!("{}-{}", short_name(kind), self.workloads.len());
        let template = match kind {
            Job | CronJob => Template::ending(&mut self.draw),
            _ => self.serving_template(),
        };
        let spec = manifest::spec(&mut self.draw, self.limits, kind, &name, template);
        // A pod without an owner, which the workload adopts.
        if !matches!(kind, Job | CronJob | StatefulSet | DaemonSet) && self.draw.one_in(6) {
            let pod = manifest::companion(&mut self.draw, Kind::Pod, &name);
            let mut pod = manifest::object(Kind::Pod, &format!("{name}-lone"), pod);
            pod["metadata"]["labels"] = json!({APP: name});
            self.create(Kind::Pod, format!("{name}-lone"), pod);
        }
        for companion in [Kind::Service, Kind::PodDisruptionBudget] {
            if !matches!(kind, Job | CronJob) && self.draw.one_in(3) {
                let spec = manifest::companion(&mut self.draw, companion, &name);
                self.create(companion, name.clone(), manifest::object(companion, &name, spec));
            }
        }
        self.create(kind, name.clone(), manifest::object(kind, &name, spec.clone()));
        self.workloads.push(Workload { kind, name, spec, templates: vec![template], exists: true });
    }

    fn add_owned(&mut self) {
        self.owned += 1;
        let name = format!("owned-{}", self.owned);
        self.create(Kind::ConfigMap, name.clone(), manifest::config_map(&name));
    }

    /// Objects that own each other, in cycles too, and stay if they have finalizers.
    fn edit_owned(&mut self) {
        let one = format!("owned-{}", 1 + self.draw.below(MAX_OWNED));
        let other = format!("owned-{}", 1 + self.draw.below(MAX_OWNED));
        let kind = Kind::ConfigMap;
        let step = match self.draw.below(6) {
            _ if self.owned < 2 => return self.add_owned(),
            0 if self.owned < MAX_OWNED => return self.add_owned(),
            1 => {
                let policy = self.draw.pick(&[Policy::Background, Policy::Foreground, Policy::Orphan]);
                Edit::Delete { kind, name: one, policy }
            }
            2 => {
                let finalizers = if self.draw.one_in(2) { json!(["example.com/held"]) } else { json!(null) };
                Edit::Patch { kind, name: one, patch: json!({"metadata": {"finalizers": finalizers}}) }
            }
            3 => Edit::Patch { kind, name: one, patch: json!({"metadata": {"ownerReferences": null}}) },
            _ => {
                let blocks = self.draw.one_in(2);
                Edit::SetOwner { kind, name: one, owner: other, blocks }
            }
        };
        self.steps.push(step);
    }

    fn delete_namespace(&mut self) {
        self.steps.push(Edit::Settle);
        if self.draw.one_in(2) {
            self.create(Kind::ConfigMap, "held".to_owned(), manifest::config_map("held"));
            let patch = json!({"metadata": {"finalizers": ["example.com/held"]}});
            self.steps.push(Edit::Patch { kind: Kind::ConfigMap, name: "held".to_owned(), patch });
        }
        self.steps.push(Edit::DeleteNamespace);
    }

    fn add_quota(&mut self) {
        let name = "pods".to_owned();
        let spec = manifest::companion(&mut self.draw, Kind::ResourceQuota, &name);
        self.create(Kind::ResourceQuota, name.clone(), manifest::object(Kind::ResourceQuota, &name, spec));
    }

    /// In real time, no two clusters see containers that crash in the same state.
    fn serving_template(&mut self) -> Template {
        let template = Template::serving(&mut self.draw);
        match (self.limits.is_short, template.behaviour) {
            (true, Behaviour::CrashLoop) => Template { behaviour: Behaviour::NeverReady, ..template },
            _ => template,
        }
    }

    fn create(&mut self, kind: Kind, name: String, object: Value) {
        self.steps.push(Edit::Create { kind, name, object });
    }

    /// Time between two edits: none, a moment, or enough for everything to be done.
    fn pause(&mut self) {
        let step = match self.draw.below(6) {
            // In real time, the end would depend on who is faster.
            _ if self.limits.is_short => Edit::Settle,
            0 => return,
            1 => Edit::Wait(self.draw.below(3) as u64),
            2 => Edit::Wait(self.draw.below(90) as u64),
            _ => Edit::Settle,
        };
        self.steps.push(step);
    }

    fn edit(&mut self) {
        let at = self.draw.below(self.workloads.len());
        let workload = self.workloads[at].clone();
        match self.draw.below(20) {
            0..=2 => self.delete(at),
            3 | 4 if !self.limits.is_short => self.lose_node(),
            3..=6 => self.lose_pod(&workload),
            _ if self.limits.is_short && self.draw.one_in(5) => self.edit_owned(),
            _ if !workload.exists => self.create_again(at),
            7..=10 => self.scale(&workload),
            11 => self.pause_rollout(&workload),
            12 => self.change_strategy(&workload),
            _ => self.change_template(at),
        }
    }

    fn patch(&mut self, workload: &Workload, spec: Value) {
        let (kind, name) = (workload.kind, workload.name.clone());
        self.steps.push(Edit::Patch { kind, name, patch: json!({"spec": spec}) });
    }

    fn delete(&mut self, at: usize) {
        let Workload { kind, name, exists, .. } = self.workloads[at].clone();
        let policy = self.draw.pick(&[Policy::Background, Policy::Foreground, Policy::Orphan]);
        if exists {
            self.steps.push(Edit::Delete { kind, name, policy });
            self.workloads[at].exists = false;
        }
    }

    fn create_again(&mut self, at: usize) {
        let Workload { kind, name, spec, .. } = self.workloads[at].clone();
        // Objects that are being deleted keep their name until then.
        self.steps.push(Edit::Settle);
        self.create(kind, name.clone(), manifest::object(kind, &name, spec));
        self.workloads[at].exists = true;
    }

    fn lose_pod(&mut self, workload: &Workload) {
        let (app, nth) = (workload.name.clone(), self.draw.below(8));
        // Pods of StatefulSets keep their names: a released one would stay in the way of the next. Those of Jobs have
        // other labels.
        let can_release = !matches!(workload.kind, Kind::StatefulSet | Kind::Job | Kind::CronJob);
        self.steps.push(match self.draw.below(4) {
            0 if can_release => Edit::ReleasePod { app, nth },
            1 => Edit::EvictPod { app, nth },
            _ => Edit::DeletePod { app, nth },
        });
    }

    fn lose_node(&mut self) {
        let node = self.draw.below(NODES);
        let seconds = if self.draw.one_in(2) { LONG_LOSS } else { self.draw.below(100) as u64 };
        self.steps.extend([Edit::StopNode(node), Edit::Wait(seconds)]);
        // A node that stays stopped is started at the end of the story.
        if !self.draw.one_in(3) {
            self.steps.push(Edit::StartNode(node));
        }
    }

    fn scale(&mut self, workload: &Workload) {
        let size = self.draw.below(7);
        let patch = match workload.kind {
            Kind::DaemonSet | Kind::CronJob => return self.change_strategy(workload),
            Kind::Job if self.draw.one_in(2) => json!({"suspend": size.is_multiple_of(2)}),
            // An indexed Job may get other completions with the same parallelism.
            Kind::Job if self.limits.is_short && is_elastic(&workload.spec) && self.draw.one_in(2) => {
                json!({"completions": size, "parallelism": size})
            }
            Kind::Job => json!({"parallelism": size}),
            _ => json!({"replicas": size}),
        };
        self.patch(workload, patch);
    }

    fn pause_rollout(&mut self, workload: &Workload) {
        match workload.kind {
            Kind::Deployment => {
                let paused = self.draw.one_in(2);
                self.patch(workload, json!({"paused": paused}));
            }
            Kind::CronJob => {
                let suspend = self.draw.one_in(2);
                self.patch(workload, json!({"suspend": suspend}));
            }
            _ => self.scale(workload),
        }
    }

    fn change_strategy(&mut self, workload: &Workload) {
        let patch = match workload.kind {
            Kind::Deployment => json!({"minReadySeconds": self.draw.below(3)}),
            Kind::DaemonSet | Kind::StatefulSet if self.draw.one_in(2) => {
                json!({"updateStrategy": {"type": "RollingUpdate"}})
            }
            Kind::DaemonSet => json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}),
            Kind::StatefulSet => {
                let partition = self.draw.below(3);
                json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}})
            }
            Kind::CronJob => json!({"concurrencyPolicy": self.draw.pick(&["Allow", "Forbid", "Replace"])}),
            Kind::Job => json!({"activeDeadlineSeconds": 10 + self.draw.below(50)}),
            _ => json!({"minReadySeconds": null}),
        };
        self.patch(workload, patch);
    }

    /// A new template, or one that was there before.
    fn change_template(&mut self, at: usize) {
        let workload = self.workloads[at].clone();
        if matches!(workload.kind, Kind::Job | Kind::CronJob) {
            return self.scale(&workload);
        }
        let template = match self.draw.one_in(3) {
            true => self.draw.pick(&workload.templates),
            false => self.serving_template(),
        };
        self.workloads[at].templates.push(template);
        let mut patch = json!({"template": template.patch()});
        if workload.kind != Kind::DaemonSet && self.draw.one_in(4) {
            patch["replicas"] = json!(self.draw.below(7));
        }
        self.patch(&workload, patch);
    }
}

/// Whether the completions of a Job may be changed to any number.
fn is_elastic(spec: &Value) -> bool {
    spec["completionMode"] == "Indexed"
        && spec["successPolicy"].is_null()
        && spec["maxFailedIndexes"].is_null()
}

fn short_name(kind: Kind) -> &'static str {
    match kind {
        Kind::CronJob => "cron",
        Kind::DaemonSet => "daemon",
        Kind::Deployment => "web",
        Kind::Job => "job",
        Kind::ReplicaSet => "set",
        Kind::ReplicationController => "old",
        Kind::StatefulSet => "db",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_a_function_of_its_seed() {
        let limits = Limits::default();
        assert_eq!(story(1, 2, limits), story(1, 2, limits));
        assert_ne!(story(1, 2, limits), story(1, 3, limits));
    }

    #[test]
    fn only_short_stories_have_quotas_owners_and_a_deleted_namespace() {
        let is_short = |step: &Edit| {
            let is_quota = matches!(step, Edit::Create { kind: Kind::ResourceQuota, .. });
            is_quota || matches!(step, Edit::SetOwner { .. } | Edit::DeleteNamespace)
        };
        let count = |is_short_story: bool| {
            let steps =
                (0..200).flat_map(|number| story(1, number, Limits { is_short: is_short_story }).steps);
            steps.filter(is_short).count()
        };
        assert!(count(true) > 0);
        assert_eq!(count(false), 0);
    }

    #[test]
    fn short_stories_leave_nodes_alone() {
        let is_long = |step: &Edit| match step {
            Edit::StopNode(_) | Edit::StartNode(_) => true,
            Edit::Wait(seconds) => *seconds > 10,
            _ => false,
        };
        for number in 0..200 {
            let story = story(1, number, Limits { is_short: true });
            assert!(!story.steps.iter().any(is_long), "{story}");
        }
    }
}
