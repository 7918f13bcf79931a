//! Regular expressions that cost more to compile than to send: rejected, or within a schema's budget.

use crate::client::send;
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

fn definition(name: &str, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let names = json!({"plural": name, "singular": name, "kind": "Thing", "listKind": "ThingList"});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "metadata": {"name": format!("{name}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    })
}

#[test]
fn schemas_and_policies_with_too_large_patterns_are_rejected() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let large = |count: usize| (0..count).map(|number| format!(r"\pL{{100}}{number}"));
        let property = |pattern: String| json!({"type": "string", "maxLength": 10, "pattern": pattern});
        let properties = large(100).enumerate().map(|(at, it)| (format!("p{at}"), property(it)));
        let by_pattern =
            json!({"type": "object", "properties": properties.collect::<serde_json::Map<_, _>>()});
        let rules: Vec<Value> =
            large(100).map(|it| json!({"rule": format!("self.matches(r'{it}')"), "message": "m"})).collect();
        let by_rule = json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": rules});
        for (what, name, spec) in [
            ("patterns", "one", by_pattern),
            ("rules", "two", by_rule),
            ("one pattern", "three", property(r"\pL{1000}".to_owned())),
            ("one long pattern", "four", property(r"\pL".repeat(100_000))),
        ] {
            let (code, answer) =
                send(&server, "POST", DEFINITIONS, definition(name, &spec).to_string()).await;
            assert_eq!(code, 422, "{what}: {code}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("too large"), "{what}: {}", &message[..message.len().min(500)]);
        }
        let validations: Vec<Value> =
            large(100).map(|it| json!({"expression": format!("object.x.matches(r'{it}')")})).collect();
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
        let policy = json!({
            "metadata": {"name": "p"},
            "spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations},
        });
        let (code, answer) = send(&server, "POST", POLICIES, policy.to_string()).await;
        assert_eq!(code, 422, "{}", &answer.to_string()[..300]);
        // Usual patterns are accepted.
        let names = property(r"^[\p{L}\p{N} _-]{1,63}$".to_owned());
        let (code, answer) = send(&server, "POST", DEFINITIONS, definition("five", &names).to_string()).await;
        assert_eq!(code, 201, "{answer}");
    });
    run.unwrap();
}

#[test]
fn patterns_from_objects_are_charged_for_their_compilation() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let item = json!({
            "type": "string", "maxLength": 30,
            "x-kubernetes-validations": [{"rule": "'x'.matches(self) || true", "message": "m"}],
        });
        let spec = json!({"type": "object", "properties": {"patterns": {"type": "array", "maxItems": 1000, "items": item}}});
        let (code, answer) =
            send(&server, "POST", DEFINITIONS, definition("things", &spec).to_string()).await;
        assert_eq!(code, 201, "{answer}");
        let path = "/apis/example.com/v1/namespaces/default/things";
        let object = |patterns: Vec<String>| {
            let spec = json!({"patterns": patterns});
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generateName": "t-"}, "spec": spec})
        };
        let small = (0..200).map(|number| format!("^[a-z]{{{number},500}}$"));
        let (code, answer) = send(&server, "POST", path, object(small.collect()).to_string()).await;
        assert_eq!(code, 201, "{answer}");
        let large = (0..1000).map(|number| format!(r"\pL{{100}}{number}"));
        let (code, answer) = send(&server, "POST", path, object(large.collect()).to_string()).await;
        assert_eq!(code, 422, "{code}");
        assert!(answer.to_string().contains("budget"), "{}", &answer.to_string()[..500]);
    });
    run.unwrap();
}
