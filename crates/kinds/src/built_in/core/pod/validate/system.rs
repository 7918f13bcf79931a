//! The operating system that a pod names, and what makes no sense there.

use api::field::{Error, ErrorList};

use crate::validate::at::At;

const NOT_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_LINUX: &str = "windows options cannot be set for a linux pod";
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Of a pod's security context.
const POD: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
/// Of a pod itself.
const SPEC: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
/// Of a container's security context.
const CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub(super) fn check(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let system = spec.field("os");
    match system.text_of("name") {
        _ if !system.is_set() => {}
        "" => system.field("name").required(errors, ""),
        "linux" => surplus(spec, &["windowsOptions"], &[], &["windowsOptions"], NOT_LINUX, errors),
        "windows" => surplus(spec, &POD, &SPEC, &CONTAINER, NOT_WINDOWS, errors),
        other => errors.push(Error::not_supported(system.path(), other, ["linux", "windows"])),
    }
}

fn surplus(
    spec: &At<'_, '_>,
    of_pod: &[&str],
    of_spec: &[&str],
    of_container: &[&str],
    problem: &str,
    errors: &mut ErrorList,
) {
    let forbid = |at: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList| {
        for field in fields.iter().filter(|field| at.has(field)) {
            at.field(field).forbidden(errors, problem);
        }
    };
    forbid(&spec.field("securityContext"), of_pod, errors);
    forbid(spec, of_spec, errors);
    for list in LISTS {
        let list = spec.field(list);
        for container in list.items() {
            forbid(&container.field("securityContext"), of_container, errors);
        }
    }
}
