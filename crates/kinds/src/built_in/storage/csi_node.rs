//! CSINode: the CSI drivers on a node.

use std::collections::HashMap;

use api::field::{Error, ErrorList, Path};
use api::name::Format;
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, integer};
use crate::strategy::Strategy;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, volume_source};

const MAX_NODE_ID_BYTES: usize = 256;

pub(crate) static CSI_NODE: BuiltIn = BuiltIn::new(GROUP, "CSINode", "csinodes")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.return_deleted_object().requires_resource_version())
    .validation(Validation::new(check).update(UpdateChecks::ONLY_AS_NEW.compare(check_change)))
    .columns(&[NAME, integer("Drivers", Cell::Count("/spec/drivers")), AGE]);

fn check(node: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = node.field("spec");
    let drivers = spec.field("drivers");
    let mut taken = Taken::default();
    for driver in drivers.items() {
        let (name, id) = (driver.field("name"), driver.field("nodeID"));
        volume_source::csi_driver_name(&name, errors);
        if id.text().is_empty() {
            id.required(errors, "");
        } else if id.text().len() > MAX_NODE_ID_BYTES {
            id.invalid_text(errors, format!("must be {MAX_NODE_ID_BYTES} characters or less"));
        }
        let allocatable = driver.field("allocatable");
        allocatable.field("count").not_negative(errors);
        if taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
        let keys = driver.field("topologyKeys");
        let mut earlier_keys = Taken::default();
        for key in keys.list() {
            let text = key.as_str().unwrap_or_default();
            if text.is_empty() {
                driver.required(errors, "");
            }
            if !earlier_keys.add(key) {
                errors.push(Error::duplicate(driver.path(), text));
            }
            errors.extend(Format::QualifiedName.check(driver.path(), text));
        }
    }
}

/// What a driver said of a node stays, but for how much fits there.
fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let drivers = |node: &At<'_, '_>| node.field("spec").field("drivers").list().to_vec();
    let lasting = |mut driver: Value| {
        if let Some(driver) = driver.as_object_mut() {
            let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            driver.retain(|name, value| name != "allocatable" && !is_empty(value));
        }
        driver
    };
    let now: Vec<Value> = drivers(new).into_iter().map(lasting).collect();
    let mut by_name: HashMap<&Value, Vec<&Value>> = HashMap::new();
    now.iter().for_each(|driver| by_name.entry(&driver["name"]).or_default().push(driver));
    let mut seen = Taken::default();
    for before in drivers(old).into_iter().map(lasting) {
        if !seen.add(before["name"].clone()) {
            continue;
        }
        let same_name = by_name.get(&before["name"]).into_iter().flatten();
        for driver in same_name.filter(|driver| ***driver != before) {
            let shown = internal::shown("io.k8s.api.storage.v1.CSINodeDriver", driver);
            errors.push(Error::invalid(&Path::new("spec.drivers"), shown, IMMUTABLE));
        }
    }
}
