//! Checks of AppArmor, SELinux and seccomp profiles.

use super::{Pod, Violation, counted, distinct, named, quoted, setters, text};
use serde_json::Value;

const SE_LINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

// Kubernetes: annotations that selected profiles before there were fields.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

pub(super) fn app_armor(pod: Pod<'_>) -> Option<Violation> {
    let bad = |of: &Value| {
        let profile = &of["securityContext"]["appArmorProfile"];
        let sort = text(&profile["type"]);
        (profile.is_object() && !matches!(sort, "RuntimeDefault" | "Localhost")).then(|| sort.to_owned())
    };
    let annotations = pod.metadata["annotations"].as_object().into_iter().flatten();
    let mut annotations: Vec<_> = annotations
        .filter(|(key, value)| {
            let value = text(value);
            let is_allowed = matches!(value, "" | "runtime/default") || value.starts_with("localhost/");
            key.starts_with(APP_ARMOR) && !is_allowed
        })
        .map(|(key, value)| format!("{key}={}", api::go::quote(text(value))))
        .collect();
    annotations.sort();
    let fields: Vec<_> = bad(pod.spec).into_iter().chain(pod.containers().filter_map(bad)).collect();
    let mut values: Vec<_> = distinct(fields.iter().map(String::as_str)).into_iter().collect();
    values.extend(annotations.iter().map(String::as_str));
    let by_field =
        setters(bad(pod.spec).is_some(), &pod.containers_that(|container| bad(container).is_some()));
    let by_annotation = (!annotations.is_empty()).then(|| counted("annotation", annotations.len()));
    let setters: Vec<_> = by_field.into_iter().chain(by_annotation).collect();
    if setters.is_empty() {
        return None;
    }
    let reason = counted("forbidden AppArmor profile", values.len());
    let detail =
        format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(values));
    Some(Violation::new(reason, detail))
}

pub(super) fn se_linux(pod: Pod<'_>) -> Option<Violation> {
    se_linux_but(pod, &SE_LINUX_TYPES[..4])
}

pub(super) fn se_linux_with_engine(pod: Pod<'_>) -> Option<Violation> {
    se_linux_but(pod, &SE_LINUX_TYPES)
}

fn se_linux_but(pod: Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let options = |of: &'_ Value| of["securityContext"]["seLinuxOptions"].clone();
    let is_set = |of: &Value, field: &str| !text(&options(of)[field]).is_empty();
    let is_bad_type = |of: &Value| !allowed.contains(&text(&options(of)["type"]));
    let is_bad = |of: &Value| is_bad_type(of) || is_set(of, "user") || is_set(of, "role");
    let setters = setters(is_bad(pod.spec), &pod.containers_that(is_bad))?;
    let all = || std::iter::once(pod.spec).chain(pod.containers());
    let types: Vec<_> =
        all().filter(|of| is_bad_type(of)).map(|of| text(&options(of)["type"]).to_owned()).collect();
    let types = distinct(types.iter().map(String::as_str));
    let mut bad = Vec::new();
    if !types.is_empty() {
        bad.push(named("type", types));
    }
    for field in ["user", "role"] {
        if all().any(|of| is_set(of, field)) {
            bad.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", bad.join("; "));
    Some(Violation::new("seLinuxOptions", detail))
}

pub(super) fn seccomp_annotations(pod: Pod<'_>) -> Option<Violation> {
    let keys =
        pod.containers().map(|container| format!("{SECCOMP_OF_CONTAINER}{}", text(&container["name"])));
    let bad = std::iter::once(SECCOMP.to_owned()).chain(keys).filter_map(|key| {
        let value = pod.metadata["annotations"][&key].as_str()?;
        let is_allowed =
            matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
        (!is_allowed).then(|| format!("{key}={}", api::go::quote(value)))
    });
    let bad: Vec<_> = bad.collect();
    let bad = distinct(bad.iter().map(String::as_str));
    let what = counted("annotation", bad.len());
    let shown = bad.iter().copied().collect::<Vec<_>>().join(", ");
    (!bad.is_empty()).then(|| Violation::new("seccompProfile", format!("forbidden {what} {shown}")))
}

enum Seccomp {
    Unsaid,
    Good,
    Bad(String),
}

fn seccomp(of: &Value) -> Seccomp {
    let profile = &of["securityContext"]["seccompProfile"];
    match text(&profile["type"]) {
        _ if !profile.is_object() => Seccomp::Unsaid,
        "RuntimeDefault" | "Localhost" => Seccomp::Good,
        bad => Seccomp::Bad(bad.to_owned()),
    }
}

pub(super) fn seccomp_allowed(pod: Pod<'_>) -> Option<Violation> {
    let bad = |of: &Value| match seccomp(of) {
        Seccomp::Bad(sort) => Some(sort),
        _ => None,
    };
    let setters =
        setters(bad(pod.spec).is_some(), &pod.containers_that(|container| bad(container).is_some()))?;
    let sorts: Vec<_> = bad(pod.spec).into_iter().chain(pod.containers().filter_map(bad)).collect();
    let sorts = quoted(distinct(sorts.iter().map(String::as_str)));
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {sorts}");
    Some(Violation::new("seccompProfile", detail))
}

pub(super) fn seccomp_required(pod: Pod<'_>) -> Option<Violation> {
    if let Some(violation) = seccomp_allowed(pod) {
        return Some(violation);
    }
    let is_unsaid = |of: &Value| matches!(seccomp(of), Seccomp::Unsaid);
    let silent = pod.containers_that(|container| is_unsaid(container) && is_unsaid(pod.spec));
    let names = named("container", silent.clone());
    let detail = format!(
        "pod or {names} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
    );
    (!silent.is_empty()).then(|| Violation::new("seccompProfile", detail))
}
