//! Reviews the subresources, columns and selectable fields of one version.

use super::{Findings, schema};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionVersion, CustomResourceSubresources,
};
use serde_json::Value;

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];

pub(super) fn review(path: &str, version: &CustomResourceDefinitionVersion, findings: &mut Findings) {
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let Some(schema) = schema else {
        return findings.refused(format!("{path}.schema"), "there is no schema");
    };
    let schema = serde_json::to_value(schema).expect("a schema has a JSON form");
    schema::review(&format!("{path}.schema.openAPIV3Schema"), &schema, findings);
    review_subresources(&format!("{path}.subresources"), version.subresources.as_ref(), &schema, findings);
    for (place, column) in version.additional_printer_columns.iter().flatten().enumerate() {
        review_column(&format!("{path}.additionalPrinterColumns[{place}]"), column, &schema, findings);
    }
    for (place, field) in version.selectable_fields.iter().flatten().enumerate() {
        let path = format!("{path}.selectableFields[{place}].jsonPath");
        match resolve(&schema, &field.json_path) {
            Some(found) if matches!(kind(found), "string" | "boolean" | "integer") => {}
            Some(_) => findings.refused(path, "must be a string, a boolean or an integer"),
            None => findings.refused(path, format!("{:?} is not in the schema", field.json_path)),
        }
    }
}

fn review_subresources(
    path: &str,
    subresources: Option<&CustomResourceSubresources>,
    schema: &Value,
    findings: &mut Findings,
) {
    let has_status = resolve(schema, ".status").is_some();
    match (subresources.is_some_and(|it| it.status.is_some()), has_status) {
        (false, _) => findings.hurts(
            format!("{path}.status"),
            "no status subresource: status and spec get in each other's way",
        ),
        (true, false) => findings.hurts(
            format!("{path}.status"),
            "there is no status in the schema: what is written there gets lost",
        ),
        (true, true) => {}
    }
    let Some(scale) = subresources.and_then(|it| it.scale.as_ref()) else { return };
    let places = [
        ("specReplicasPath", ".spec.", Some(&scale.spec_replicas_path)),
        ("statusReplicasPath", ".status.", Some(&scale.status_replicas_path)),
        ("labelSelectorPath", ".s", scale.label_selector_path.as_ref()),
    ];
    for (field, root, place) in places {
        let path = format!("{path}.scale.{field}");
        match place {
            Some(place) if !place.starts_with(root) => {
                findings.refused(path, format!("must start with {root:?}"))
            }
            Some(place) if resolve(schema, place).is_none() => {
                findings.hurts(path, format!("{place:?} is not in the schema"));
            }
            _ => {}
        }
    }
}

fn review_column(
    path: &str,
    column: &CustomResourceColumnDefinition,
    schema: &Value,
    findings: &mut Findings,
) {
    if !COLUMN_TYPES.contains(&column.type_.as_str()) {
        findings.refused(format!("{path}.type"), format!("must be one of {}", COLUMN_TYPES.join(", ")));
    }
    if !column.json_path.starts_with('.') {
        findings.refused(format!("{path}.jsonPath"), "must start with a dot");
    } else if resolve(schema, &column.json_path).is_none() {
        findings.hurts(format!("{path}.jsonPath"), format!("{:?} is not in the schema", column.json_path));
    }
}

/// The schema of the field at a path. Filters and wildcards are not checked.
fn resolve<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = schema;
    for field in path.trim_start_matches('.').split('.') {
        if field.contains(['[', '*', '\\', '?']) || here.get("x-kubernetes-preserve-unknown-fields").is_some()
        {
            return Some(here);
        }
        if here == schema && field == "metadata" {
            return Some(here);
        }
        here = match here.get("properties").and_then(|fields| fields.get(field)) {
            Some(next) => next,
            None => here.get("additionalProperties").filter(|values| values.is_object())?,
        };
    }
    Some(here)
}

fn kind(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}
