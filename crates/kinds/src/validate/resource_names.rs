//! Resources by name, `cpu` or `example.com/gpu`: which may stand where, and what amounts of them make sense.

use api::field::{Error, ErrorList, Path};
use api::name::Format;
use api::quantity::Quantity;

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const INTEGER: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const QUOTA: [&str; 7] = [
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

pub(crate) fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Of Kubernetes itself rather than of a vendor.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(crate) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && Format::QualifiedName.fits(&format!("requests.{name}"))
}

pub(crate) fn is_standard_quota(name: &str) -> bool {
    CONTAINER.contains(&name)
        || INTEGER.contains(&name)
        || QUOTA.contains(&name)
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
}

pub(crate) fn check(path: &Path<'_>, name: &str) -> ErrorList {
    let errors = Format::QualifiedName.check(path, name);
    if errors.is_empty() && !name.contains('/') && !is_standard_quota(name) && name != "storage" {
        return Error::invalid(path, name, "must be a standard resource type or fully qualified").into();
    }
    errors
}

pub(crate) fn check_for_container(path: &Path<'_>, name: &str) -> ErrorList {
    let mut errors = check(path, name);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_pages(name) {
            errors.push(Error::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(Error::invalid(path, name, "doesn't follow extended resource name standard"));
    }
    errors
}

pub(crate) fn check_for_pod(path: &Path<'_>, name: &str) -> ErrorList {
    let errors = check(path, name);
    if errors.is_empty() && !matches!(name, "cpu" | "memory") && !is_huge_pages(name) {
        return Error::not_supported(path, name, ["cpu", "hugepages-", "memory"]).into();
    }
    errors
}

pub(crate) fn check_for_quota(path: &Path<'_>, name: &str) -> ErrorList {
    let mut errors = check(path, name);
    if !name.contains('/') && !is_standard_quota(name) {
        errors.push(Error::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

/// Not negative, and whole for what cannot be divided.
pub(crate) fn check_amount(path: &Path<'_>, name: &str, amount: &Quantity) -> ErrorList {
    let mut errors = ErrorList::new();
    if amount.is_negative() {
        errors.push(Error::invalid(path, amount.to_string(), "must be greater than or equal to 0"));
    }
    let counts = INTEGER.contains(&name) || is_extended(name);
    if counts && amount.milli_value().is_none_or(|milli| milli % 1000 != 0) {
        errors.push(Error::invalid(path, amount.to_string(), "must be an integer"));
    }
    errors
}

/// Why an amount of huge pages cannot be had.
pub(crate) fn huge_page_problem(name: &str, amount: &Quantity) -> Option<String> {
    let size = name.strip_prefix("hugepages-")?.parse::<Quantity>().ok();
    let size = size.filter(Quantity::is_integer).and_then(|size| size.value()).filter(|size| *size > 0);
    let divides = size.is_some_and(|size| amount.value().is_some_and(|amount| amount % size == 0));
    (!divides).then(|| format!("{amount} is not positive integer multiple of {name}"))
}
