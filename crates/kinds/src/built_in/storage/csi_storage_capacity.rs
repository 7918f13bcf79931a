//! CSIStorageCapacity: how much storage of a class is left in a part of the cluster.

use api::field::ErrorList;
use api::name::Format;
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::pod::warnings::deprecated_label;
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static CSI_STORAGE_CAPACITY: BuiltIn =
    BuiltIn::new(GROUP, "CSIStorageCapacity", "csistoragecapacities")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(Strategy::PLAIN.requires_resource_version())
        .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare(check_change)))
        .warnings(warn);

fn check(capacity: &At<'_, '_>, errors: &mut ErrorList) {
    selector::check(&capacity.field("nodeTopology"), errors);
    capacity.field("storageClassName").is_format(errors, Format::Dns1123Subdomain);
    let amount = capacity.field("capacity");
    if amount.quantity().is_some_and(|amount| amount.is_negative()) {
        amount.invalid_text(errors, "must be greater than or equal to 0");
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    selector::immutable(&new.field("nodeTopology"), &old.field("nodeTopology"), errors);
    new.field("storageClassName").immutable(errors, &old.field("storageClassName"));
}

fn warn(capacity: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    let topology = capacity.field("nodeTopology");
    for expression in topology.field("matchExpressions").items() {
        let key = expression.field("key");
        let problem = deprecated_label(key.text());
        warnings.extend(problem.map(|problem| format!("{}: {} is {problem}", key.path(), key.text())));
    }
    let labels = topology.field("matchLabels");
    for (key, _) in labels.entries() {
        let problem = deprecated_label(key);
        warnings.extend(problem.map(|problem| format!("{}: {problem}", labels.path().child(key))));
    }
}
