//! Namespace: it is labelled with its name, and held until it is empty.

use api::field::ErrorList;
use api::meta::check_kube_finalizers;
use api::name::{Format, NameRule};
use serde_json::json;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::subresource::SubresourceRules;
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::At;
use crate::validate::validation::Validation;

const HOLD: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const NEITHER: &str = "name is neither a standard finalizer name nor is it fully qualified";

pub(crate) static NAMESPACE: BuiltIn = BuiltIn::new(GROUP, "Namespace", "namespaces")
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .named(NameRule::DnsLabel)
            .status()
            .on_create(prepare_create)
            .on_update(prepare_update)
            .subresources(&[SubresourceRules::writes_all_but("finalize", prepare_finalize, &[&["status"]])]),
    )
    .validation(
        Validation::new(check)
            .named(NameRule::DnsLabel)
            .subresources(&[("status", check_status), ("finalize", check_finalize)]),
    )
    .defaults(&[
        TypeDefaults::of("core.v1.Namespace").rule(default_name_label),
        TypeDefaults::of("core.v1.NamespaceStatus").values(&[("phase", DefaultValue::Text("Active"))]),
    ])
    .columns(&[NAME, string("Status", Cell::Text("/status/phase")), AGE])
    .selectable(Selectable::new(&[SelectableField::NAME, SelectableField::text("status.phase")]));

fn prepare_create(namespace: &mut Members, _: &Circumstances<'_>) {
    namespace.insert("status".to_owned(), json!({"phase": "Active"}));
    let finalizers = member::list(member::made(namespace, "spec"), "finalizers");
    if !finalizers.contains(&json!(HOLD)) {
        finalizers.push(HOLD.into());
    }
    label(namespace);
}

/// Finalizers are written through `finalize` only.
fn prepare_update(namespace: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let finalizers = old.get("spec").and_then(|spec| spec.get("finalizers")).cloned();
    match finalizers {
        Some(finalizers) => drop(member::made(namespace, "spec").insert("finalizers".to_owned(), finalizers)),
        None => drop(namespace.remove("spec")),
    }
    label(namespace);
}

fn prepare_finalize(namespace: &mut Members, old: &Members, _: &Circumstances<'_>) {
    match old.get("status") {
        Some(status) => drop(namespace.insert("status".to_owned(), status.clone())),
        None => drop(namespace.remove("status")),
    }
}

fn label(namespace: &mut Members) {
    let metadata = member::made(namespace, "metadata");
    if let Some(name) = metadata.get("name").filter(|name| name.as_str() != Some("")).cloned() {
        member::made(metadata, "labels").insert(NAME_LABEL.to_owned(), name);
    }
}

fn check(namespace: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = namespace.field("spec");
    let finalizers = spec.field("finalizers");
    for finalizer in finalizers.items() {
        errors.extend(Format::QualifiedName.check(finalizers.path(), finalizer.text()));
        let is_bare = !check_kube_finalizers(finalizers.path(), &[finalizer.text().to_owned()]).is_empty();
        if is_bare {
            finalizers.invalid_as(errors, finalizer.text(), NEITHER);
        }
    }
}

fn check_finalize(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = new.field("spec");
    let finalizers = spec.field("finalizers");
    for finalizer in finalizers.items() {
        finalizer.is_format(errors, Format::QualifiedName);
        let bare = check_kube_finalizers(finalizers.path(), &[finalizer.text().to_owned()]);
        if !bare.is_empty() {
            finalizer.invalid_text(errors, NEITHER);
        }
    }
}

fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let is_deleting = new.field("metadata").has("deletionTimestamp");
    let (expected, problem) = if is_deleting {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let status = new.field("status");
    if status.text_of("phase") != expected {
        status.field("Phase").invalid_as(errors, status.text_of("phase"), problem);
    }
}

/// A namespace whose name is yet to be generated is labelled later.
fn default_name_label(namespace: &mut Members) {
    let metadata = member::made(namespace, "metadata");
    let name = member::text(metadata, "name").to_owned();
    if !name.is_empty() {
        member::made(metadata, "labels").insert(NAME_LABEL.to_owned(), name.into());
    } else if metadata.is_empty() {
        namespace.remove("metadata");
    }
}
