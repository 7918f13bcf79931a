//! Definitions that people install: each is valid, and stays so.

use serde_json::{Value, json};

use super::super::*;
use crate::validate;

/// One definition on each line; `real.txt` beside it tells where they are from.
static REAL: &[u8] = include_bytes!("real.jsonl.zz");
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

fn all() -> Vec<Value> {
    let text = miniz_oxide::inflate::decompress_to_vec_zlib(REAL).unwrap();
    text.split(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn prepared(mut object: Value) -> Value {
    let (id, _) = crate::types().kind(GROUP, "v1", KIND).unwrap();
    schema::encode::normalize(crate::types(), id, &mut object);
    crate::defaults::default(GROUP, "v1", KIND, &mut object);
    object
}

#[test]
fn definitions_of_the_field_are_valid() {
    let all: Vec<_> = all().into_iter().map(prepared).collect();
    assert_eq!(all.len(), 18);
    for object in &all {
        let name = api::object::name(object);
        assert_eq!(validate::create(GROUP, "v1", KIND, object).to_string(), "", "{name}");
        assert_eq!(validate::warnings(GROUP, "v1", KIND, object, None), [""; 0], "{name}");
        let status = accept(object, &InUse::default(), api::time::Time::ZERO);
        assert!(condition::is_true(&status, condition::ESTABLISHED), "{name}: {status}");
    }
}

#[test]
fn a_definition_of_the_field_keeps_only_what_it_needs() {
    for object in all() {
        let bytes: Bytes = serde_json::to_vec(&object).unwrap().into();
        let definition = Definition::parse(&bytes).unwrap();
        let versions = object["spec"]["versions"].as_array().unwrap();
        assert_eq!(definition.versions.len(), versions.len());
        for (version, given) in definition.versions.iter().zip(versions) {
            assert_eq!(version.schema().as_ref(), given.pointer("/schema/openAPIV3Schema"));
            let text = version.schema_text().unwrap();
            assert!(bytes.as_ptr_range().contains(&text.as_ptr()), "schemas are slices of the definition");
        }
        assert_eq!(json!(definition.name), object["metadata"]["name"]);
    }
}

/// Objects of those definitions, and what is wrong with them.
#[test]
fn objects_of_definitions_of_the_field_are_checked() {
    let all = all();
    let issuer = json!({"name": "ca", "kind": "Issuer"});
    let rule = |matches: Value| json!({"matches": matches, "backendRefs": [{"name": "web", "port": 80}]});
    for (name, spec, expected) in [
        (
            "certificates.cert-manager.io",
            json!({"secretName": "tls", "dnsNames": ["a.b"], "issuerRef": issuer}),
            "",
        ),
        (
            "certificates.cert-manager.io",
            json!({"dnsNames": ["a.b"], "issuerRef": {}, "privateKey": {"algorithm": "DSA"}}),
            "[spec.issuerRef.name: Required value, spec.privateKey.algorithm: Unsupported value: \"DSA\": supported \
             values: \"RSA\", \"ECDSA\", \"Ed25519\", spec.secretName: Required value]",
        ),
        (
            "servicemonitors.monitoring.coreos.com",
            json!({"selector": {"matchLabels": {"app": "web"}}, "endpoints": [{"port": "metrics", "interval": "30s"}]}),
            "",
        ),
        (
            "servicemonitors.monitoring.coreos.com",
            json!({"selector": {}, "endpoints": [{"interval": "soon"}]}),
            "spec.endpoints[0].interval: Invalid value: \"soon\": spec.endpoints[0].interval in body should match \
             '^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$'",
        ),
        (
            "applications.argoproj.io",
            json!({"project": "default", "destination": {"namespace": "x"}, "source": {"repoURL": "https://a.b/c"}}),
            "",
        ),
        ("httproutes.gateway.networking.k8s.io", json!({"rules": [rule(json!([]))]}), ""),
        (
            "httproutes.gateway.networking.k8s.io",
            json!({"rules": [rule(json!([{"path": {"type": "Exact", "value": "a"}, "method": "TEAPOT"}]))]}),
            "[spec.rules[0].matches[0].method: Unsupported value: \"TEAPOT\": supported values: \"GET\", \"HEAD\", \
             \"POST\", \"PUT\", \"DELETE\", \"CONNECT\", \"OPTIONS\", \"TRACE\", \"PATCH\", <nil>: Invalid \
             value: null: some validation rules were not checked because the object was invalid; correct the existing \
             errors to complete validation]",
        ),
        (
            "httproutes.gateway.networking.k8s.io",
            json!({"rules": [rule(json!([{"path": {"type": "Exact", "value": "a"}}]))]}),
            "spec.rules[0].matches[0].path: Invalid value: value must be an absolute path and start with '/' when type \
             one of ['Exact', 'PathPrefix']",
        ),
    ] {
        let object = all.iter().find(|it| api::object::name(it) == name).unwrap();
        let definition = Definition::read(object).unwrap();
        let schema = definition.storage_version().unwrap().schema().unwrap();
        let schema = schema::structural::Structural::compile(&schema);
        let mut object = json!({"metadata": {"name": "a"}, "spec": spec});
        assert_eq!(schema.prune(&mut object), [""; 0], "{name}");
        schema.default(&mut object);
        assert_eq!(schema.validate(&object, None).to_string(), expected, "{name}");
    }
}
