//! StorageClass: how volumes for claims are provisioned.

use api::field::{Error, ErrorList};
use api::name::{self, Format};
use api::object;
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::pod::warnings::deprecated_label;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::Row;
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 << 10;

pub(crate) static STORAGE_CLASS: BuiltIn = BuiltIn::new(GROUP, "StorageClass", "storageclasses")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.return_deleted_object())
    .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare(check_change)))
    .warnings(warn)
    .defaults(&[TypeDefaults::of("storage.v1.StorageClass").values(&[
        ("reclaimPolicy", DefaultValue::Text("Delete")),
        ("volumeBindingMode", DefaultValue::Text("Immediate")),
    ])])
    .columns(&[
        NAME.showing(Cell::Computed(|it| name_of(it).into())),
        string("Provisioner", Cell::Text("/provisioner")),
        string("ReclaimPolicy", Cell::TextOr("/reclaimPolicy", "Delete")),
        string("VolumeBindingMode", Cell::TextOr("/volumeBindingMode", "Immediate")),
        string("AllowVolumeExpansion", Cell::Flag("/allowVolumeExpansion")),
        AGE,
    ]);

fn check(class: &At<'_, '_>, errors: &mut ErrorList) {
    check_provisioner(&class.field("provisioner"), errors);
    check_parameters(&class.field("parameters"), errors);
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

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        new.field(field).immutable(errors, &old.field(field));
    }
}

pub(crate) fn check_provisioner(at: &At<'_, '_>, errors: &mut ErrorList) {
    if at.text().is_empty() {
        at.required(errors, "");
    } else {
        errors.extend(Format::QualifiedName.check(at.path(), &at.text().to_lowercase()));
    }
}

pub(crate) fn check_parameters(at: &At<'_, '_>, errors: &mut ErrorList) {
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

fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    for term in object.field("allowedTopologies").items() {
        for expression in term.field("matchLabelExpressions").items() {
            let key = expression.field("key");
            let problem = deprecated_label(key.text());
            warnings.extend(problem.map(|problem| format!("{}: {problem}", key.path())));
        }
    }
}

fn name_of(class: &Row<'_>) -> String {
    let marks = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"];
    let is_default = marks
        .iter()
        .any(|mark| object::annotation(class.object, &format!("{mark}/is-default-class")) == Some("true"));
    format!("{}{}", class.name(), if is_default { " (default)" } else { "" })
}
