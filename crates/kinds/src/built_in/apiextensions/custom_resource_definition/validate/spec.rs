//! The spec of a definition as a whole.

use api::field::{Error, ErrorList};
use api::name::Format;
use serde_json::Value;

use super::hoisted::Layout;
use super::leniency::Leniency;
use super::version::{check_columns, check_readable, check_selectable, check_subresources, check_version};
use super::{conversion, names, schema, shown, walk};
use crate::validate::at::At;
use crate::validate::taken::Taken;

pub(super) fn check(spec: &At<'_, '_>, leniency: &Leniency<'_>, errors: &mut ErrorList) {
    let layout = Layout::of(spec);
    check_group(&spec.field("group"), errors);
    spec.field("scope").required_one_of(errors, &["Cluster", "Namespaced"]);
    check_schemas_exist(spec, &layout, leniency, errors);
    let schemas = schemas(spec);
    let preserves = spec.flag_of("preserveUnknownFields");
    if preserves && schemas.iter().any(|schema| walk::has_default(schema)) {
        let problem = "must be false in order to use defaults in the schema";
        spec.field("preserveUnknownFields").invalid_as(errors, true, problem);
    }
    let must_be_structural = !preserves
        || !leniency.non_structural
        || schemas.iter().any(|it| walk::has_default(it) || walk::has_extension(it));
    let asks = schema::Asks { must_be_structural, leniency };
    check_versions(spec, &layout, &asks, errors);
    names::check_required(&spec.field("names"), errors);
    names::check(&spec.field("names"), errors);
    check_top(spec, &layout, &asks, errors);
    let conversion = spec.field("conversion");
    let strategy = conversion.field("strategy");
    if conversion.is_set() && strategy.text() != "None" && preserves {
        strategy.invalid_text(errors, "must be None if spec.preserveUnknownFields is true");
    }
    conversion::check(&conversion, leniency, errors);
}

fn check_group(group: &At<'_, '_>, errors: &mut ErrorList) {
    let problems = Format::Dns1123Subdomain.problems(group.text());
    if group.text().is_empty() {
        group.required(errors, "");
    } else if !problems.is_empty() {
        group.invalid_text(errors, problems.join(","));
    } else if !group.text().contains('.') {
        group.invalid_text(errors, "should be a domain with at least one dot");
    }
}

fn schemas<'v>(spec: &At<'v, '_>) -> Vec<&'v Value> {
    let versions = spec.value().get("versions").and_then(Value::as_array).into_iter().flatten();
    versions
        .filter_map(|version| version.pointer("/schema/openAPIV3Schema"))
        .filter(|it| !it.is_null())
        .collect()
}

fn check_schemas_exist(
    spec: &At<'_, '_>,
    layout: &Layout<'_>,
    leniency: &Leniency<'_>,
    errors: &mut ErrorList,
) {
    let has_schema = |schema: &Value| schema.get("openAPIV3Schema").is_some_and(|it| !it.is_null());
    if has_schema(layout.schema.top()) {
        return;
    }
    let versions = spec.field("versions");
    for version in versions.items().filter(|it| !has_schema(layout.schema.of_version(it.value()))) {
        let schema = version.field("schema");
        let schema = schema.field("openAPIV3Schema");
        if !leniency.no_schema {
            schema.required(errors, "");
        } else if !spec.flag_of("preserveUnknownFields") && version.flag_of("served") {
            schema.required(errors, "because otherwise all fields are pruned");
        }
    }
}

fn check_versions(
    spec: &At<'_, '_>,
    layout: &Layout<'_>,
    asks: &schema::Asks<'_, '_>,
    errors: &mut ErrorList,
) {
    let versions = spec.field("versions");
    let mut names = Vec::new();
    let (mut taken, mut is_unique) = (Taken::default(), true);
    for version in versions.items() {
        let name = version.field("name");
        is_unique &= taken.add(name.text());
        names.push(name.text());
        names::check_label(&name, errors);
        check_version(&version, layout, asks, errors);
    }
    if !is_unique {
        versions.invalid_as(errors, shown::versions(&versions, layout), "must contain unique version names");
    }
    let stored = versions.items().filter(|version| version.flag_of("storage")).count();
    if stored != 1 {
        let problem = "must have exactly one version marked as storage version";
        versions.invalid_as(errors, shown::versions(&versions, layout), problem);
    }
    // Kubernetes: the first version is also `spec.version`, which old clients know.
    if let Some(first) = names.first().filter(|name| !name.is_empty()) {
        let problems = Format::Dns1035Label.problems(first);
        if !problems.is_empty() {
            errors.push(Error::invalid(spec.field("version").path(), *first, problems.join(",")));
        }
    }
}

/// What all versions share.
fn check_top(spec: &At<'_, '_>, layout: &Layout<'_>, asks: &schema::Asks<'_, '_>, errors: &mut ErrorList) {
    let has_status = |version: &Value| layout.subresources.for_version(version).get("status").is_some();
    let versions = spec.field("versions");
    let any_status = versions.list().iter().any(has_status);
    let is_unchanged = versions.list().first().is_some_and(|first| asks.leniency.is_unchanged(first));
    let at = |value, field| At::new(value, spec.path().child(field));
    let validation = at(layout.schema.top(), "validation");
    schema::check(&validation, any_status, is_unchanged, asks, errors);
    check_subresources(&at(layout.subresources.top(), "subresources"), errors);
    check_columns(&at(layout.columns.top(), "additionalPrinterColumns"), errors);
    let selectable = at(layout.selectable.top(), "selectableFields");
    if !selectable.is_empty() {
        if validation.is_set() {
            let may_be_many =
                versions.list().first().is_some_and(|first| asks.leniency.many_selectable(first));
            check_readable(spec, &validation, errors);
            check_selectable(&selectable, &validation, may_be_many, errors);
        } else {
            selectable.invalid_as(errors, "", "may only be set when validations.schema is included");
        }
    }
}
