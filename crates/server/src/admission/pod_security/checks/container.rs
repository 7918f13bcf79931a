//! Checks of container fields: privileges, capabilities, host ports, probes, proc mounts.

use super::{Pod, Violation, counted, distinct, named, quoted, text, unless_own_users};
use serde_json::Value;

/// The default capabilities of container runtimes, and a few more.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn privileged(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.containers_that(|container| container["securityContext"]["privileged"] == true);
    let detail =
        || format!("{} must not set securityContext.privileged=true", named("container", bad.clone()));
    (!bad.is_empty()).then(|| Violation::new("privileged", detail()))
}

pub(super) fn escalation(pod: Pod<'_>) -> Option<Violation> {
    let bad =
        pod.containers_that(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    let detail = || {
        format!("{} must set securityContext.allowPrivilegeEscalation=false", named("container", bad.clone()))
    };
    (!bad.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail()))
}

fn capabilities<'a>(container: &'a Value, which: &str) -> impl Iterator<Item = &'a str> {
    container["securityContext"]["capabilities"][which].as_array().into_iter().flatten().map(text)
}

/// The containers that add forbidden capabilities, and which.
fn added(pod: Pod<'_>, is_allowed: impl Fn(&str) -> bool) -> Option<String> {
    let forbidden = |container| capabilities(container, "add").filter(|capability| !is_allowed(capability));
    let bad = pod.containers_that(|container| forbidden(container).next().is_some());
    let which = distinct(pod.containers().flat_map(forbidden));
    let names = named("container", bad.clone());
    (!bad.is_empty())
        .then(|| format!("{names} must not include {} in securityContext.capabilities.add", quoted(which)))
}

pub(super) fn added_capabilities(pod: Pod<'_>) -> Option<Violation> {
    let detail = added(pod, |capability| CAPABILITIES.contains(&capability))?;
    Some(Violation::new("non-default capabilities", detail))
}

pub(super) fn kept_capabilities(pod: Pod<'_>) -> Option<Violation> {
    let keeping = pod.containers_that(|container| !capabilities(container, "drop").any(|it| it == "ALL"));
    let kept = (!keeping.is_empty()).then(|| {
        format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named("container", keeping))
    });
    let added = added(pod, |capability| capability == "NET_BIND_SERVICE");
    let details: Vec<_> = kept.into_iter().chain(added).collect();
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

pub(super) fn host_ports(pod: Pod<'_>) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<String> {
        let ports = container["ports"].as_array().into_iter().flatten();
        ports
            .filter_map(|port| port["hostPort"].as_i64())
            .filter(|port| *port != 0)
            .map(|it| it.to_string())
            .collect()
    };
    let bad = pod.containers_that(|container| !ports(container).is_empty());
    let all: Vec<_> = pod.containers().flat_map(ports).collect();
    let all = distinct(all.iter().map(String::as_str));
    let (uses, count) = (if bad.len() == 1 { "uses" } else { "use" }, all.len());
    let shown = all.into_iter().collect::<Vec<_>>().join(", ");
    let detail =
        || format!("{} {uses} {} {shown}", named("container", bad.clone()), counted("hostPort", count));
    (!bad.is_empty()).then(|| Violation::new("hostPort", detail()))
}

pub(super) fn probed_hosts(pod: Pod<'_>) -> Option<Violation> {
    let hosts = |container: &'_ Value| -> Vec<String> {
        let lifecycle = &container["lifecycle"];
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &lifecycle["postStart"],
            &lifecycle["preStop"],
        ];
        let hosts = handlers.into_iter().flat_map(|it| [&it["httpGet"]["host"], &it["tcpSocket"]["host"]]);
        hosts.map(text).filter(|host| !host.is_empty()).map(str::to_owned).collect()
    };
    let bad = distinct(pod.containers_that(|container| !hosts(container).is_empty()));
    let all: Vec<_> = pod.containers().flat_map(hosts).collect();
    let all = distinct(all.iter().map(String::as_str));
    let (uses, what) = (if bad.len() == 1 { "uses" } else { "use" }, "probe or lifecycle host");
    let detail = || format!("{} {uses} {}", named("container", bad.iter().copied()), named(what, all));
    if bad.is_empty() { None } else { Some(Violation::new(what, detail())) }
}

pub(super) fn proc_mount(pod: Pod<'_>) -> Option<Violation> {
    let mount = |container: &'_ Value| {
        let mount = container["securityContext"]["procMount"].as_str();
        mount.filter(|mount| *mount != "Default").map(str::to_owned)
    };
    let bad = pod.containers_that(|container| mount(container).is_some());
    let mounts: Vec<_> = pod.containers().filter_map(mount).collect();
    let mounts = quoted(distinct(mounts.iter().map(String::as_str)));
    let detail =
        || format!("{} must not set securityContext.procMount to {mounts}", named("container", bad.clone()));
    (!bad.is_empty()).then(|| Violation::new("procMount", detail()))
}

pub(super) fn proc_mount_of_host_users(pod: Pod<'_>) -> Option<Violation> {
    unless_own_users(pod, proc_mount)
}
