//! RuntimeClass: what runs the containers of a pod.

use api::field::{Error, ErrorList};
use api::name::{Format, NameRule};
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::pod::validate as pod;
use crate::built_in::core::pod::warnings::deprecated_label;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};
use crate::validate::{internal, metadata};

pub(crate) static RUNTIME_CLASS: BuiltIn = BuiltIn::new(GROUP, "RuntimeClass", "runtimeclasses")
    .older_versions(&["v1alpha1", "v1beta1"])
    .strategy(Strategy::PLAIN.allow_create_on_update().requires_resource_version())
    .validation(
        Validation::new(check)
            .update(UpdateChecks::AS_NEW.compare(check_change))
            .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
    )
    .warnings(warn)
    .columns(&[NAME, string("Handler", Cell::Text("/handler")), AGE]);

fn check(class: &At<'_, '_>, errors: &mut ErrorList) {
    class.field("handler").required_format(errors, Format::Dns1123Label);
    let overhead = class.field("overhead");
    let fixed = overhead.field("podFixed");
    pod::overhead(&At::new(fixed.value(), *overhead.path()), errors);
    let scheduling = class.field("scheduling");
    metadata::labels(&scheduling.field("nodeSelector"), errors);
    let tolerations = scheduling.field("tolerations");
    pod::tolerations(&tolerations, errors);
    let mut taken = Taken::default();
    for toleration in tolerations.items() {
        if !taken.add(toleration.value()) {
            let shown = internal::shown_core("Toleration", &toleration);
            errors.push(Error::duplicate(toleration.path(), shown));
        }
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("handler").immutable(errors, &old.field("handler"));
}

fn warn(class: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    let scheduling = class.field("scheduling");
    let selector = scheduling.field("nodeSelector");
    let problems = selector.entries().filter_map(|(key, _)| deprecated_label(key));
    warnings.extend(problems.map(|problem| format!("{}: {problem}", selector.path())));
}
