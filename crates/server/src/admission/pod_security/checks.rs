//! The rules of the Pod Security Standards, each with the minor versions in which it was added and changed.

mod container;
mod identity;
mod profile;
mod volume;

use super::policy::{SecurityLevel, Standard, StandardVersion};
use serde_json::Value;
use std::collections::BTreeSet;

/// A pod or a pod template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

/// A violated rule: its name and details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    reason: String,
    detail: String,
}

type Check = fn(Pod<'_>) -> Option<Violation>;
type Versions = &'static [(u32, Check)];

struct SecurityRule {
    name: &'static str,
    level: SecurityLevel,
    /// The check from each minor version on.
    versions: Versions,
    /// The baseline rule that this stricter one replaces.
    instead_of: &'static str,
}

/// The last minor version in which a rule changed.
const NEWEST: u32 = 35;

/// Kubernetes: reported in this order.
const RULES: [SecurityRule; 19] = [
    baseline("appArmorProfile", &[(0, profile::app_armor)]),
    baseline("capabilities_baseline", &[(0, container::added_capabilities)]),
    baseline("hostNamespaces", &[(0, identity::host_namespaces)]),
    baseline("hostPathVolumes", &[(0, volume::host_paths)]),
    baseline("hostPorts", &[(0, container::host_ports)]),
    baseline("hostProbesAndHostLifecycle", &[(34, container::probed_hosts)]),
    baseline("privileged", &[(0, container::privileged)]),
    baseline("procMount", &[(0, container::proc_mount), (35, container::proc_mount_of_host_users)]),
    baseline("seLinuxOptions", &[(0, profile::se_linux), (31, profile::se_linux_with_engine)]),
    baseline("seccompProfile_baseline", &[(0, profile::seccomp_annotations), (19, profile::seccomp_allowed)]),
    baseline(
        "sysctls",
        &[
            (0, identity::sysctls),
            (27, identity::sysctls_27),
            (29, identity::sysctls_29),
            (32, identity::sysctls_32),
        ],
    ),
    baseline("windowsHostProcess", &[(0, identity::host_process)]),
    restricted(
        "allowPrivilegeEscalation",
        &[(8, container::escalation), (25, |pod| unless_windows(pod, container::escalation))],
        "",
    ),
    restricted(
        "capabilities_restricted",
        &[(22, container::kept_capabilities), (25, |pod| unless_windows(pod, container::kept_capabilities))],
        "capabilities_baseline",
    ),
    restricted("procMount_restricted", &[(35, container::proc_mount)], "procMount"),
    restricted("restrictedVolumes", &[(0, volume::restricted)], "hostPathVolumes"),
    restricted(
        "runAsNonRoot",
        &[(0, identity::run_as_non_root), (35, |pod| unless_own_users(pod, identity::run_as_non_root))],
        "",
    ),
    restricted(
        "runAsUser",
        &[(23, identity::run_as_user), (35, |pod| unless_own_users(pod, identity::run_as_user))],
        "",
    ),
    restricted(
        "seccompProfile_restricted",
        &[(19, profile::seccomp_required), (25, |pod| unless_windows(pod, profile::seccomp_required))],
        "seccompProfile_baseline",
    ),
];

const fn baseline(name: &'static str, versions: Versions) -> SecurityRule {
    SecurityRule { name, level: SecurityLevel::Baseline, versions, instead_of: "" }
}

const fn restricted(name: &'static str, versions: Versions, instead_of: &'static str) -> SecurityRule {
    SecurityRule { name, level: SecurityLevel::Restricted, versions, instead_of }
}

/// The violations of a standard.
pub(super) fn violations(standard: Standard, pod: Pod<'_>) -> Vec<Violation> {
    let minor = match standard.version {
        StandardVersion::Minor(minor) => minor.min(NEWEST),
        StandardVersion::Latest => NEWEST,
    };
    let current = |rule: &SecurityRule| {
        rule.versions.iter().rfind(|(since, _)| *since <= minor).map(|(_, check)| *check)
    };
    let in_force: Vec<_> =
        RULES.iter().filter(|rule| rule.level <= standard.level && current(rule).is_some()).collect();
    let is_replaced = |rule: &SecurityRule| in_force.iter().any(|other| other.instead_of == rule.name);
    let checks = in_force.iter().filter(|rule| !is_replaced(rule)).filter_map(|rule| current(rule));
    checks.filter_map(|check| check(pod)).collect()
}

/// All reasons, for a list of pods.
pub(super) fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason.as_str()).collect::<Vec<_>>().join(", ")
}

/// All reasons with their details, for one pod.
pub(super) fn details(violations: &[Violation]) -> String {
    let shown = violations.iter().map(|Violation { reason, detail }| match detail.as_str() {
        "" => reason.clone(),
        detail => format!("{reason} ({detail})"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

impl Violation {
    fn new(reason: impl Into<String>, detail: impl Into<String>) -> Violation {
        Violation { reason: reason.into(), detail: detail.into() }
    }
}

impl<'a> Pod<'a> {
    /// Init, regular and ephemeral containers.
    fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| self.spec[list].as_array()).flatten()
    }

    /// Names of the containers that satisfy a condition.
    fn containers_that(self, is_so: impl Fn(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers()
            .filter(|container| is_so(container))
            .map(|container| text(&container["name"]))
            .collect()
    }
}

fn unless_windows(pod: Pod<'_>, check: Check) -> Option<Violation> {
    if pod.spec["os"]["name"] == "windows" { None } else { check(pod) }
}

/// Root in a user namespace of its own has no rights on the host.
fn unless_own_users(pod: Pod<'_>, check: Check) -> Option<Violation> {
    if pod.spec["hostUsers"] == false { None } else { check(pod) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `container "a"`, `containers "a", "b"`
fn named<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    format!("{} {}", counted(what, names.len()), quoted(names))
}

fn counted(what: &str, count: usize) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}s") }
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    items.into_iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}

/// The pod and its containers that set something: `pod and container "a"`.
fn setters(pod_does: bool, containers: &[&str]) -> Option<String> {
    let containers = (!containers.is_empty()).then(|| named("container", containers.iter().copied()));
    let all: Vec<_> = pod_does.then(|| "pod".to_owned()).into_iter().chain(containers).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// Distinct values, sorted.
fn distinct<'a>(values: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    values.into_iter().collect()
}

#[cfg(test)]
mod tests;
