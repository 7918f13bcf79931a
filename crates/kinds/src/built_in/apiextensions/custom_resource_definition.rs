//! CustomResourceDefinition: a kind that the cluster adds.

pub(crate) mod validate;

use api::go;
use api::name::NameRule;
use serde_json::{Value, json};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};
use validate::unrecognized_formats;

pub(crate) static CUSTOM_RESOURCE_DEFINITION: BuiltIn =
    BuiltIn::new(GROUP, "CustomResourceDefinition", "customresourcedefinitions")
        .older_versions(&["v1beta1"])
        .strategy(
            Strategy::PLAIN
                .requires_resource_version()
                .counts_generation_of(SPEC)
                .status()
                .on_create(|definition, _| remember_stored_version(definition))
                .on_update(|definition, _, _| remember_stored_version(definition)),
        )
        .validation(
            Validation::new(validate::check)
                .update(UpdateChecks::CHANGE.compare(validate::check_change))
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain))
                .subresources(&[("status", validate::check_status)]),
        )
        .warnings(warn)
        .defaults(&[
            TypeDefaults::of(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            )
            .rule(default_names_and_stored_version),
            TypeDefaults::of(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
            )
            .values(&[("conversion", DefaultValue::Computed(|| json!({"strategy": "None"})))]),
            TypeDefaults::of("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference")
                .values(&[("port", DefaultValue::Number(443))]),
        ]);

/// A definition remembers every version in which its objects have been stored.
fn remember_stored_version(definition: &mut Members) {
    let spec = definition.get("spec").and_then(Value::as_object);
    let stored = spec.and_then(|spec| member::items(spec, "versions").find(|it| member::flag(it, "storage")));
    let Some(name) = stored.map(|version| json!(member::text(version, "name"))) else { return };
    let known = member::list(member::made(definition, "status"), "storedVersions");
    if !known.contains(&name) {
        known.push(name);
    }
}

/// The names that follow from the kind of the custom resource, and the version in which it is stored.
fn default_names_and_stored_version(definition: &mut Members) {
    let spec = member::made(definition, "spec");
    let names = member::made(spec, "names");
    let kind = member::text(names, "kind").to_owned();
    if !kind.is_empty() {
        member::default_to(names, "singular", kind.to_lowercase());
        member::default_to(names, "listKind", format!("{kind}List"));
    } else if names.is_empty() {
        spec.remove("names");
    }
    let stored = member::items(spec, "versions").find(|version| member::flag(version, "storage"));
    let stored = stored.map(|version| member::text(version, "name").to_owned());
    let status = member::made(definition, "status");
    match stored {
        Some(stored) => member::default_to(status, "storedVersions", vec![stored]),
        None if status.is_empty() => {
            definition.remove("status");
        }
        None => {}
    }
}

/// Formats that nothing checks, but for those that were there before.
fn warn(new: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let known = old.map(|old| unrecognized_formats(&old["spec"])).unwrap_or_default();
    let formats =
        unrecognized_formats(&new.value()["spec"]).into_iter().filter(|format| !known.contains(format));
    warnings.extend(formats.map(|format| format!("unrecognized format {}", go::quote(&format))));
}
