//! The annotations of a pod that mean something, and the security profiles that they once held.

use api::field::{Error, ErrorList};

use crate::validate::at::At;
use crate::validate::file_path;
use crate::validate::taken::Taken;
use std::cell::LazyCell;

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(crate) fn check(annotations: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut ErrorList) {
    let containers = LazyCell::new(|| container_names(spec));
    for (key, value) in annotations.entries() {
        let text = value.text();
        if key == MIRROR && spec.text_of("nodeName").is_empty() {
            value.invalid_text(errors, "must set spec.nodeName if mirror pod annotation is set");
        }
        if key == DELETION_COST && !is_deletion_cost(text) {
            value.invalid_text(errors, "must be a 32bit integer");
        }
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            // Kubernetes: the path takes the key for a field.
            seccomp(&At::new(value.value(), annotations.path().child(key)), errors);
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR) {
            app_armor(&value, name, &containers, errors);
        }
    }
}

/// Kubernetes: as Go reads a number, but without a leading plus or zero.
fn is_deletion_cost(text: &str) -> bool {
    let has_odd_start = text.starts_with('+') || (text.len() > 1 && text.starts_with('0'));
    !has_odd_start && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &At<'_, '_>, errors: &mut ErrorList) {
    match profile.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(path) => {
                if path.starts_with('/') {
                    profile.invalid_as(errors, path, "must be a relative path");
                }
                file_path::no_backsteps(profile, path, errors);
            }
            None => profile.invalid_text(errors, "must be a valid seccomp profile"),
        },
    }
}

/// The names of all containers of a pod.
fn container_names<'v>(spec: &At<'v, '_>) -> Taken<&'v str> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.iter().flat_map(|list| spec.field(list).list()).map(name).collect()
}

fn name(container: &serde_json::Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

fn app_armor(value: &At<'_, '_>, container: &str, known: &Taken<&str>, errors: &mut ErrorList) {
    if !known.contains(container) {
        value.invalid_as(errors, container, "container not found");
    }
    let text = value.text();
    if !matches!(text, "" | "runtime/default" | "unconfined") && !text.starts_with("localhost/") {
        value.invalid_text(errors, format!("invalid AppArmor profile name: {}", api::go::quote(text)));
    }
}

/// A profile that is said twice, in an annotation and in a field, is the same.
pub(crate) fn profiles_match(annotations: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut ErrorList) {
    let context = spec.field("securityContext");
    let pod_profile = context.field("seccompProfile");
    same_profile(annotations.text_of(SECCOMP_POD), &pod_profile, "seccomp", errors);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let list = spec.field(list);
        for container in list.items() {
            let key = format!("{SECCOMP_CONTAINER}{}", container.text_of("name"));
            let context = container.field("securityContext");
            same_profile(annotations.text_of(&key), &context.field("seccompProfile"), "seccomp", errors);
        }
    }
    if spec.field("os").text_of("name") == "windows" {
        return;
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let list = spec.field(list);
        for container in list.items() {
            let key = format!("{APP_ARMOR}{}", container.text_of("name"));
            let own = container.field("securityContext");
            let own = own.field("appArmorProfile");
            let profile = if own.is_set() {
                own
            } else {
                At::new(context.field("appArmorProfile").value(), *own.path())
            };
            same_profile(annotations.text_of(&key), &profile, "apparmor", errors);
        }
    }
}

fn same_profile(annotation: &str, profile: &At<'_, '_>, what: &str, errors: &mut ErrorList) {
    if annotation.is_empty() || !profile.is_set() {
        return;
    }
    let is_same = match profile.text_of("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default")
        }
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(path) if path != profile.text_of("localhostProfile") => {
                let problem = format!("{what} profile in annotation and field must match");
                errors.push(Error::forbidden(profile.field("localhostProfile").path(), problem));
                return;
            }
            local => local.is_some(),
        },
        _ => return,
    };
    if !is_same {
        let problem = format!("{what} type in annotation and field must match");
        errors.push(Error::forbidden(profile.field("type").path(), problem));
    }
}
