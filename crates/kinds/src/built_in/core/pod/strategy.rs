//! A new pod is pending, in a class of service, and says what its labels and annotations stand for.

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

use super::defaults::name_service_account;
use super::{affinity, resources};
use crate::defaults::member::{self, Members};
use crate::strategy::Circumstances;

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn prepare_create(pod: &mut Members, with: &Circumstances<'_>) {
    let sent =
        pod.get("status").and_then(|status| status.get("qosClass")).filter(|class| *class != "").cloned();
    let spec = member::made(pod, "spec");
    name_service_account(spec);
    // Kubernetes: a class that is there already is taken for the right one.
    let class = sent.unwrap_or_else(|| resources::quality_of_service(spec).into());
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if member::is_set(spec, "schedulingGates") {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": with.now.to_string(),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.insert("status".to_owned(), status);
    affinity::select_by_own_labels(pod);
    confine_containers(pod);
}

pub(super) fn prepare_update(pod: &mut Members, _: &Members, _: &Circumstances<'_>) {
    name_service_account(member::made(pod, "spec"));
}

pub(super) fn prepare_status(pod: &mut Members, old: &Members, _: &Circumstances<'_>) {
    if let Some(metadata) = member::present(pod, "metadata") {
        metadata.remove("deletionTimestamp");
    }
    let nothing = Members::new();
    let before = member::object(old, "status").unwrap_or(&nothing);
    let status = member::made(pod, "status");
    for name in ["qosClass", "observedGeneration"] {
        let given = member::is_set(status, name) && status.get(name) != Some(&json!(0));
        if let Some(kept) = before.get(name).filter(|_| !given) {
            status.insert(name.to_owned(), kept.clone());
        }
    }
    keep_observed_generations(status, before);
}

/// Old kubelets do not say which generation a condition is of. The n-th of a type is that of the n-th before.
fn keep_observed_generations(status: &mut Members, before: &Members) {
    let mut generations: HashMap<&str, VecDeque<i64>> = HashMap::new();
    for condition in member::items(before, "conditions") {
        let of_type = generations.entry(member::text(condition, "type")).or_default();
        of_type.push_back(member::integer(condition, "observedGeneration"));
    }
    for condition in member::items_mut(status, "conditions") {
        let of_type = generations.get_mut(member::text(condition, "type"));
        let generation = of_type.and_then(VecDeque::pop_front).unwrap_or(0);
        if member::integer(condition, "observedGeneration") == 0 && generation != 0 {
            condition.insert("observedGeneration".to_owned(), generation.into());
        }
    }
}

/// What is asked for, or what the pod says; nothing to wait for where nothing runs.
pub(super) fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let is_bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    match asked.or(own).unwrap_or(0) {
        _ if !is_bound || matches!(phase, Some("Failed" | "Succeeded")) => 0,
        negative if negative < 0 => 1,
        period => period,
    }
}

/// Profiles were annotations before they were fields.
fn confine_containers(pod: &mut Members) {
    let metadata = member::object(pod, "metadata").cloned().unwrap_or_default();
    let Some(annotations) = member::object(&metadata, "annotations") else { return };
    let Some(spec) = member::present(pod, "spec") else { return };
    if spec.get("os").is_some_and(|os| os.get("name") == Some(&json!("windows"))) {
        return;
    }
    let whole = spec.get("securityContext").and_then(|context| context.get("appArmorProfile")).cloned();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in member::items_mut(spec, list) {
            let key = format!("{APP_ARMOR}{}", member::text(container, "name"));
            let profile = annotations.get(&key).and_then(Value::as_str).and_then(app_armor_profile);
            let Some(profile) = profile.filter(|profile| Some(profile) != whole.as_ref()) else { continue };
            member::made(container, "securityContext").entry("appArmorProfile").or_insert(profile);
        }
    }
}

fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix("localhost/").filter(|name| !name.trim().is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}
