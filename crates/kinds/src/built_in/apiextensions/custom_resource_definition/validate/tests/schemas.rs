//! Schemas of definitions: structural ones, keywords, defaults and rules.

use serde_json::{Value, json};

use super::{of_spec, told, version};

#[test]
fn schemas_must_be_structural() {
    for (spec, expected) in [
        (json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}}), ""),
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]}),
            "spec.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
        ),
        (json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}), ""),
        (
            json!({"x-kubernetes-int-or-string": true, "allOf": [
                {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}]}),
            "",
        ),
        (
            json!({"type": "string", "anyOf": [{"description": "x", "nullable": true, "default": "a"}]}),
            "spec.anyOf[0].default: Forbidden: must be undefined to be structural\nspec.anyOf[0].description: Forbidden: \
             must be empty to be structural\nspec.anyOf[0].nullable: Forbidden: must be false to be structural",
        ),
        (
            json!({"type": "string", "pattern": "a(b", "not": {"pattern": "*"}}),
            "spec.not.pattern: Invalid value: \"*\": must be a valid regular expression, but isn't: error parsing \
             regexp: missing argument to repetition operator: `*`\nspec.pattern: Invalid value: \"a(b\": must be a valid \
             regular expression, but isn't: error parsing regexp: missing closing ): `a(b`",
        ),
        (
            json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-int-or-string": true}),
            "spec.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields\nspec.type: Required value: must be object if \
             x-kubernetes-embedded-resource is true\nspec.x-kubernetes-embedded-resource: Invalid value: true: must be \
             false if x-kubernetes-int-or-string is true",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "metadata": {"type": "string"}, "kind": {"type": "object"}}}),
            "spec.properties[kind].type: Invalid value: \"object\": must be string\nspec.properties[metadata].type: \
             Invalid value: \"string\": must be object",
        ),
    ] {
        assert_eq!(told(&of_spec(spec)), expected);
    }
}

#[test]
fn the_root_of_a_schema_must_be_structural() {
    let root = |schema: Value| version(json!({"schema": {"openAPIV3Schema": schema}}));
    let metadata = |metadata: Value| root(json!({"type": "object", "properties": {"metadata": metadata}}));
    for (object, expected) in [
        (metadata(json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}})), ""),
        (
            metadata(json!({"type": "object", "properties": {"labels": {"type": "object"}}})),
            "schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but \
             metadata is implicitly specified",
        ),
        (
            root(json!({"type": "object", "nullable": true, "additionalProperties": {"type": "string"}})),
            "schema.nullable: Forbidden: nullable cannot be true at the root\nschema.additionalProperties: Forbidden: \
             must not be used at the root",
        ),
        (
            root(
                json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "anyOf": [
                {"properties": {"a": {"items": {"properties": {"b": {"minLength": 1}}}}}, "required": ["a"]}]}),
            ),
            "schema.properties[a].items.properties[b]: Required value: because it is defined in \
             schema.anyOf[0].properties[a].items.properties[b]",
        ),
        (
            root(json!({"type": "object", "$schema": "x"})),
            "schema: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported",
        ),
        (root(json!({"type": "object", "id": "x"})), "schema.id: Forbidden: id is not supported"),
    ] {
        assert_eq!(told(&object), expected);
    }
}

#[test]
fn keywords_are_checked_by_themselves() {
    for (spec, expected) in [
        (
            json!({"type": "text"}),
            "spec.type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \
             \"object\", \"string\"",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            "spec.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes \
             quadratic",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "spec.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            "spec.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            "spec.items: Forbidden: items must be a schema object and not an array",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            "spec.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
             x-kubernetes-list-type=set",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b", "a"],
                "items": {"type": "object", "nullable": true, "properties": {"a": {"type": "string"}}}}),
            "spec.x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"a\"]: entries must all be names of item \
             properties\nspec.x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"a\"]: must not contain duplicate \
             entries\nspec.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map\n\
             spec.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must \
             have a default or be a required property\nspec.items.properties[a].default: Required value: this property is \
             in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "string", "x-kubernetes-list-type": "bag", "x-kubernetes-map-type": "soft"}),
            "spec.type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified\n\
             spec.x-kubernetes-map-type: Unsupported value: \"soft\": supported values: \"atomic\", \"granular\"\n\
             spec.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified\n\
             spec.x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\"",
        ),
        (
            json!({"type": "object", "x-kubernetes-validations": [
                {"rule": " "}, {"rule": "true", "message": "a\nb", "reason": "Because"},
                {"rule": "true\n||true"}, {"rule": "true", "fieldPath": ".a"}]}),
            "spec.x-kubernetes-validations[0].rule: Required value: rule is not specified\n\
             spec.x-kubernetes-validations[1].message: Invalid value: \"a\\nb\": must not contain line breaks\n\
             spec.x-kubernetes-validations[1].reason: Unsupported value: \"Because\": supported values: \
             \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"\n\
             spec.x-kubernetes-validations[2].message: Required value: message must be specified if rule contains line \
             breaks\nspec.x-kubernetes-validations[3].fieldPath: Invalid value: \".a\": must be a valid path",
        ),
    ] {
        assert_eq!(told(&of_spec(spec)), expected);
    }
}

#[test]
fn a_default_of_the_whole_object_says_what_it_is() {
    for (default, expected) in [
        (json!({"c": {}}), "schema.default.apiVersion: Required value\nschema.default.kind: Required value"),
        (json!({}), "schema.default.apiVersion: Required value\nschema.default.kind: Required value"),
        (json!({"apiVersion": "v1", "kind": "A"}), ""),
        (
            json!({"apiVersion": "v1", "kind": "A", "b": 1}),
            "schema.default: Invalid value: {\"apiVersion\":\"v1\",\"b\":1,\"kind\":\"A\"}: must not have unknown fields",
        ),
    ] {
        let nested = json!({"c": {"type": "object", "required": ["d"]}});
        let schema = json!({"type": "object", "properties": nested, "default": default});
        assert_eq!(told(&version(json!({"schema": {"openAPIV3Schema": schema}}))), expected);
    }
}

#[test]
fn defaults_must_be_valid() {
    for (spec, expected) in [
        (
            json!({"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "b"}}}),
            "",
        ),
        (
            json!({"type": "object", "default": {"b": 1}, "properties": {"a": {"type": "string"}}}),
            "spec.default: Invalid value: {\"b\":1}: must not have unknown fields",
        ),
        (
            json!({"type": "string", "enum": ["a"], "default": "b"}),
            "spec.default: Unsupported value: \"b\": supported values: \"a\"",
        ),
    ] {
        assert_eq!(told(&of_spec(spec)), expected);
    }
    let metadata = json!({"type": "object", "default": {}});
    let schema = json!({"type": "object", "properties": {"metadata": metadata}});
    assert_eq!(
        told(&version(json!({"schema": {"openAPIV3Schema": schema}}))),
        "schema.properties[metadata].default: Forbidden: must not be set in top-level metadata"
    );
}

/// What is wrong with rules of `spec`, with the shown rule cut out.
fn told_of_rules(spec: Value) -> String {
    let told = told(&of_spec(spec));
    let lines = told.lines().map(|line| match (line.find("{\"Rule\""), line.find("\"OptionalOldSelf\":")) {
        (Some(start), Some(_)) => {
            line[..start].to_owned() + &line[line.find("}: ").map_or(start, |at| at + 3)..]
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn rules_must_be_understood_and_affordable() {
    let text = json!({"type": "string"});
    let rules = |rules: Value, of: Value| json!({"type": "object", "properties": {"a": of, "n": {"type": "integer"}}, "x-kubernetes-validations": rules});
    for (spec, expected) in [
        (rules(json!([{"rule": "self.n > 1"}, {"rule": "self.n >= oldSelf.n"}]), text.clone()), ""),
        (
            rules(json!([{"rule": "self.n"}]), text.clone()),
            "spec.x-kubernetes-validations[0].rule: Invalid value: cel expression must evaluate to a bool",
        ),
        (
            rules(json!([{"rule": "true", "messageExpression": "self.n"}]), text.clone()),
            "spec.x-kubernetes-validations[0].messageExpression: Invalid value: messageExpression must evaluate to a \
             string",
        ),
        (
            rules(json!([{"rule": "true", "optionalOldSelf": true}]), text.clone()),
            "spec.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used \
             in rule",
        ),
        (
            json!({"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [
                {"rule": "self != oldSelf"}]}}),
            "spec.items.x-kubernetes-validations[0].rule: Invalid value: \"self != oldSelf\": oldSelf cannot be used on \
             the uncorrelatable portion of the schema within spec",
        ),
        (
            rules(
                json!([{"rule": "self.a.all(x, self.a.all(y, x == y || x.contains(y)))"}]),
                json!({"type": "array", "items": {"type": "string"}}),
            ),
            "spec.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than \
             100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
             strings are declared)\nspec.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost \
             total exceeding cost limit for entire OpenAPIv3 schema\nschema: Forbidden: x-kubernetes-validations \
             estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try \
             simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are \
             declared)",
        ),
    ] {
        assert_eq!(told_of_rules(spec), expected);
    }
}
