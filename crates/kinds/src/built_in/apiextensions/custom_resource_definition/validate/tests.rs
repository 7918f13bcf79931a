//! What the real server and its code say of definitions.

mod schemas;

use api::time::Time;
use serde_json::{Value, json};

use crate::strategy::{Circumstances, strategy};
use crate::validate::{create, update};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";
/// Refusals of the real server. Where it was recorded no further than that, a cause has no message.
const RECORDED: &str = include_str!("recorded.json");

/// A definition as it is when it is checked.
fn prepared(object: &Value) -> Value {
    let mut object = object.clone();
    let (id, _) = crate::types().kind(GROUP, "v1", KIND).unwrap();
    schema::encode::normalize(crate::types(), id, &mut object);
    crate::defaults::default(GROUP, "v1", KIND, &mut object);
    let with = Circumstances { now: Time::ZERO, user: &|| Value::Null };
    strategy(GROUP, "customresourcedefinitions").prepare_create(&mut object, &with);
    object
}

#[test]
fn definitions_are_refused_as_recorded() {
    for case in serde_json::from_str::<Vec<Value>>(RECORDED).unwrap() {
        let errors = create(GROUP, "v1", KIND, &prepared(&case["object"]));
        let mut found: Vec<_> = errors
            .iter()
            .map(|error| (error.field.clone(), error.error_type.reason().to_owned(), error.body()))
            .collect();
        found.sort();
        let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
        let causes = case["causes"].as_array().unwrap().iter();
        let mut expected: Vec<_> = causes
            .map(|cause| (text(cause, "field"), text(cause, "reason"), text(cause, "message")))
            .collect();
        expected.sort();
        if expected.iter().all(|(_, _, message)| message.is_empty()) {
            found.iter_mut().for_each(|(_, _, message)| message.clear());
        }
        assert_eq!(found, expected, "{}", case["say"]);
    }
}

/// A valid definition with one version, and `patch` in its spec.
fn definition(patch: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object"}}}],
        },
    });
    for (field, value) in patch.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

/// The same with these in its only version.
fn version(patch: Value) -> Value {
    let mut object = definition(json!({}));
    for (field, value) in patch.as_object().unwrap() {
        object["spec"]["versions"][0][field] = value.clone();
    }
    object
}

/// The same with this schema of `spec`.
fn of_spec(spec: Value) -> Value {
    version(json!({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}))
}

/// The errors, each on a line, with the way to the schema of `spec` cut to `spec`.
fn told(object: &Value) -> String {
    let errors = create(GROUP, "v1", KIND, &prepared(object));
    let texts =
        errors.iter().map(|error| error.to_string().replace("spec.validation.openAPIV3Schema", "schema"));
    texts.map(|text| text.replace("schema.properties[spec]", "spec")).collect::<Vec<_>>().join("\n")
}

/// The schema with a keyword everywhere that says nothing, but needs a look.
fn titled(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        let parts =
            ["items", "additionalProperties"].map(|keyword| (keyword, members.get(keyword).map(titled)));
        for (keyword, part) in parts.into_iter().filter_map(|(keyword, part)| Some((keyword, part?))) {
            members.insert(keyword.to_owned(), part);
        }
        let properties = members.get_mut("properties").and_then(Value::as_object_mut);
        properties.into_iter().flatten().for_each(|(_, part)| *part = titled(part));
        members.insert("title".to_owned(), json!("T"));
    }
    schema
}

#[test]
fn what_needs_no_look_is_judged_as_if_it_had_got_one() {
    let text = || json!({"type": "string"});
    for (schema, is_right) in [
        (text(), true),
        (json!({"type": "array", "items": text(), "x-kubernetes-list-type": "atomic", "maxItems": 3}), true),
        (json!({"type": "object", "required": ["a"], "properties": {"a": text()}}), true),
        (json!({"type": "object", "additionalProperties": text(), "x-kubernetes-map-type": "atomic"}), true),
        (json!({}), false),
        (json!({"type": "null"}), false),
        (json!({"type": "text"}), false),
        (json!({"type": "array"}), false),
        (json!({"type": "array", "items": {}}), false),
        (json!({"type": "array", "items": [text()]}), false),
        (json!({"type": "array", "items": text(), "uniqueItems": true}), false),
        (json!({"type": "array", "items": text(), "x-kubernetes-map-type": "atomic"}), false),
        (json!({"type": "array", "items": text(), "x-kubernetes-list-type": "bag"}), false),
        (json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}), false),
        (json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}), false),
        (json!({"type": "object", "x-kubernetes-list-type": "atomic"}), false),
        (json!({"type": "object", "x-kubernetes-embedded-resource": true}), false),
        (json!({"type": "object", "properties": {"a": text()}, "additionalProperties": text()}), false),
        (json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}), false),
        (json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.x"}]}), false),
        (json!({"type": "object", "anyOf": [{"type": "object"}]}), false),
        (json!({"type": "string", "$ref": "#/a"}), false),
    ] {
        for around in [
            schema.clone(),
            json!({"type": "object", "properties": {"inner": schema}}),
            json!({"type": "object", "additionalProperties": schema}),
            json!({"type": "array", "items": {"type": "object", "properties": {"inner": schema}}}),
        ] {
            let found = told(&of_spec(around.clone()));
            assert_eq!(found.is_empty(), is_right, "{around}: {found}");
            // What an error shows of the schema is another matter.
            let paths = |told: &str| -> Vec<String> {
                told.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect()
            };
            assert_eq!(paths(&found), paths(&told(&of_spec(titled(&around)))), "{around}");
        }
    }
}

#[test]
fn names_and_versions_are_checked() {
    const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
        alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
        validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let served = |name: &str, storage: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    for (patch, expected) in [
        (json!({}), String::new()),
        (json!({"scope": ""}), "spec.scope: Required value".to_owned()),
        (
            json!({"names": {"plural": "things", "kind": "Thing", "listKind": "Thing", "shortNames": ["T"]}}),
            format!(
                "spec.names.shortNames[0]: Invalid value: \"T\": {LABEL}\nspec.names.listKind: Invalid value: \
                 \"Thing\": kind and listKind may not be the same"
            ),
        ),
        (
            json!({"names": {"plural": "things", "kind": "Th_ing", "singular": "thing"}}),
            ["kind: Invalid value: \"Th_ing", "listKind: Invalid value: \"Th_ingList"]
                .map(|it| format!("spec.names.{it}\": may have mixed case, but should otherwise match: {LABEL}"))
                .join("\n"),
        ),
        (
            json!({"names": {"plural": "things"}}),
            "spec.names.singular: Required value\nspec.names.kind: Required value\nspec.names.listKind: Required value"
                .to_owned(),
        ),
        (
            json!({"versions": [served("V1", true)]}),
            format!(
                "spec.versions[0].name: Invalid value: \"V1\": {LABEL}\nspec.version: Invalid value: \"V1\": {LABEL}"
            ),
        ),
        (
            json!({"versions": [served("v1", true), served("v1", false)]}),
            "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null},{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null}]: must contain unique version names"
                .to_owned(),
        ),
        (
            json!({"preserveUnknownFields": true}),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                .to_owned(),
        ),
    ] {
        assert_eq!(told(&definition(patch)), expected);
    }
}

#[test]
fn what_goes_with_a_version_is_checked() {
    for (patch, expected) in [
        (
            json!({"deprecationWarning": "x"}),
            "spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions",
        ),
        (
            json!({"deprecated": true, "deprecationWarning": "a\nb"}),
            "spec.versions[0].deprecationWarning: Invalid value: \"a\\nb\": must only contain printable UTF-8 \
             characters; non-printable character found at index 1",
        ),
        (json!({"deprecated": true, "deprecationWarning": "mögen Sie 猫 ‚nicht‘?"}), ""),
        (
            json!({"subresources": {"scale": {"specReplicasPath": "spec.a", "statusReplicasPath": ".spec.a",
                "labelSelectorPath": ".metadata.x"}}}),
            "spec.subresources.scale.specReplicasPath: Invalid value: \"spec.a\": must be a simple json path starting \
             with .\nspec.subresources.scale.statusReplicasPath: Invalid value: \".spec.a\": should be a json path under \
             .status\nspec.subresources.scale.labelSelectorPath: Invalid value: \".metadata.x\": should be a json path \
             under either .spec or .status",
        ),
        (
            json!({"additionalPrinterColumns": [{"type": "text", "format": "int16"}, {"name": "a", "jsonPath": "a"}]}),
            "spec.additionalPrinterColumns[0].name: Required value\nspec.additionalPrinterColumns[0].type: Invalid \
             value: \"text\": must be one of boolean,date,integer,number,string\nspec.additionalPrinterColumns[0].format: \
             Invalid value: \"int16\": must be one of byte,date,date-time,double,float,int32,int64,password\n\
             spec.additionalPrinterColumns[0].JSONPath: Required value\nspec.additionalPrinterColumns[1].type: Required \
             value: must be one of boolean,date,integer,number,string\nspec.additionalPrinterColumns[1].JSONPath: Invalid \
             value: \"a\": must be a simple json path starting with .",
        ),
        (
            json!({"schema": {"openAPIV3Schema": {"type": "object", "id": "x"}}, "selectableFields": [{}]}),
            "schema.id: Forbidden: id is not supported\n\
             spec.schema.openAPIV3Schema: Invalid value: \"\": OpenAPIV3Schema 'id' is not supported\n\
             spec.selectableFields[0].jsonPath: Required value",
        ),
        (
            json!({"selectableFields": [{"jsonPath": ".spec"}, {"jsonPath": "spec"}, {"jsonPath": ".a['b']"}]}),
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec\": is an invalid path: does not refer to a valid \
             field\nspec.selectableFields[1].jsonPath: Invalid value: \"spec\": is an invalid path: expected [ or . but \
             got: spec\nspec.selectableFields[2].jsonPath: Invalid value: \".a['b']\": is an invalid path: does not refer \
             to a valid field",
        ),
        (
            json!({"subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "array", "items": {}}}}),
            "schema.type: Invalid value: \"array\": only \"object\" is allowed as the type at the root of the schema if \
             the status subresource is enabled\nschema.items.type: Required value: must not be empty for specified array \
             items\nschema.type: Invalid value: \"array\": must be object at the root",
        ),
    ] {
        assert_eq!(told(&version(patch)), expected);
    }
}

#[test]
fn conversion_is_checked() {
    let webhook = |client: Value, versions: Value| {
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": versions});
        json!({"conversion": {"strategy": "Webhook", "webhook": webhook}})
    };
    for (patch, expected) in [
        (webhook(json!({"url": "https://a.b/c"}), json!(["v1"])), ""),
        (
            webhook(json!({"url": "http://a.b"}), json!(["v2", "v2"])),
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; \
             desired format: https://host[/path]\nspec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": \
             duplicate version\nspec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at \
             least one of v1, v1beta1",
        ),
        (
            json!({"conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}}),
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ),
        (
            json!({"conversion": {"strategy": "Magic"}}),
            "spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\", \"Webhook\"",
        ),
    ] {
        assert_eq!(told(&definition(patch)), expected);
    }
}

#[test]
fn versions_that_differ_tell_their_own_errors() {
    let served = |name: &str, storage: bool, spec: Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    let versions = [served("v1", true, json!({"type": "string"})), served("v2", false, json!({}))];
    assert_eq!(
        told(&definition(json!({ "versions": versions }))),
        "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified \
         object fields"
    );
}

#[test]
fn what_was_stored_ties_an_update() {
    let mut old = prepared(&definition(json!({})));
    api::object::set_resource_version(&mut old, "5");
    let established = |mut object: Value| {
        object["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
        object
    };
    let told = |old: &Value, change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        update(GROUP, "v1", KIND, &new, old).to_string()
    };
    assert_eq!(told(&old, &|new| new["spec"]["scope"] = "Namespaced".into()), "");
    assert_eq!(
        told(&established(old.clone()), &|new| new["spec"]["scope"] = "Namespaced".into()),
        "spec.scope: Invalid value: \"Namespaced\": field is immutable"
    );
    assert_eq!(
        told(&old, &|new| new["spec"]["group"] = "example.org".into()),
        "spec.group: Invalid value: \"example.org\": field is immutable"
    );
    assert_eq!(
        told(&old, &|new| new["spec"]["versions"][0]["name"] = "v2".into()),
        "[status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2, status.storedVersions[0]: \
         Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in \
         spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from \
         status.storedVersions]"
    );
    let twice = told(&old, &|new| {
        let first = new["spec"]["versions"][0].clone();
        new["spec"]["versions"].as_array_mut().unwrap().push(first);
    });
    assert!(
        twice.contains("status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v1"),
        "{twice}"
    );
    let untyped = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}});
    assert_ne!(told(&old, &|new| new["spec"]["versions"][0]["schema"] = untyped.clone()), "");
}
