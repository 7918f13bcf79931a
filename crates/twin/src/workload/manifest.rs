//! The objects of stories: drawn specs, and templates whose script says what their pods do.

mod job;

use super::{APP, Kind, Limits};
use crate::draw::Draw;
use serde_json::{Value, json};

/// The annotation that tells simulated nodes what the containers of a pod do.
pub const SCRIPT: &str = "setpoint.dev/script";

/// What the pods of a template do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Ready,
    ReadyLater,
    NeverReady,
    CrashLoop,
    NoImage,
    /// For Jobs: the container ends with 0.
    Succeeds,
    SucceedsLater,
    /// The first run fails, the next one succeeds: the kubelet restarts the container.
    FailsOnce,
    Fails,
    /// Fails with a code that the pod failure policy of the Job names.
    FailsForGood,
    /// For indexed Jobs: index 0 succeeds, all others fail.
    FailsByIndex,
    /// For indexed Jobs: index 0 succeeds, all others run on.
    LingersByIndex,
}

impl Behaviour {
    fn script(self) -> &'static str {
        match self {
            Behaviour::Ready | Behaviour::NoImage | Behaviour::FailsByIndex | Behaviour::LingersByIndex => {
                "{}"
            }
            Behaviour::ReadyLater => "{main: {readyAfter: 2s}}",
            Behaviour::NeverReady => "{main: {neverReady: true}}",
            Behaviour::CrashLoop => "{main: {crashLoop: true}}",
            Behaviour::Succeeds => "{main: {exitCode: 0}}",
            Behaviour::SucceedsLater => "{main: {exitCode: 0, after: 3s}}",
            Behaviour::FailsOnce => "{main: {exitCode: 1, times: 1, after: 1s}}",
            Behaviour::Fails => "{main: {exitCode: 1}}",
            Behaviour::FailsForGood => "{main: {exitCode: 42}}",
        }
    }

    /// What its container runs, if its script does not say that.
    fn command(self) -> Option<&'static str> {
        match self {
            Behaviour::FailsByIndex => Some("sleep 1; [ $JOB_COMPLETION_INDEX -lt 1 ]"),
            Behaviour::LingersByIndex => Some("[ $JOB_COMPLETION_INDEX -lt 1 ] || sleep 600"),
            _ => None,
        }
    }
}

/// Whether the pods of a template become ready, or end well. A patch without a template is healthy.
pub fn is_healthy(template: &Value) -> bool {
    let script = template["metadata"]["annotations"][SCRIPT].as_str().unwrap_or_default();
    let image = template["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let command = template["spec"]["containers"][0]["command"][2].as_str();
    let ill = [Behaviour::NeverReady, Behaviour::CrashLoop, Behaviour::Fails, Behaviour::FailsForGood];
    !image.ends_with(":404")
        && !ill.iter().any(|behaviour| behaviour.script() == script)
        && (command.is_none() || command != Behaviour::FailsByIndex.command())
}

/// Whether the containers of a template, or of a pod, start again and again.
pub fn is_restarting(template: &Value) -> bool {
    let script = template["metadata"]["annotations"][SCRIPT].as_str().unwrap_or_default();
    script == Behaviour::CrashLoop.script()
}

/// What of a template stories change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) image: usize,
    pub(super) behaviour: Behaviour,
}

impl Template {
    /// A template for workloads that run on.
    pub(super) fn serving(draw: &mut Draw) -> Template {
        use Behaviour::{CrashLoop, NeverReady, NoImage, Ready, ReadyLater};
        let choices =
            [Ready, Ready, Ready, Ready, Ready, ReadyLater, ReadyLater, NeverReady, CrashLoop, NoImage];
        Template { image: draw.below(4), behaviour: draw.pick(&choices) }
    }

    pub(super) fn ending(draw: &mut Draw) -> Template {
        use Behaviour::{Fails, FailsForGood, FailsOnce, Succeeds, SucceedsLater};
        let choices = [Succeeds, SucceedsLater, SucceedsLater, SucceedsLater, FailsOnce, Fails, FailsForGood];
        Template { image: draw.below(4), behaviour: draw.pick(&choices) }
    }

    fn image(self) -> String {
        match self.behaviour {
            Behaviour::NoImage => "nginx:404".to_owned(),
            _ => format!("nginx:{}", self.image),
        }
    }

    /// The fields of a pod template that differ between templates, as a merge patch.
    pub(super) fn patch(self) -> Value {
        let mut container = json!({"name": "main", "image": self.image()});
        if let Some(command) = self.behaviour.command() {
            container["command"] = json!(["sh", "-c", command]);
        }
        json!({"metadata": {"annotations": {SCRIPT: self.behaviour.script()}},
            "spec": {"containers": [container]}})
    }

    pub(super) fn object(self, app: &str) -> Value {
        let mut template = self.patch();
        template["metadata"]["labels"] = json!({APP: app});
        template["spec"]["terminationGracePeriodSeconds"] = json!(1);
        template
    }

    /// The template of a Job.
    fn job_object(self, app: &str) -> Value {
        let mut template = self.object(app);
        let policy = if self.behaviour == Behaviour::FailsOnce { "OnFailure" } else { "Never" };
        template["spec"]["restartPolicy"] = json!(policy);
        template
    }
}

/// An object of a kind with this spec.
pub(super) fn object(kind: Kind, name: &str, spec: Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.name(),
        "metadata": {"name": name, "labels": {APP: name}}, "spec": spec})
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// The spec of a workload.
pub(super) fn spec(draw: &mut Draw, limits: Limits, kind: Kind, name: &str, template: Template) -> Value {
    let selector = json!({"matchLabels": {APP: name}});
    let replicas = draw.below(5);
    let mut spec = match kind {
        Kind::Job => return job::spec(draw, name, template),
        Kind::CronJob => return job::cron_spec(draw, name, template),
        Kind::ReplicationController => json!({"replicas": replicas, "selector": {APP: name}}),
        Kind::DaemonSet => json!({"selector": selector, "updateStrategy": daemon_set_strategy(draw)}),
        Kind::StatefulSet => stateful_set_spec(draw, &selector, replicas),
        Kind::Deployment => deployment_spec(draw, &selector, replicas),
        _ => json!({"replicas": replicas, "selector": selector}),
    };
    if kind != Kind::ReplicationController && draw.one_in(4) {
        spec["minReadySeconds"] = json!(1 + draw.below(3));
    }
    spec["template"] = template.object(name);
    if kind == Kind::DaemonSet && limits.is_short && draw.one_in(4) {
        spec["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node-1"});
    }
    spec
}

fn deployment_spec(draw: &mut Draw, selector: &Value, replicas: usize) -> Value {
    let amounts = [json!(0), json!(1), json!(2), json!("25%"), json!("50%"), json!("100%")];
    let surge = draw.below(amounts.len());
    // Both may not be 0.
    let unavailable = draw.below(amounts.len()).max(usize::from(surge == 0));
    let strategy = match draw.below(5) {
        0 => json!({"type": "Recreate"}),
        1 => json!({}),
        _ => json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": amounts[surge], "maxUnavailable": amounts[unavailable]}}),
    };
    let mut spec = json!({"replicas": replicas, "selector": selector, "strategy": strategy,
        "progressDeadlineSeconds": 10 + draw.below(20)});
    if draw.one_in(3) {
        spec["revisionHistoryLimit"] = json!(draw.below(3));
    }
    spec
}

fn stateful_set_spec(draw: &mut Draw, selector: &Value, replicas: usize) -> Value {
    let strategy = match draw.below(5) {
        0 => json!({"type": "OnDelete"}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": draw.below(4)}}),
        _ => json!({"type": "RollingUpdate"}),
    };
    let policy = draw.pick(&["OrderedReady", "Parallel"]);
    let mut spec = json!({"replicas": replicas, "selector": selector, "serviceName": "none",
        "podManagementPolicy": policy, "updateStrategy": strategy});
    if draw.one_in(4) {
        spec["ordinals"] = json!({"start": 1 + draw.below(3)});
    }
    if draw.one_in(3) {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}]);
        let retention = ["Retain", "Delete"];
        let [deleted, scaled] = [draw.pick(&retention), draw.pick(&retention)];
        spec["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": deleted, "whenScaled": scaled});
    }
    if draw.one_in(4) {
        spec["revisionHistoryLimit"] = json!(draw.below(3));
    }
    spec
}

fn daemon_set_strategy(draw: &mut Draw) -> Value {
    match draw.below(4) {
        0 => json!({"type": "OnDelete"}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        2 => json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1 + draw.below(3)}}),
        _ => json!({"type": "RollingUpdate"}),
    }
}

/// A budget, a service, a quota or a lone pod for the pods of a workload.
pub(super) fn companion(draw: &mut Draw, kind: Kind, app: &str) -> Value {
    let selector = json!({"matchLabels": {APP: app}});
    match kind {
        Kind::PodDisruptionBudget => {
            let amount = [json!(0), json!(1), json!(2), json!("50%")][draw.below(4)].clone();
            let field = draw.pick(&["minAvailable", "maxUnavailable"]);
            let mut budget = json!({"selector": selector, field: amount});
            if draw.one_in(3) {
                budget["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
            }
            budget
        }
        Kind::ResourceQuota => json!({"hard": {"pods": (1 + draw.below(4)).to_string()}}),
        Kind::Service => service_spec(draw, app),
        _ => Template { image: 0, behaviour: Behaviour::Ready }.object(app)["spec"].clone(),
    }
}

fn service_spec(draw: &mut Draw, app: &str) -> Value {
    let mut spec = json!({"selector": {APP: app}, "ports": [{"port": 80, "targetPort": 8080}]});
    match draw.below(6) {
        0 => spec["clusterIP"] = json!("None"),
        1 => spec["publishNotReadyAddresses"] = json!(true),
        2 => spec["trafficDistribution"] = json!(draw.pick(&["PreferSameZone", "PreferSameNode"])),
        _ => {}
    }
    spec
}
