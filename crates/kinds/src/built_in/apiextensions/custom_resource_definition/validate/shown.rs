//! Parts of a definition as Kubernetes prints them when it refuses them: Go's names, and every field.

use api::field::BadValue;
use api::go;
use serde_json::Value;

use super::hoisted::Layout;
use crate::validate::at::At;

/// How Go keeps a field.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// Whatever stands there, or `null`.
    Pointer,
    List,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrList,
    SchemaOrFlag,
    SchemaOrTexts,
    Rules,
    Documents,
}

/// The fields of a schema in Go's order: Go's name, the JSON name, the form.
const SCHEMA: [(&str, &str, Form); 44] = [
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Pointer),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Pointer),
    ("Maximum", "maximum", Form::Pointer),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Pointer),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Pointer),
    ("MinLength", "minLength", Form::Pointer),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Pointer),
    ("MinItems", "minItems", Form::Pointer),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Pointer),
    ("Enum", "enum", Form::List),
    ("MaxProperties", "maxProperties", Form::Pointer),
    ("MinProperties", "minProperties", Form::Pointer),
    ("Required", "required", Form::List),
    ("Items", "items", Form::SchemaOrList),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Form::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Form::SchemaMap),
    ("Dependencies", "dependencies", Form::SchemaOrTexts),
    ("AdditionalItems", "additionalItems", Form::SchemaOrFlag),
    ("Definitions", "definitions", Form::SchemaMap),
    ("ExternalDocs", "externalDocs", Form::Documents),
    ("Example", "example", Form::Pointer),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Pointer),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::List),
    ("XListType", "x-kubernetes-list-type", Form::Pointer),
    ("XMapType", "x-kubernetes-map-type", Form::Pointer),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];
const RULE: [(&str, &str, Form); 6] = [
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Pointer),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Pointer),
];
const DOCUMENTS: [(&str, &str, Form); 2] =
    [("Description", "description", Form::Text), ("URL", "url", Form::Text)];
const COLUMN: [(&str, &str, Form); 6] = [
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Pointer),
    ("JSONPath", "jsonPath", Form::Text),
];
const SCALE: [(&str, &str, Form); 3] = [
    ("SpecReplicasPath", "specReplicasPath", Form::Text),
    ("StatusReplicasPath", "statusReplicasPath", Form::Text),
    ("LabelSelectorPath", "labelSelectorPath", Form::Pointer),
];

type Fields = [(&'static str, &'static str, Form)];

/// Go's names of the fields that a schema has set.
pub(super) fn fields_of_schema(schema: &Value) -> impl Iterator<Item = &'static str> {
    SCHEMA.iter().filter(|(_, name, form)| is_set(schema.get(name), *form)).map(|(go, _, _)| *go)
}

fn is_set(value: Option<&Value>, form: Form) -> bool {
    match (value, form) {
        (None | Some(Value::Null | Value::Bool(false)), Form::Flag | Form::Text) => false,
        (Some(Value::String(text)), Form::Text) => !text.is_empty(),
        (Some(Value::Array(items)), Form::List | Form::Schemas | Form::Rules) => !items.is_empty(),
        (Some(Value::Object(members)), Form::SchemaMap | Form::SchemaOrTexts) => !members.is_empty(),
        (value, _) => value.is_some_and(|value| !value.is_null()),
    }
}

pub(super) fn schema(schema: &Value) -> BadValue {
    BadValue::verbatim(text_of(&SCHEMA, schema))
}

pub(super) fn items(items: &Value) -> BadValue {
    BadValue::verbatim(field(Some(items), Form::SchemaOrList))
}

/// What versions share does not appear in them.
pub(super) fn versions(versions: &At<'_, '_>, layout: &Layout<'_>) -> BadValue {
    if !versions.is_set() {
        return BadValue::verbatim("null");
    }
    let texts: Vec<_> = versions.list().iter().map(|it| version(it, layout)).collect();
    BadValue::verbatim(format!("[{}]", texts.join(",")))
}

fn version(version: &Value, layout: &Layout<'_>) -> String {
    let text = |name: &str, form| field(version.get(name), form);
    let schema = match layout.schema.of_version(version) {
        Value::Null => "null".to_owned(),
        it => format!("{{\"OpenAPIV3Schema\":{}}}", field(it.get("openAPIV3Schema"), Form::Schema)),
    };
    let subresources = match layout.subresources.of_version(version) {
        Value::Null => "null".to_owned(),
        it => format!("{{\"Status\":{},\"Scale\":{}}}", status(it.get("status")), scale(it.get("scale"))),
    };
    let columns = list(layout.columns.of_version(version), |it| text_of(&COLUMN, it).replace(":null", ":0"));
    let selectable = layout.selectable.of_version(version);
    let selectable = list(selectable, |it| text_of(&[("JSONPath", "jsonPath", Form::Text)], it));
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{schema},\
         \"Subresources\":{subresources},\"AdditionalPrinterColumns\":{columns},\"SelectableFields\":{selectable}}}",
        text("name", Form::Text),
        text("served", Form::Flag),
        text("storage", Form::Flag),
        text("deprecated", Form::Flag),
        text("deprecationWarning", Form::Pointer),
    )
}

fn status(status: Option<&Value>) -> &'static str {
    if status.is_some_and(|it| !it.is_null()) { "{}" } else { "null" }
}

fn scale(scale: Option<&Value>) -> String {
    scale.filter(|it| !it.is_null()).map_or_else(|| "null".to_owned(), |it| text_of(&SCALE, it))
}

fn text_of(fields: &Fields, value: &Value) -> String {
    let texts = fields.iter().map(|(go, name, form)| format!("\"{go}\":{}", field(value.get(name), *form)));
    format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
}

fn field(value: Option<&Value>, form: Form) -> String {
    let null = || "null".to_owned();
    let value = value.filter(|value| !value.is_null());
    match (form, value) {
        (Form::Text, value) => json(value.unwrap_or(&Value::from(""))),
        (Form::Flag, value) => json(value.unwrap_or(&Value::Bool(false))),
        (_, None) => null(),
        (Form::Pointer | Form::List, Some(value)) => json(value),
        (Form::Schema, Some(value)) => text_of(&SCHEMA, value),
        (Form::Schemas, Some(value)) => list(value, |it| text_of(&SCHEMA, it)),
        (Form::SchemaMap, Some(value)) => map(value, |it| text_of(&SCHEMA, it)),
        (Form::SchemaOrList, Some(Value::Array(items))) => {
            let schemas: Vec<_> = items.iter().map(|it| text_of(&SCHEMA, it)).collect();
            format!("{{\"Schema\":null,\"JSONSchemas\":[{}]}}", schemas.join(","))
        }
        (Form::SchemaOrList, Some(value)) => {
            format!("{{\"Schema\":{},\"JSONSchemas\":null}}", text_of(&SCHEMA, value))
        }
        (Form::SchemaOrFlag, Some(Value::Bool(allows))) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        (Form::SchemaOrFlag, Some(value)) => {
            format!("{{\"Allows\":true,\"Schema\":{}}}", text_of(&SCHEMA, value))
        }
        (Form::SchemaOrTexts, Some(value)) => map(value, |it| match it {
            Value::Array(_) => format!("{{\"Schema\":null,\"Property\":{}}}", json(it)),
            _ => format!("{{\"Schema\":{},\"Property\":null}}", text_of(&SCHEMA, it)),
        }),
        (Form::Rules, Some(value)) => list(value, |it| text_of(&RULE, it)),
        (Form::Documents, Some(value)) => text_of(&DOCUMENTS, value),
    }
}

fn list(value: &Value, text: impl Fn(&Value) -> String) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        _ => "null".to_owned(),
    }
}

fn map(value: &Value, text: impl Fn(&Value) -> String) -> String {
    let members = value.as_object().into_iter().flatten();
    let texts = members.map(|(key, value)| format!("{}:{}", json(&key.as_str().into()), text(value)));
    format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
}

fn json(value: &Value) -> String {
    go::json(value).unwrap_or_default()
}
