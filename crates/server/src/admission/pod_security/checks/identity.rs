//! Checks of users, host namespaces and sysctls.

use super::{Pod, Violation, named, setters, text};
use serde_json::Value;

/// Sysctls that affect only the pod; each later version adds some at the end.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

pub(super) fn host_namespaces(pod: Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec[field] == true);
    let shared: Vec<_> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub(super) fn host_process(pod: Pod<'_>) -> Option<Violation> {
    let is_bad = |of: &Value| of["securityContext"]["windowsOptions"]["hostProcess"] == true;
    let setters = setters(is_bad(pod.spec), &pod.containers_that(is_bad))?;
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}

pub(super) fn run_as_non_root(pod: Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let said = |of: &Value| of["securityContext"]["runAsNonRoot"].as_bool();
    let of_pod = said(pod.spec);
    if let Some(setters) =
        setters(of_pod == Some(false), &pod.containers_that(|container| said(container) == Some(false)))
    {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    let silent = pod.containers_that(|container| said(container).is_none() && of_pod != Some(true));
    let detail = || {
        format!("pod or {} must set securityContext.runAsNonRoot=true", named("container", silent.clone()))
    };
    (!silent.is_empty()).then(|| Violation::new(REASON, detail()))
}

pub(super) fn run_as_user(pod: Pod<'_>) -> Option<Violation> {
    let is_root = |of: &Value| of["securityContext"]["runAsUser"] == 0;
    let setters = setters(is_root(pod.spec), &pod.containers_that(is_root))?;
    Some(Violation::new("runAsUser=0", format!("{setters} must not set runAsUser=0")))
}

pub(super) fn sysctls(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS[..5])
}

pub(super) fn sysctls_27(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS[..6])
}

pub(super) fn sysctls_29(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS[..10])
}

pub(super) fn sysctls_32(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS)
}

fn sysctls_but(pod: Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let set = pod.spec["securityContext"]["sysctls"].as_array().into_iter().flatten();
    let bad: Vec<_> =
        set.map(|sysctl| text(&sysctl["name"])).filter(|name| !allowed.contains(name)).collect();
    (!bad.is_empty()).then(|| Violation::new("forbidden sysctls", bad.join(", ")))
}
