//! Role and ClusterRole: what may be done.

use api::field::ErrorList;
use api::name::NameRule;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::validation::Validation;

pub(crate) static ROLE: BuiltIn = BuiltIn::new(GROUP, "Role", "roles")
    .older_versions(&["v1alpha1", "v1beta1"])
    .strategy(Strategy::PLAIN.named(NameRule::PathSegment).allow_create_on_update())
    .validation(Validation::new(check).named(NameRule::PathSegment));

pub(crate) static CLUSTER_ROLE: BuiltIn = BuiltIn::new(GROUP, "ClusterRole", "clusterroles")
    .older_versions(&["v1alpha1", "v1beta1"])
    .strategy(Strategy::PLAIN.named(NameRule::PathSegment).allow_create_on_update())
    .validation(Validation::new(check_cluster_role).named(NameRule::PathSegment));

fn check(role: &At<'_, '_>, errors: &mut ErrorList) {
    check_rules(role, true, errors);
}

fn check_cluster_role(role: &At<'_, '_>, errors: &mut ErrorList) {
    check_rules(role, false, errors);
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

fn check_rules(role: &At<'_, '_>, is_namespaced: bool, errors: &mut ErrorList) {
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
