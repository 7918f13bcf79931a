//! Definitions with one thing wrong each, and what the review says.

use super::*;
use serde_json::{Value, json};

const SCHEMA: &str = "spec.versions[0].schema.openAPIV3Schema";

/// A definition that nothing is wrong with, but for what `spec` brings.
fn with(spec: Value) -> Value {
    json!({
        "metadata": { "name": "sites.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Site", "plural": "sites", "singular": "site" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": spec,
                        "status": { "type": "object", "description": "What is." },
                    },
                } },
            }],
        },
    })
}

fn good() -> Value {
    with(json!({ "type": "object", "description": "What should be." }))
}

fn findings(definition: Value) -> Vec<String> {
    let definition = serde_json::from_value(definition).unwrap();
    review(&definition).iter().map(|finding| finding.to_string().replace(SCHEMA, "$")).collect()
}

#[test]
fn a_good_definition_has_no_findings() {
    assert_eq!(findings(good()), Vec::<String>::new());
}

#[test]
fn schemas_are_structural() {
    let x = "$.properties[spec].properties[x]";
    let cases = [
        (json!({}), ".type: refused: must be there"),
        (json!({ "type": "text" }), r#".type: refused: "text" is no type"#),
        (json!({ "type": "array" }), ".items: refused: must be there, once for all items"),
        (
            json!({ "type": "object", "additionalProperties": false }),
            ".additionalProperties: refused: must not be false",
        ),
        (
            json!({ "type": "array", "uniqueItems": true, "items": { "type": "string" } }),
            ".uniqueItems: refused: must not be true: use x-kubernetes-list-type: set",
        ),
        (
            json!({ "type": "integer", "x-kubernetes-int-or-string": true }),
            ".type: refused: must not be there beside x-kubernetes-int-or-string",
        ),
        (
            json!({ "type": "string", "anyOf": [{ "type": "string" }] }),
            ".anyOf[0].type: refused: must not be there: say it outside",
        ),
        (
            json!({ "type": "object", "oneOf": [{ "required": ["a"], "properties": { "a": {} } }] }),
            ".oneOf[0].properties[a]: refused: must be a property outside, too",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "items": { "type": "object" } }),
            ".x-kubernetes-list-type: refused: a map needs x-kubernetes-list-map-keys",
        ),
        (
            json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": { "type": "object", "properties": { "k": { "type": "string", "description": "k" } } },
            }),
            ".items.properties[k]: refused: is a key of the list, and must be required or have a default",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "object" } }),
            ".x-kubernetes-list-type: refused: a set holds scalars or atomic items",
        ),
        (json!({ "type": "integer", "default": "1" }), r#".default: refused: "1" is no integer"#),
        (
            json!({ "type": "string", "enum": ["a"], "default": "b" }),
            r#".default: refused: "b" is not in the enum"#,
        ),
        (
            json!({ "type": "array", "items": { "type": "object" } }),
            ".x-kubernetes-list-type: hurts: is not set: whoever applies an item takes the whole list",
        ),
        (
            json!({ "type": "integer", "format": "uint32" }),
            r#".format: hurts: "uint32" is not checked by the server"#,
        ),
        (
            json!({ "type": "object", "required": ["a"], "properties": {} }),
            r#".required: hurts: "a" is no property"#,
        ),
        (
            json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
            "",
        ),
        (json!({ "x-kubernetes-preserve-unknown-fields": true }), ""),
    ];
    for (mut field, expected) in cases {
        field["description"] = json!("X.");
        let spec = json!({ "type": "object", "description": "S.", "properties": { "x": field } });
        let expected: Vec<_> = (!expected.is_empty()).then(|| format!("{x}{expected}")).into_iter().collect();
        assert_eq!(findings(with(spec)), expected);
    }
}

#[test]
fn rules_have_limits_and_messages() {
    let rule = |rule: &str| json!([{ "rule": rule, "message": "m" }]);
    let text = json!({ "type": "string", "description": "t" });
    let cases = [
        (
            json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self != ''" }] }),
            ".x-kubernetes-validations[0].rule: hurts: has no message: people get to read the rule",
        ),
        (
            json!({ "type": "string", "x-kubernetes-validations": rule("") }),
            ".x-kubernetes-validations[0].rule: refused: must be there",
        ),
        (
            json!({ "type": "string", "x-kubernetes-validations": rule("self.matches('a+')") }),
            ".x-kubernetes-validations[0].rule: hurts: goes through self, which has no limit",
        ),
        (
            json!({ "type": "string", "maxLength": 9, "x-kubernetes-validations": rule("self.matches('a+')") }),
            "",
        ),
        (
            json!({
                "type": "array", "items": { "type": "string", "maxLength": 9, "x-kubernetes-validations": rule("self != ''") },
            }),
            ".items.x-kubernetes-validations[0].rule: hurts: runs for each item of $.properties[spec].properties[x], which has no limit",
        ),
        (
            json!({
                "type": "array", "maxItems": 9, "items": { "type": "string", "x-kubernetes-validations": rule("self == oldSelf") },
            }),
            ".items.x-kubernetes-validations[0].rule: refused: looks at oldSelf, but items of this list cannot be matched with old ones",
        ),
        (
            json!({
                "type": "object", "properties": { "t": text }, "x-kubernetes-validations": rule("self.t.contains('a')"),
            }),
            ".x-kubernetes-validations[0].rule: hurts: goes through self.t, which has no limit",
        ),
    ];
    for (mut field, expected) in cases {
        field["description"] = json!("X.");
        let spec = json!({ "type": "object", "description": "S.", "properties": { "x": field } });
        let expected: Vec<_> = (!expected.is_empty())
            .then(|| format!("$.properties[spec].properties[x]{expected}"))
            .into_iter()
            .collect();
        assert_eq!(findings(with(spec)), expected);
    }
}

#[test]
fn the_rest_of_a_definition_is_reviewed() {
    let version = "/spec/versions/0";
    let cases = [
        ("/metadata/name", json!("site"), r#"metadata.name: refused: must be "sites.example.com""#),
        ("/spec/scope", json!("Global"), "spec.scope: refused: must be Namespaced or Cluster"),
        (
            "/spec/names/singular",
            json!("Site"),
            r#"spec.names.singular: refused: "Site" is no lower-case word"#,
        ),
        (
            "/spec/versions/0/storage",
            json!(false),
            "spec.versions: refused: 0 versions are stored: must be exactly one",
        ),
        ("/spec/versions/0/served", json!(false), "spec.versions: hurts: no version is served"),
        ("/spec/versions/0/schema", json!({}), "spec.versions[0].schema: refused: there is no schema"),
        (
            "/spec/versions/0/subresources",
            json!({}),
            "spec.versions[0].subresources.status: hurts: no status subresource: status and spec get in each other's way",
        ),
        (
            "/spec/versions/0/subresources/scale",
            json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status" }),
            r#"spec.versions[0].subresources.scale.specReplicasPath: hurts: ".spec.replicas" is not in the schema; spec.versions[0].subresources.scale.statusReplicasPath: refused: must start with ".status.""#,
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([
                { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                { "name": "Size", "type": "size", "jsonPath": "spec" },
                { "name": "Lost", "type": "string", "jsonPath": ".spec.lost" },
            ]),
            r#"spec.versions[0].additionalPrinterColumns[1].type: refused: must be one of boolean, date, integer, number, string; spec.versions[0].additionalPrinterColumns[1].jsonPath: refused: must start with a dot; spec.versions[0].additionalPrinterColumns[2].jsonPath: hurts: ".spec.lost" is not in the schema"#,
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut definition = good();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        definition.pointer_mut(parent).unwrap()[field] = value;
        assert_eq!(findings(definition).join("; "), expected, "{pointer} {version}");
    }
}

#[test]
fn groups_of_kubernetes_need_its_approval() {
    let mut definition = good();
    definition["spec"]["group"] = json!("web.k8s.io");
    definition["metadata"]["name"] = json!("sites.web.k8s.io");
    let refusal = "spec.group: refused: belongs to Kubernetes: take a domain of your own";
    assert_eq!(findings(definition.clone()), [refusal]);
    definition["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": "https://example.com" });
    assert_eq!(findings(definition), Vec::<String>::new());
}

#[test]
fn merged_versions_come_in_order_and_are_told_apart() {
    let version = |name: &str, description: &str| -> CustomResourceDefinition {
        let mut definition = with(json!({ "type": "object", "description": description }));
        definition["spec"]["versions"][0]["name"] = json!(name);
        serde_json::from_value(definition).unwrap()
    };
    let all = vec![version("v1beta1", "a"), version("v2", "b"), version("v1", "a")];
    let definition = merged(all, "v1").unwrap();
    let names = definition.spec.versions.iter().map(|v| (v.name.as_str(), v.storage));
    assert_eq!(names.collect::<Vec<_>>(), [("v2", false), ("v1", true), ("v1beta1", false)]);
    assert_eq!(
        review(&definition).iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["spec.conversion: hurts: versions differ, but are only relabelled: fields get lost"]
    );
    assert!(merged(vec![version("v1", "a")], "v3").is_err());
}
