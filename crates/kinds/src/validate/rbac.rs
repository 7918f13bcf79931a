//! Roles and bindings.

use api::field::{Error, ErrorList};
use api::name::Format;

use super::at::At;
use super::{internal, selector};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(role: &At<'_, '_>, errors: &mut ErrorList) {
    rules(role, true, errors);
}

pub(super) fn cluster_role(role: &At<'_, '_>, errors: &mut ErrorList) {
    rules(role, false, errors);
    let aggregation = role.field("aggregationRule");
    if !aggregation.is_set() {
        return;
    }
    let selectors = aggregation.field("clusterRoleSelectors");
    if selectors.is_empty() {
        let problem = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        selectors.required(errors, problem);
    }
    for wanted in selectors.items() {
        selector::check(&wanted, errors);
        if selector::compiled(&wanted).is_none() {
            wanted.invalid_as(errors, None::<&str>, "invalid label selector.");
        }
    }
}

fn rules(role: &At<'_, '_>, is_namespaced: bool, errors: &mut ErrorList) {
    let rules = role.field("rules");
    for rule in rules.items() {
        let (verbs, urls) = (rule.field("verbs"), rule.field("nonResourceURLs"));
        if verbs.is_empty() {
            verbs.required(errors, "verbs must contain at least one value");
        }
        if !urls.is_empty() {
            if is_namespaced {
                urls.invalid(errors, "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.field(field).is_empty()) {
                urls.invalid(errors, "rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        for (field, problem) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if rule.field(field).is_empty() {
                rule.field(field).required(errors, problem);
            }
        }
    }
}

pub(super) fn role_binding(binding: &At<'_, '_>, errors: &mut ErrorList) {
    bound(binding, &["Role", "ClusterRole"], errors);
}

pub(super) fn cluster_role_binding(binding: &At<'_, '_>, errors: &mut ErrorList) {
    bound(binding, &["ClusterRole"], errors);
}

fn bound(binding: &At<'_, '_>, kinds: &[&str], errors: &mut ErrorList) {
    let role = binding.field("roleRef");
    role.field("apiGroup").one_of(errors, &[GROUP]);
    role.field("kind").one_of(errors, kinds);
    role.field("name").required_format(errors, Format::PathSegment);
    let is_namespaced = kinds.contains(&"Role");
    let subjects = binding.field("subjects");
    for subject in subjects.items() {
        let (name, group, kind) = (subject.field("name"), subject.field("apiGroup"), subject.field("kind"));
        if name.text().is_empty() {
            name.required(errors, "");
        }
        match kind.text() {
            "ServiceAccount" => {
                if !name.text().is_empty() {
                    name.is_format(errors, Format::Dns1123Subdomain);
                }
                if !group.text().is_empty() {
                    group.unsupported(errors, &[""]);
                }
                if !is_namespaced && subject.text_of("namespace").is_empty() {
                    subject.field("namespace").required(errors, "");
                }
            }
            "User" | "Group" => group.one_of(errors, &[GROUP]),
            _ => kind.unsupported(errors, &["ServiceAccount", "User", "Group"]),
        }
    }
}

pub(super) fn same_role(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let role = new.field("roleRef");
    if role.value() != old.field("roleRef").value() {
        let shown = internal::shown("io.k8s.api.rbac.v1.RoleRef", role.value());
        errors.push(Error::invalid(role.path(), shown, "cannot change roleRef"));
    }
}
