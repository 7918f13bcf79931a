//! Environment variables of a container, and the references to fields and resources that they share with volumes.

use api::field::{Error, ErrorList};
use api::name::Format;

use crate::validate::at::At;
use crate::validate::file_path;

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
pub(super) const VOLUME_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn variables(variables: &At<'_, '_>, errors: &mut ErrorList) {
    for variable in variables.items() {
        variable.field("name").required_format(errors, Format::RelaxedEnvVarName);
        let source = variable.field("valueFrom");
        if source.is_set() {
            value_from(&source, !variable.text_of("value").is_empty(), errors);
        }
    }
}

fn value_from(source: &At<'_, '_>, has_value: bool, errors: &mut ErrorList) {
    let mut count = 0;
    for (field, check) in [
        ("fieldRef", env_field as fn(&At<'_, '_>, &mut ErrorList)),
        ("resourceFieldRef", |at, errors| resource_selector(at, false, errors)),
        ("configMapKeyRef", key_selector),
        ("secretKeyRef", key_selector),
        ("fileKeyRef", file_key),
    ] {
        let reference = source.field(field);
        if reference.is_set() {
            count += 1;
            check(&reference, errors);
        }
    }
    let problem = match count {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    source.invalid_as(errors, "", problem);
}

/// Whole ConfigMaps and Secrets.
pub(super) fn sources(sources: &At<'_, '_>, errors: &mut ErrorList) {
    for source in sources.items() {
        if !source.text_of("prefix").is_empty() {
            source.field("prefix").is_format(errors, Format::RelaxedEnvVarName);
        }
        let mut count = 0;
        for reference in ["configMapRef", "secretRef"] {
            let reference = source.field(reference);
            if reference.is_set() {
                count += 1;
                reference.field("name").required_format(errors, Format::Dns1123Subdomain);
            }
        }
        // Kubernetes: the error names the list.
        match count {
            0 => sources.invalid_as(errors, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => sources.invalid_as(errors, "", "may not have more than one field specified at a time"),
        }
    }
}

fn key_selector(at: &At<'_, '_>, errors: &mut ErrorList) {
    at.field("name").is_format(errors, Format::Dns1123Subdomain);
    at.field("key").required_format(errors, Format::ConfigMapKey);
}

fn file_key(at: &At<'_, '_>, errors: &mut ErrorList) {
    at.field("key").required_format(errors, Format::RelaxedEnvVarName);
    at.field("volumeName").required_format(errors, Format::Dns1123Label);
    let path = at.field("path");
    if path.text().is_empty() {
        path.required(errors, "");
    } else {
        file_path::no_backsteps(&path, path.text(), errors);
    }
}

fn env_field(at: &At<'_, '_>, errors: &mut ErrorList) {
    field_selector(at, ENV_FIELDS, errors);
}

/// A field of the pod: `metadata.labels['app']`.
pub(super) fn field_selector(at: &At<'_, '_>, allowed: &[&str], errors: &mut ErrorList) {
    let (version, path) = (at.field("apiVersion"), at.field("fieldPath"));
    if let Some(missing) = [&version, &path].into_iter().find(|it| it.text().is_empty()) {
        missing.required(errors, "");
        return;
    }
    if version.text() != "v1" {
        let problem = format!("unsupported pod version: {}", version.text());
        path.invalid_text(errors, format!("error converting fieldPath: {problem}"));
        return;
    }
    match subscript(path.text()) {
        Some(("metadata.annotations", key)) => {
            errors.extend(Format::QualifiedName.check(at.path(), &key.to_lowercase()));
        }
        Some(("metadata.labels", key)) => errors.extend(Format::QualifiedName.check(at.path(), key)),
        Some(_) => unconvertible(&path, errors),
        None if !is_convertible(path.text()) => unconvertible(&path, errors),
        None if !allowed.contains(&path.text()) => path.unsupported(errors, allowed),
        None => {}
    }
}

fn unconvertible(path: &At<'_, '_>, errors: &mut ErrorList) {
    let problem = format!("error converting fieldPath: field label not supported: {}", path.text());
    path.invalid_text(errors, problem);
}

fn is_convertible(path: &str) -> bool {
    ENV_FIELDS.contains(&path)
        || VOLUME_FIELDS.contains(&path)
        || matches!(path, "spec.restartPolicy" | "spec.schedulerName" | "status.phase" | "spec.host")
}

/// `path['key']`, taken apart.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['")
}

/// A request or limit of a container.
pub(super) fn resource_selector(at: &At<'_, '_>, is_volume: bool, errors: &mut ErrorList) {
    let resource = at.field("resource");
    let is_huge_pages =
        ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| resource.text().starts_with(prefix));
    if is_volume && at.text_of("containerName").is_empty() {
        at.field("containerName").required(errors, "");
    } else if resource.text().is_empty() {
        resource.required(errors, "");
    } else if !RESOURCES.contains(&resource.text()) && !is_huge_pages {
        resource.unsupported(errors, RESOURCES);
    }
    divisor(at, resource.text(), errors);
}

fn divisor(at: &At<'_, '_>, resource: &str, errors: &mut ErrorList) {
    const UNITS: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let divisor = at.field("divisor");
    if !divisor.is_set() || divisor.text() == "0" {
        return;
    }
    let (allowed, what) = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => (&["1m", "1"][..], "cpu"),
        Some("memory") => (&UNITS[..], "memory"),
        Some("ephemeral-storage") => (&UNITS[..], "local ephemeral storage"),
        Some(name) if name.starts_with("hugepages-") => (&UNITS[..], "hugepages"),
        _ => return,
    };
    if !allowed.contains(&divisor.text()) {
        let listed = if what == "cpu" { "1m and 1".to_owned() } else { UNITS.join(", ") };
        let problem = format!("only divisor's values {listed} are supported with the {what} resource");
        errors.push(Error::invalid(divisor.path(), resource, problem));
    }
}
