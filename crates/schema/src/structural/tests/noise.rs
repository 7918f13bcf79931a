//! Random schemas and objects cause no panic.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Structural, Through};
use crate::structural::cells::Columns;
use crate::structural::json_path::JsonPath;
use crate::structural::{Change, ScalePaths};

const KEYS: &[&str] = &[
    "type",
    "properties",
    "items",
    "additionalProperties",
    "required",
    "enum",
    "default",
    "nullable",
    "format",
    "pattern",
    "minimum",
    "maxLength",
    "minItems",
    "multipleOf",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "uniqueItems",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
    "rule",
    "fieldPath",
    "messageExpression",
    "metadata",
    "kind",
    "apiVersion",
    "spec",
    "status",
    "name",
    "a",
    "b",
];
const WORDS: &[&str] = &[
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "set",
    "map",
    "atomic",
    "date-time",
    "byte",
    "(",
    "a",
    "self.a == oldSelf.a",
    "self.all(x, x > 1)",
    "self",
    ".a['b']",
    "",
    "2024-01-01T00:00:00Z",
];

fn noise() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..20_i64).prop_map(Value::from),
        Just(json!(0.1)),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(KEYS), inner, 0..6).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn random_schemas_and_objects_cause_no_panic(
        (schema, mut object, old) in (noise(), noise(), noise()),
        path in "[.a\\[\\]'?(@=)0-9:*,]{0,12}",
    ) {
        let schema = Structural::compile(&schema);
        let (_, of) = schema.types("g", "v1", "K");
        prop_assert!(of.0 > 0);
        let read = schema.coerce(&mut object);
        if read.is_ok() {
            prop_assert_eq!(schema.coerce(&mut object), Ok(Vec::new()), "what was pruned stays pruned");
        }
        schema.default(&mut object);
        let defaulted = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(&object, &defaulted);
        for through in [Through::Object, Through::Status] {
            let scale = ScalePaths { spec_replicas: path.clone(), ..ScalePaths::default() };
            let change = Change { new: &object, old: Some(&old), through, scale: Some(&scale) };
            schema.check(&change, &mut super::ErrorList::new());
        }
        let _ = schema.validate(&object, None);
        let _ = schema.check_rules("p", true, &|_| true);
        if let Ok(path) = JsonPath::parse(&path) {
            let _ = path.find(&object);
        }
        let columns = Columns::compile(&[json!({"name": "n", "type": "date", "jsonPath": path})]);
        let _ = columns.cells(&object, &|_| String::new());
        schema.adopt(&mut object);
    }
}
