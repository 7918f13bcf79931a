//! What kinds with a template of pods share: columns, labels, and warnings about the template.

use api::field::Path;
use api::name::Format;
use serde_json::Value;

use crate::built_in::core::pod::warnings as pod_warnings;
use crate::cells::column::{Cell, TableColumn, string};
use crate::cells::row::joined;
use crate::cells::selector::label_selector_or_none;
use crate::defaults::member::{self, Members};
use crate::validate::at::At;

pub(crate) const ROLLING_UPDATE: &str = "RollingUpdate";

pub(crate) const CONTAINERS: TableColumn =
    string("Containers", Cell::Computed(|it| joined(it.at("/spec/template/spec/containers"), "name").into()))
        .wide();
pub(crate) const IMAGES: TableColumn =
    string("Images", Cell::Computed(|it| joined(it.at("/spec/template/spec/containers"), "image").into()))
        .wide();
pub(crate) const SELECTOR: TableColumn =
    string("Selector", Cell::Computed(|it| label_selector_or_none(it.at("/spec/selector")).into())).wide();

pub(crate) fn label_like_template(object: &mut Members) {
    if let Some(labels) = template_labels(object) {
        member::default_to(member::made(object, "metadata"), "labels", labels);
    }
}

pub(crate) fn template_labels(object: &Members) -> Option<Members> {
    let template = member::object(member::object(object, "spec")?, "template")?;
    member::object(member::object(template, "metadata")?, "labels")
        .filter(|labels| !labels.is_empty())
        .cloned()
}

pub(crate) fn warn_of_name_and_template(
    object: &At<'_, '_>,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) {
    if old.is_none() {
        warn_of_name(object, "Pod names and hostnames", warnings);
    }
    if is_new_generation(object, old) {
        pod_warnings::check(&template_at_spec(object), warnings);
    }
}

pub(crate) fn warn_of_name(object: &At<'_, '_>, used_in: &str, warnings: &mut Vec<String>) {
    let problems = Format::Dns1123Label.problems(api::object::name(object.value()));
    if !problems.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            problems.join(" ")
        ));
    }
}

pub(crate) fn is_new_generation(new: &At<'_, '_>, old: Option<&Value>) -> bool {
    old.is_none_or(|old| api::object::generation(new.value()) != api::object::generation(old))
}

pub(crate) fn template_at_spec<'v>(object: &At<'v, '_>) -> At<'v, 'static> {
    let template = object.value().pointer("/spec/template").unwrap_or(&Value::Null);
    At::new(template, Path::new("spec.template"))
}
