//! Security contexts of pods and containers.

use api::field::{Error, ErrorList};
use api::name::{self, Format};

use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::{file_path, internal};

pub(super) fn of_container(context: &At<'_, '_>, host_users: bool, errors: &mut ErrorList) {
    if !context.is_set() {
        return;
    }
    ids(context, &["runAsUser", "runAsGroup"], errors);
    let mount = context.field("procMount");
    if mount.is_set() {
        mount.one_of(errors, &["Default", "Unmasked"]);
        if host_users && mount.text() == "Unmasked" {
            mount.invalid_text(errors, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(&context.field("seccompProfile"), errors);
    if context.has("allowPrivilegeEscalation") && !context.flag_of("allowPrivilegeEscalation") {
        let shown = || internal::shown_core("SecurityContext", context);
        if context.flag_of("privileged") {
            let problem = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            context.invalid_as(errors, shown(), problem);
        }
        let added = context.field("capabilities");
        let added = added.field("add");
        for _ in added.items().filter(|capability| capability.text() == "CAP_SYS_ADMIN") {
            let problem =
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            context.invalid_as(errors, shown(), problem);
        }
    }
    windows(&context.field("windowsOptions"), errors);
    app_armor(&context.field("appArmorProfile"), errors);
}

pub(super) fn of_pod(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let context = spec.field("securityContext");
    ids(&context, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    let groups = context.field("supplementalGroups");
    for group in groups.items() {
        for problem in name::id_problems(group.int()) {
            group.invalid_int(errors, problem);
        }
    }
    if spec.flag_of("shareProcessNamespace") && spec.flag_of("hostPID") {
        let problem = "ShareProcessNamespace and HostPID cannot both be enabled";
        context.field("shareProcessNamespace").invalid_as(errors, true, problem);
    }
    sysctls(spec, &context.field("sysctls"), errors);
    context.field("fsGroupChangePolicy").optional_one_of(errors, &["Always", "OnRootMismatch"]);
    seccomp(&context.field("seccompProfile"), errors);
    windows(&context.field("windowsOptions"), errors);
    app_armor(&context.field("appArmorProfile"), errors);
    context.field("supplementalGroupsPolicy").optional_one_of(errors, &["Merge", "Strict"]);
    context.field("seLinuxChangePolicy").optional_one_of(errors, &["Recursive"]);
}

/// Windows: where one container runs as a process of its host all do, in the network of the host.
pub(super) fn host_processes(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let of_pod = &spec.value()["securityContext"]["windowsOptions"]["hostProcess"];
    let (mut count, mut host_processes) = (0, 0);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.field(list).items() {
            let context = container.field("securityContext");
            let options = context.field("windowsOptions");
            let own = options.field("hostProcess");
            if !of_pod.is_null() && own.is_set() && of_pod != own.value() {
                let problem = "pod hostProcess value must be identical if both are specified, was";
                own.invalid(errors, format!("{problem} {of_pod}"));
            }
            let is_host_process = if own.is_set() { own.value() } else { of_pod } == true;
            (count, host_processes) = (count + 1, host_processes + usize::from(is_host_process));
        }
    }
    if host_processes == 0 {
        return;
    }
    if host_processes != count {
        let problem =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        spec.invalid_as(errors, "", problem);
    }
    if !spec.flag_of("hostNetwork") {
        let problem = "hostNetwork must be true if pod contains any hostProcess containers";
        spec.field("hostNetwork").invalid_as(errors, false, problem);
    }
}

/// A pod with users of its own leaves the host's namespaces alone.
pub(super) fn host_users(spec: &At<'_, '_>, errors: &mut ErrorList) {
    const WHEN: &str = "when `hostUsers` is false";
    if !spec.has("hostUsers") || spec.flag_of("hostUsers") {
        return;
    }
    // Kubernetes: two of the names are in capitals.
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.flag_of(field) {
            spec.field(shown).forbidden(errors, WHEN);
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = spec.field(list);
        for container in containers.items().filter(|it| !it.field("volumeDevices").is_empty()) {
            container.field("volumeDevices").forbidden(errors, WHEN);
        }
    }
}

fn ids(context: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    for id in fields.iter().map(|field| context.field(field)).filter(At::is_set) {
        for problem in name::id_problems(id.int()) {
            id.invalid_int(errors, problem);
        }
    }
}

fn sysctls(spec: &At<'_, '_>, sysctls: &At<'_, '_>, errors: &mut ErrorList) {
    const PATTERN: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut taken = Taken::default();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.text().is_empty() {
            name.required(errors, "");
        } else if !is_sysctl(name.text()) {
            let problem = format!("must have at most 253 characters and match regex {PATTERN}");
            name.invalid_text(errors, problem);
        } else if taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
        let dotted = name.text().replace('/', ".");
        let is_ipc =
            ["kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|it| dotted.starts_with(it));
        if spec.flag_of("hostNetwork") && dotted.starts_with("net.") {
            name.invalid_text(errors, "may not be specified when 'hostNetwork' is true");
        } else if spec.flag_of("hostIPC") && is_ipc {
            name.invalid_text(errors, "may not be specified when 'hostIPC' is true");
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge =
        |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_segment = |segment: &str| {
        is_edge(segment.bytes().next())
            && is_edge(segment.bytes().next_back())
            && segment.bytes().all(|byte| is_edge(Some(byte)) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_segment)
}

fn seccomp(profile: &At<'_, '_>, errors: &mut ErrorList) {
    if !profile.is_set() {
        return;
    }
    let (sort, local) = (profile.field("type"), profile.field("localhostProfile"));
    match sort.text() {
        "" => sort.required(errors, "type is required when seccompProfile is set"),
        _ => sort.one_of(errors, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
    match (sort.text() == "Localhost", local.is_set()) {
        (true, false) => local.required(errors, "must be set when seccomp type is Localhost"),
        (true, true) => file_path::descending(&local, errors),
        (false, true) => {
            let shown = internal::shown_core("SeccompProfile", profile);
            local.invalid_as(errors, shown, "can only be set when seccomp type is Localhost");
        }
        (false, false) => {}
    }
}

fn app_armor(profile: &At<'_, '_>, errors: &mut ErrorList) {
    const LONGEST: usize = 4095;
    const MUST: &str = "must be set when AppArmor type is Localhost";
    if !profile.is_set() {
        return;
    }
    let (sort, local) = (profile.field("type"), profile.field("localhostProfile"));
    match sort.text() {
        "Localhost" if !local.is_set() => local.required(errors, MUST),
        "Localhost" => {
            if local.text().trim() != local.text() {
                local.invalid_text(errors, "must not be padded with whitespace");
            } else if local.text().is_empty() {
                local.required(errors, MUST);
            }
            if local.text().len() > LONGEST {
                errors.push(Error::too_long(local.path(), LONGEST));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if local.is_set() {
                local.invalid_text(errors, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => sort.required(errors, "type is required when appArmorProfile is set"),
        _ => sort.unsupported(errors, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

fn windows(options: &At<'_, '_>, errors: &mut ErrorList) {
    let spec_name = options.field("gmsaCredentialSpecName");
    if spec_name.is_set() {
        spec_name.is_format(errors, Format::Dns1123Subdomain);
    }
    let spec = options.field("gmsaCredentialSpec");
    if spec.is_set() && spec.text().is_empty() {
        spec.invalid_text(errors, "gmsaCredentialSpec cannot be an empty string");
    } else if spec.text().len() > 64 << 10 {
        spec.invalid_text(errors, "gmsaCredentialSpec size must be under 64 KiB");
    }
    let user = options.field("runAsUserName");
    if user.is_set() && user.text().is_empty() {
        user.invalid_text(errors, "runAsUserName cannot be an empty string");
    } else if user.text().chars().any(|c| c.is_ascii_control()) {
        user.invalid_text(errors, "runAsUserName cannot contain control characters");
    } else if user.text().matches('\\').count() > 1 {
        user.invalid_text(errors, "runAsUserName cannot contain more than one backslash");
    } else if user.is_set() {
        windows_user(&user, errors);
    }
}

/// `DOMAIN\USER` or `USER`.
fn windows_user(at: &At<'_, '_>, errors: &mut ErrorList) {
    const DOMAIN_LIMIT: usize = 256;
    const LONGEST_USER: usize = 104;
    let (domain, user) =
        at.text().split_once('\\').map_or((None, at.text()), |(domain, user)| (Some(domain), user));
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_LIMIT) {
        let problem = format!("runAsUserName's Domain length must be under {DOMAIN_LIMIT} characters");
        at.invalid_text(errors, problem);
    }
    if domain.is_some_and(|domain| !is_net_bios_name(domain) && !is_windows_dns_name(domain)) {
        at.invalid_text(errors, "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        at.invalid_text(errors, "runAsUserName's User cannot be empty");
    } else if user.len() > LONGEST_USER {
        let problem =
            format!("runAsUserName's User length must not be longer than {LONGEST_USER} characters");
        at.invalid_text(errors, problem);
    }
    if !user.is_empty() && user.bytes().all(|byte| matches!(byte, b'.' | b' ')) {
        at.invalid_text(errors, "runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        let problem = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
        at.invalid_text(errors, problem);
    }
}

fn is_net_bios_name(name: &str) -> bool {
    const LONGEST: usize = 15;
    (1..=LONGEST).contains(&name.chars().count())
        && !name.starts_with('.')
        && !name.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_windows_dns_name(name: &str) -> bool {
    const LONGEST_LABEL: usize = 63;
    name.split('.').all(|label| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}
