//! What runs pods: deployments and their like, jobs, and the templates they use.

use api::object;
use serde_json::Value;

use super::Printer;
use super::age::span;
use super::row::{NONE, Row, UNSET, holds, instant, joined, row, text};
use super::selector::{label_selector, label_selector_or_none, labels};

pub(super) fn apps(resource: &str) -> Option<Printer> {
    Some(match resource {
        "deployments" => deployment,
        "replicasets" => replica_set,
        "statefulsets" => stateful_set,
        "daemonsets" => daemon_set,
        "controllerrevisions" => controller_revision,
        _ => return None,
    })
}

fn deployment(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        format!("{}/{}", it.number("/status/readyReplicas"), it.number("/spec/replicas")),
        it.number("/status/updatedReplicas"),
        it.number("/status/availableReplicas"),
        it.age(),
        joined(it.at("/spec/template/spec/containers"), "name"),
        joined(it.at("/spec/template/spec/containers"), "image"),
        label_selector(it.at("/spec/selector")).unwrap_or("<invalid>".to_owned()),
    ]
}

fn replica_set(it: &Row<'_>) -> Vec<Value> {
    replicas(it, label_selector_or_none(it.at("/spec/selector")))
}

pub(super) fn replication_controller(it: &Row<'_>) -> Vec<Value> {
    replicas(it, labels(it.at("/spec/selector")))
}

fn replicas(it: &Row<'_>, selector: String) -> Vec<Value> {
    row![
        it.name(),
        it.number("/spec/replicas"),
        it.number("/status/replicas"),
        it.number("/status/readyReplicas"),
        it.age(),
        joined(it.at("/spec/template/spec/containers"), "name"),
        joined(it.at("/spec/template/spec/containers"), "image"),
        selector,
    ]
}

fn stateful_set(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        format!("{}/{}", it.number("/status/readyReplicas"), it.number("/spec/replicas")),
        it.age(),
        joined(it.at("/spec/template/spec/containers"), "name"),
        joined(it.at("/spec/template/spec/containers"), "image"),
    ]
}

fn daemon_set(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        it.number("/status/desiredNumberScheduled"),
        it.number("/status/currentNumberScheduled"),
        it.number("/status/numberReady"),
        it.number("/status/updatedNumberScheduled"),
        it.number("/status/numberAvailable"),
        labels(it.at("/spec/template/spec/nodeSelector")),
        it.age(),
        joined(it.at("/spec/template/spec/containers"), "name"),
        joined(it.at("/spec/template/spec/containers"), "image"),
        label_selector_or_none(it.at("/spec/selector")),
    ]
}

fn controller_revision(it: &Row<'_>) -> Vec<Value> {
    let controller = object::controller(it.object).map(|owner| {
        let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
        match text(&owner["apiVersion"]).rsplit_once('/') {
            Some((group, _)) => format!("{}/{name}", format!("{kind}.{group}").to_lowercase()),
            None => format!("{}/{name}", kind.to_lowercase()),
        }
    });
    row![it.name(), controller.as_deref().unwrap_or(NONE), it.number("/revision"), it.age()]
}

pub(super) fn pod_template(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        joined(it.at("/template/spec/containers"), "name"),
        joined(it.at("/template/spec/containers"), "image"),
        labels(it.at("/template/metadata/labels")),
    ]
}

pub(super) fn job(it: &Row<'_>) -> Vec<Value> {
    row![
        it.name(),
        job_status(it),
        completions(it),
        job_duration(it),
        it.age(),
        joined(it.at("/spec/template/spec/containers"), "name"),
        joined(it.at("/spec/template/spec/containers"), "image"),
        label_selector_or_none(it.at("/spec/selector")),
    ]
}

fn job_status(it: &Row<'_>) -> &'static str {
    let conditions = it.at("/status/conditions");
    match () {
        () if holds(conditions, "Complete") => "Complete",
        () if holds(conditions, "Failed") => "Failed",
        () if it.is_deleting() => "Terminating",
        () if holds(conditions, "Suspended") => "Suspended",
        () if holds(conditions, "FailureTarget") => "FailureTarget",
        () if holds(conditions, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(it: &Row<'_>) -> String {
    let succeeded = it.number("/status/succeeded");
    match (it.at("/spec/completions").as_i64(), it.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel @ 2..) => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(it: &Row<'_>) -> String {
    let Some(start) = instant(it.at("/status/startTime")) else { return String::new() };
    let end = instant(it.at("/status/completionTime")).unwrap_or(it.now);
    span(end.duration_since(start).as_secs())
}

pub(super) fn cron_job(it: &Row<'_>) -> Vec<Value> {
    let last = it.at("/status/lastScheduleTime");
    let suspend = match it.at("/spec/suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    row![
        it.name(),
        it.text("/spec/schedule"),
        it.at("/spec/timeZone").as_str().unwrap_or(NONE),
        suspend,
        it.count("/status/active"),
        if last.is_null() { NONE.to_owned() } else { it.since(last) },
        it.age(),
        joined(it.at("/spec/jobTemplate/spec/template/spec/containers"), "name"),
        joined(it.at("/spec/jobTemplate/spec/template/spec/containers"), "image"),
        label_selector_or_none(it.at("/spec/jobTemplate/spec/selector")),
    ]
}
