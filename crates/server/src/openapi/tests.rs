//! Documents as kubectl needs them, compared with kube-apiserver's.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::custom::{CustomKind, OpenApiVersion, custom_schemas};
use super::*;
use crate::discovery::ListedSubresource;

fn built_in() -> Vec<Listed<'static>> {
    kinds::resources().iter().map(Listed::from).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn built_in_document(group: &str, version: &str) -> Value {
    parsed(&document(&built_in(), kinds::types(), &CustomSchemas::new(), group, version).unwrap())
}

fn described(type_name: &str, field: &str) -> &'static str {
    let (_, of) = kinds::types().named(type_name).unwrap();
    kinds::descriptions::describe(of).field(field).unwrap()
}

fn custom() -> Listed<'static> {
    Listed {
        group: "x.example.com",
        version: "v1",
        name: "docs",
        singular: "doc",
        kind: "Doc",
        list_kind: "DocList".to_owned(),
        is_namespaced: true,
        verbs: vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        short_names: vec![],
        categories: vec![],
        storage_version_hash: String::new(),
        subresources: vec![ListedSubresource {
            name: "status",
            foreign: None,
            kind: "Doc",
            verbs: vec!["get", "patch", "update"],
        }],
        is_custom: true,
    }
}

#[test]
fn every_reference_has_its_schema() {
    let all = built_in();
    for it in &all {
        let document = document(&all, kinds::types(), &CustomSchemas::new(), it.group, it.version).unwrap();
        let schemas = &parsed(&document)["components"]["schemas"];
        for reference in document.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas[name].is_object(), "{} {} {name}", it.group, it.version);
        }
    }
}

#[test]
fn operation_ids_are_those_of_generated_clients() {
    let core = built_in_document("", "v1");
    let apps = built_in_document("apps", "v1");
    let rbac = built_in_document("rbac.authorization.k8s.io", "v1");
    for (document, path, method, id, action) in [
        (&apps, "/apis/apps/v1/deployments", "get", "listAppsV1DeploymentForAllNamespaces", "list"),
        (
            &apps,
            "/apis/apps/v1/namespaces/{namespace}/deployments",
            "post",
            "createAppsV1NamespacedDeployment",
            "post",
        ),
        (
            &apps,
            "/apis/apps/v1/namespaces/{namespace}/deployments",
            "delete",
            "deleteAppsV1CollectionNamespacedDeployment",
            "deletecollection",
        ),
        (
            &apps,
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            "patch",
            "patchAppsV1NamespacedDeploymentScale",
            "patch",
        ),
        (&core, "/api/v1/nodes/{name}", "get", "readCoreV1Node", "get"),
        (&core, "/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize", "put"),
        (
            &core,
            "/api/v1/namespaces/{namespace}/pods/{name}/exec",
            "post",
            "connectCoreV1PostNamespacedPodExec",
            "connect",
        ),
        (
            &rbac,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "get",
            "listRbacAuthorizationV1ClusterRole",
            "list",
        ),
    ] {
        let operation = &document["paths"][path][method];
        assert_eq!(operation["operationId"], id, "{path}");
        assert_eq!(operation["x-kubernetes-action"], action, "{path}");
    }
    assert_eq!(
        rbac["paths"]["/apis/rbac.authorization.k8s.io/v1/clusterroles"]["get"]["tags"][0],
        "rbacAuthorization_v1"
    );
    let scale = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"];
    assert_eq!(
        scale["x-kubernetes-group-version-kind"],
        json!({ "group": "autoscaling", "kind": "Scale", "version": "v1" })
    );
}

#[test]
fn schemas_have_the_merge_keys_that_kubectl_patches_by() {
    let apps = built_in_document("apps", "v1");
    let patch = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
    let names: Vec<_> =
        patch["parameters"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let schemas = &apps["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"],
        json!([{ "group": "apps", "kind": "Deployment", "version": "v1" }])
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"],
        json!({
            "description": described("io.k8s.api.core.v1.Container", "ports"),
            "type": "array",
            "items": { "allOf": [{ "$ref": "#/components/schemas/io.k8s.api.core.v1.ContainerPort" }], "default": {} },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
            "x-kubernetes-patch-merge-key": "containerPort",
            "x-kubernetes-patch-strategy": "merge",
        })
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["containerPort"],
        json!({
            "description": described("io.k8s.api.core.v1.ContainerPort", "containerPort"),
            "type": "integer", "format": "int32", "default": 0,
        })
    );
    assert_eq!(schemas["io.k8s.api.core.v1.ContainerPort"]["required"], json!(["containerPort"]));
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"],
        json!([
            { "group": "", "kind": "DeleteOptions", "version": "v1" },
            { "group": "apps", "kind": "DeleteOptions", "version": "v1" },
        ])
    );
}

/// The paths of schemas and properties without a description.
fn without_description(schemas: &Value) -> Vec<String> {
    let mut silent = Vec::new();
    for (name, schema) in schemas.as_object().unwrap() {
        if !schema["description"].is_string() {
            silent.push(name.clone());
        }
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            if !property["description"].is_string() {
                silent.push(format!("{name}.{field}"));
            }
        }
    }
    silent
}

#[test]
fn every_built_in_schema_and_property_has_a_description() {
    let all = built_in();
    let versions: BTreeSet<_> = all.iter().map(|it| (it.group, it.version)).collect();
    for (group, version) in versions {
        let document = built_in_document(group, version);
        let silent = without_description(&document["components"]["schemas"]);
        assert!(silent.is_empty(), "{group} {version} {silent:?}");
    }
    let older = parsed(&swagger(&all, kinds::types(), &CustomSchemas::new()));
    let silent = without_description(&older["definitions"]);
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn custom_resources_are_described_as_by_kube_apiserver() {
    let given = json!({ "type": "object", "properties": {
        "size": { "x-kubernetes-int-or-string": true },
        "inner": { "type": "object", "x-kubernetes-embedded-resource": true },
    } });
    let kind = CustomKind {
        group: "x.example.com",
        version: "v1",
        kind: "Doc",
        list_kind: "DocList",
        plural: "docs",
        schema: Some(&given),
        selectable: &[".size".to_owned()],
        preserves: false,
    };
    let schemas = CustomSchemas::from(custom_schemas(&kind, OpenApiVersion::V3));
    let all = [built_in(), vec![custom()]].concat();
    let document = parsed(&document(&all, kinds::types(), &schemas, "x.example.com", "v1").unwrap());
    let schema = json!({ "schema": { "$ref": "#/components/schemas/com.example.x.v1.DocList" } });
    let path = &document["paths"]["/apis/x.example.com/v1/docs"];
    assert_eq!(
        path["get"],
        json!({
            "tags": ["xExampleCom_v1"],
            "description": "list objects of kind Doc",
            "operationId": "listXExampleComV1DocForAllNamespaces",
            "responses": {
                "200": {
                    "description": "OK",
                    "content": { "application/json": schema, "application/yaml": schema },
                },
                "401": { "description": "Unauthorized" },
            },
            "x-kubernetes-action": "list",
            "x-kubernetes-group-version-kind": { "group": "x.example.com", "version": "v1", "kind": "Doc" },
        })
    );
    let names: Vec<_> =
        path["parameters"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, parameters::LIST);
    assert_eq!(
        path["parameters"][2],
        json!({
            "name": "fieldSelector",
            "in": "query",
            "description":
                "A selector to restrict the list of returned objects by their fields. Defaults to everything.",
            "schema": { "type": "string", "uniqueItems": true },
        })
    );
    let schemas = &document["components"]["schemas"];
    assert!(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"].is_object());
    let doc = &schemas["com.example.x.v1.Doc"];
    assert_eq!(doc["x-kubernetes-selectable-fields"], json!([{ "fieldPath": "size" }]));
    assert_eq!(doc["properties"]["size"]["anyOf"], json!([{ "type": "integer" }, { "type": "string" }]));
    assert_eq!(doc["properties"]["inner"]["required"], json!(["kind", "apiVersion"]));
    let one = &document["paths"]["/apis/x.example.com/v1/namespaces/{namespace}/docs/{name}"];
    assert_eq!(one["get"]["parameters"][0]["name"], "resourceVersion");
    assert_eq!(one["patch"]["responses"]["201"], Value::Null);
}

#[test]
fn custom_schemas_in_v2_lack_unsupported_constructs() {
    let given = json!({ "type": "object", "required": ["maybe", "size"], "properties": {
        "size": { "x-kubernetes-int-or-string": true, "description": "how large" },
        "maybe": { "type": "object", "nullable": true, "properties": { "a": { "type": "string" } } },
        "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "list": { "type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": { "type": "string" } },
        "inner": { "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true, "required": ["spec"] },
        "choice": { "type": "string", "default": "a", "oneOf": [{ "minLength": 1 }], "not": { "pattern": "b" } },
    } });
    let kind = CustomKind {
        group: "x.example.com",
        version: "v1",
        kind: "Doc",
        list_kind: "DocList",
        plural: "docs",
        schema: Some(&given),
        selectable: &[],
        preserves: false,
    };
    let schemas = CustomSchemas::from(custom_schemas(&kind, OpenApiVersion::V2));
    let all = [built_in(), vec![custom()]].concat();
    let document = parsed(&swagger(&all, kinds::types(), &schemas));
    let doc = &document["definitions"]["com.example.x.v1.Doc"];
    assert_eq!(doc["required"], json!(["size"]));
    for (field, expected) in [
        ("size", json!({ "x-kubernetes-int-or-string": true, "description": "how large" })),
        ("maybe", json!({})),
        ("any", json!({ "x-kubernetes-preserve-unknown-fields": true })),
        ("list", json!({ "x-kubernetes-preserve-unknown-fields": true })),
        (
            "inner",
            json!({ "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
                "required": ["spec"] }),
        ),
        ("choice", json!({ "type": "string" })),
    ] {
        assert_eq!(doc["properties"][field], expected, "{field}");
    }
    assert_eq!(
        doc["properties"]["metadata"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let open = CustomKind { preserves: true, ..kind };
    let [(_, schema), _] = custom_schemas(&open, OpenApiVersion::V2);
    assert_eq!(schema["properties"], Value::Null);
}

#[test]
fn the_index_has_a_hash_of_each_document() {
    let all = [built_in(), vec![custom()]].concat();
    let index_with = |customs: &str| {
        parsed(&index(&all, |group, version| {
            fingerprint(&all, if group == "x.example.com" { customs } else { "" }, group, version)
        }))
    };
    let (before, after) = (index_with("one schema"), index_with("another"));
    let url =
        |index: &Value, path: &str| index["paths"][path]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert!(url(&before, "api/v1").starts_with("/openapi/v3/api/v1?hash="));
    assert_eq!(url(&before, "apis/apps/v1"), url(&after, "apis/apps/v1"));
    assert_ne!(url(&before, "apis/x.example.com/v1"), url(&after, "apis/x.example.com/v1"));
}

#[test]
fn v2_has_the_same_content() {
    let text = swagger(&built_in(), kinds::types(), &CustomSchemas::new());
    assert!(!text.contains("#/components/schemas/") && !text.contains(r#""allOf":[{"$ref"#));
    let document = parsed(&text);
    assert_eq!(document["swagger"], "2.0");
    assert_eq!(
        document["definitions"]["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"],
        json!({
            "description": described("io.k8s.api.apps.v1.Deployment", "spec"),
            "$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec",
        })
    );
    let schema = &document["definitions"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"]
        ["properties"]["default"];
    assert!(schema.is_object());
    let create = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps"]["post"];
    assert_eq!(
        create["parameters"][0],
        json!({ "in": "body", "name": "body", "required": true,
            "schema": { "$ref": "#/definitions/io.k8s.api.core.v1.ConfigMap" } })
    );
    assert_eq!(create["parameters"][1]["type"], "string");
    assert_eq!(create["responses"]["201"]["schema"]["$ref"], "#/definitions/io.k8s.api.core.v1.ConfigMap");
}
