//! IPAddress: an address in use, and the object that it belongs to.

use api::field::ErrorList;
use api::name::{self, Format, NameRule};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, text};
use crate::strategy::Strategy;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static IP_ADDRESS: BuiltIn = BuiltIn::new(GROUP, "IPAddress", "ipaddresses")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.named(NameRule::PathSegment))
    .validation(
        Validation::new(check)
            .update(UpdateChecks::AS_NEW.compare(check_change))
            .named(NameRule::PathSegment),
    )
    .columns(&[
        NAME,
        string("ParentRef", Cell::Computed(|it| parent(it).into())),
        // Kubernetes: rows have this cell although no header announces it.
        AGE.without_header(),
    ]);

fn check(address: &At<'_, '_>, errors: &mut ErrorList) {
    let metadata = address.field("metadata");
    let name = metadata.field("name");
    if !name.text().is_empty() {
        errors.extend(name::ip(name.path(), name.text()));
    }
    let spec = address.field("spec");
    let parent = spec.field("parentRef");
    if !parent.is_set() {
        parent.required(errors, "");
        return;
    }
    if !parent.text_of("group").is_empty() {
        parent.field("group").is_format(errors, Format::Dns1123Subdomain);
    }
    parent.field("resource").required_format(errors, Format::PathSegment);
    parent.field("name").required_format(errors, Format::PathSegment);
    if !parent.text_of("namespace").is_empty() {
        parent.field("namespace").is_format(errors, Format::PathSegment);
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let parent = spec.field("parentRef");
    if parent.value() != old_spec.field("parentRef").value() {
        let shown = internal::shown("io.k8s.api.networking.v1.ParentReference", parent.value());
        parent.invalid_as(errors, shown, IMMUTABLE);
    }
}

fn parent(address: &Row<'_>) -> String {
    let parent = address.at("/spec/parentRef");
    if parent.is_null() {
        return NONE.to_owned();
    }
    let resource = match (text(&parent["resource"]), text(&parent["group"])) {
        (resource, "") => resource.to_lowercase(),
        (resource, group) => format!("{resource}.{group}").to_lowercase(),
    };
    match (text(&parent["namespace"]), text(&parent["name"])) {
        ("", name) => format!("{resource}/{name}"),
        (namespace, name) => format!("{resource}/{namespace}/{name}"),
    }
}
