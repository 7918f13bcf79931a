//! Storage: classes, CSI drivers and what they report, and attachments.

use std::collections::HashMap;

use api::field::{Error, ErrorList, Path};
use api::name::{self, Format};
use serde_json::Value;

use super::at::{At, IMMUTABLE};
use super::taken::Taken;
use super::{internal, persistent_volume, selector, volume_source};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 << 10;
const MAX_NODE_ID_BYTES: usize = 256;

pub(super) fn class(class: &At<'_, '_>, errors: &mut ErrorList) {
    provisioner(&class.field("provisioner"), errors);
    parameters(&class.field("parameters"), errors);
    if !class.text_of("reclaimPolicy").is_empty() {
        class.field("reclaimPolicy").one_of(errors, &["Delete", "Retain"]);
    }
    let mode = class.field("volumeBindingMode");
    if mode.is_set() {
        mode.one_of(errors, &["Immediate", "WaitForFirstConsumer"]);
    } else {
        mode.required(errors, "");
    }
    let terms = class.field("allowedTopologies");
    let mut earlier_terms = Taken::default();
    for term in terms.items() {
        let expressions = term.field("matchLabelExpressions");
        let mut earlier_keys = Taken::default();
        for expression in expressions.items() {
            let (key, values) = (expression.field("key"), expression.field("values"));
            if values.is_empty() {
                values.required(errors, "");
            }
            let mut earlier = Taken::default();
            for value in values.items() {
                if !earlier.add(value.value()) {
                    value.duplicate(errors);
                }
            }
            errors.extend(name::label_key(key.path(), key.text()));
            if !earlier_keys.add(key.text()) {
                key.duplicate(errors);
            }
        }
        // Kubernetes: a term that says nothing is taken for one that was there before.
        let is_new = earlier_terms.add(term.value());
        if expressions.is_empty() || !is_new {
            errors.push(Error::duplicate(expressions.path(), ""));
        }
    }
}

pub(super) fn class_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        new.field(field).immutable(errors, &old.field(field));
    }
}

fn provisioner(at: &At<'_, '_>, errors: &mut ErrorList) {
    if at.text().is_empty() {
        at.required(errors, "");
    } else {
        errors.extend(Format::QualifiedName.check(at.path(), &at.text().to_lowercase()));
    }
}

fn parameters(at: &At<'_, '_>, errors: &mut ErrorList) {
    let count = at.entries().count();
    if count > MAX_PARAMETERS {
        errors.push(Error::too_long(at.path(), MAX_PARAMETERS));
        return;
    }
    let mut bytes = 0;
    for (key, value) in at.entries() {
        if key.is_empty() {
            at.invalid_as(errors, key, "field can not be empty.");
        }
        bytes += key.len() + value.text().len();
    }
    if bytes > MAX_PARAMETER_BYTES {
        errors.push(Error::too_long(at.path(), MAX_PARAMETER_BYTES));
    }
}

pub(super) fn attributes_class(class: &At<'_, '_>, errors: &mut ErrorList) {
    provisioner(&class.field("driverName"), errors);
    parameters(&class.field("parameters"), errors);
    if class.field("parameters").is_empty() {
        class.field("parameters").required(errors, "must contain at least one key/value pair");
    }
}

pub(super) fn attributes_class_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["driverName", "parameters"] {
        if !new.field(field).is_same(&old.field(field)) {
            new.field(field).forbidden(errors, format!("updates to {field} are forbidden."));
        }
    }
}

pub(super) fn attachment(attachment: &At<'_, '_>, errors: &mut ErrorList) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let spec = attachment.field("spec");
    volume_source::csi_driver_name(&spec.field("attacher"), errors);
    let source = spec.field("source");
    let (inline, volume) = (source.field("inlineVolumeSpec"), source.field("persistentVolumeName"));
    match (inline.is_set(), volume.is_set()) {
        (false, false) => source.required(errors, ONE),
        (true, true) => source.forbidden(errors, ONE),
        (false, true) if volume.text().is_empty() => {
            volume.required(errors, "must specify non empty persistentVolumeName");
        }
        (false, true) => {}
        (true, false) => persistent_volume::inline(&inline, errors),
    }
    spec.field("nodeName").is_format(errors, Format::Dns1123Subdomain);
    if volume.is_set() {
        volume.is_format(errors, Format::Dns1123Subdomain);
    }
}

pub(super) fn attachment_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = new.field("spec");
    if !spec.is_same(&old.field("spec")) {
        let shown = internal::shown("io.k8s.api.storage.v1.VolumeAttachmentSpec", spec.value());
        spec.invalid_as(errors, shown, IMMUTABLE);
    }
}

/// What a driver said of a node stays, but for how much fits there.
pub(super) fn node_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn node(node: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn driver(driver: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = driver.field("spec");
    // Kubernetes: the first name is not quite that of the field.
    for (field, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(field) {
            spec.field(shown).required(errors, "");
        }
    }
    spec.field("fsGroupPolicy").optional_one_of(errors, &["File", "None", "ReadWriteOnceWithFSType"]);
    let requests = spec.field("tokenRequests");
    let mut taken = Taken::default();
    for request in requests.items() {
        let audience = request.field("audience");
        if !taken.add(audience.text()) {
            errors.push(Error::duplicate(audience.path(), audience.text()));
            continue;
        }
        let expiration = request.field("expirationSeconds");
        if expiration.is_set() && expiration.int() < 600 {
            expiration.invalid_int(errors, "may not specify a duration less than 10 minutes");
        }
        if expiration.int() > 1 << 32 {
            expiration.invalid_int(errors, "may not specify a duration larger than 2^32 seconds");
        }
    }
    let modes = spec.field("volumeLifecycleModes");
    for mode in modes.items().filter(|mode| !matches!(mode.text(), "Persistent" | "Ephemeral")) {
        errors.push(Error::not_supported(modes.path(), mode.text(), ["Persistent", "Ephemeral"]));
    }
    let period = spec.field("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < 10 {
        period.invalid_int(errors, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.field("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && requests.is_empty() {
        in_secrets.invalid(errors, "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
}

pub(super) fn driver_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let attach = spec.field("attachRequired");
    At::new(attach.value(), Path::new("spec.attachedRequired"))
        .immutable(errors, &old_spec.field("attachRequired"));
    spec.field("volumeLifecycleModes").immutable(errors, &old_spec.field("volumeLifecycleModes"));
}

pub(super) fn capacity(capacity: &At<'_, '_>, errors: &mut ErrorList) {
    selector::check(&capacity.field("nodeTopology"), errors);
    capacity.field("storageClassName").is_format(errors, Format::Dns1123Subdomain);
    let amount = capacity.field("capacity");
    if amount.quantity().is_some_and(|amount| amount.is_negative()) {
        amount.invalid_text(errors, "must be greater than or equal to 0");
    }
}

pub(super) fn capacity_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    selector::immutable(&new.field("nodeTopology"), &old.field("nodeTopology"), errors);
    new.field("storageClassName").immutable(errors, &old.field("storageClassName"));
}
