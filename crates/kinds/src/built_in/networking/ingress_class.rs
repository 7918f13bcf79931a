//! IngressClass: which controller serves an ingress.

use api::field::{Error, ErrorList};
use api::name::{self, Format};
use api::object;
use serde_json::Value;

use super::GROUP;
use super::ingress::check_typed_reference;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, text};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

const MAX_CONTROLLER_BYTES: usize = 250;

pub(crate) static INGRESS_CLASS: BuiltIn = BuiltIn::new(GROUP, "IngressClass", "ingressclasses")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.counts_generation_of(SPEC))
    .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare_first(check_change)))
    .defaults(&[TypeDefaults::of("networking.v1.IngressClassParametersReference")
        .values(&[("scope", DefaultValue::Text("Cluster"))])])
    .columns(&[
        NAME.showing(Cell::Computed(|it| name_of(it).into())),
        string("Controller", Cell::Text("/spec/controller")),
        string("Parameters", Cell::Computed(|it| parameters(it.at("/spec/parameters")).into())),
        AGE,
    ]);

fn check(class: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = class.field("spec");
    let controller = spec.field("controller");
    if controller.text().len() > MAX_CONTROLLER_BYTES {
        errors.push(Error::too_long(controller.path(), MAX_CONTROLLER_BYTES));
    }
    errors.extend(name::domain_prefixed_path(controller.path(), controller.text()));
    let parameters = spec.field("parameters");
    if !parameters.is_set() {
        return;
    }
    check_typed_reference(&parameters, errors);
    let (scope, namespace) = (parameters.field("scope"), parameters.field("namespace"));
    match scope.text() {
        "" if !scope.is_set() => scope.required(errors, ""),
        "Namespace" if !namespace.is_set() => {
            namespace.required(errors, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => namespace.is_format(errors, Format::Dns1123Label),
        "Cluster" if namespace.is_set() => {
            namespace.forbidden(errors, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        _ => scope.unsupported(errors, &["Cluster", "Namespace"]),
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("spec").field("controller").immutable(errors, &old.field("spec").field("controller"));
}

fn name_of(class: &Row<'_>) -> String {
    let mark = object::annotation(class.object, "ingressclass.kubernetes.io/is-default-class");
    format!("{}{}", class.name(), if mark == Some("true") { " (default)" } else { "" })
}

fn parameters(reference: &Value) -> String {
    let (kind, name) = (text(&reference["kind"]), text(&reference["name"]));
    match reference["apiGroup"].as_str() {
        _ if reference.is_null() => NONE.to_owned(),
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
