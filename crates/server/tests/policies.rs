//! Admission policies: their variables, rejections, warnings and mutations.

use crate::client::{send, send_with};
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;
use world::World;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start(world: &World) -> Server {
    Server::start(world, Arc::new(store::Memory::new()), Config::default()).await.unwrap()
}

fn simulate<F>(story: impl FnOnce(World) -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let () = world::simulate(6, story).unwrap().output;
}

fn merge(value: &mut Value, more: Value) {
    for (name, more) in more.as_object().unwrap() {
        value[name] = more.clone();
    }
}

/// Creates a policy for created and updated ConfigMaps, and its binding.
async fn bind(server: &Server, sort: &str, name: &str, spec: Value, binding: Value) {
    let mut policy = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"],
        }]},
    });
    merge(&mut policy, spec);
    let body = json!({"metadata": {"name": name}, "spec": policy}).to_string();
    let (status, answer) = send(server, "POST", &format!("{GROUP}/{sort}admissionpolicies"), body).await;
    assert_eq!(status, 201, "{answer}");
    let mut bound = json!({"policyName": name});
    if sort == "validating" {
        bound["validationActions"] = json!(["Deny"]);
    }
    merge(&mut bound, binding);
    let body = json!({"metadata": {"name": name}, "spec": bound}).to_string();
    let (status, answer) =
        send(server, "POST", &format!("{GROUP}/{sort}admissionpolicybindings"), body).await;
    assert_eq!(status, 201, "{answer}");
}

async fn unbind(server: &Server, sort: &str, name: &str) {
    for resource in ["policies", "policybindings"] {
        let path = format!("{GROUP}/{sort}admission{resource}/{name}");
        assert_eq!(send(server, "DELETE", &path, "").await.0, 200);
    }
}

async fn make(server: &Server, data: Value) -> (u16, Value) {
    let body = json!({"metadata": {"name": "x"}, "data": data}).to_string();
    let made = send(server, "POST", MAPS, body).await;
    send(server, "DELETE", &format!("{MAPS}/x"), "").await;
    made
}

/// Whether a policy lets a ConfigMap with `n: "2"` pass, and the start of its message if not.
async fn check_write(server: &Server, spec: Value, code: u16, message: &str) {
    bind(server, "validating", "p", spec.clone(), json!({})).await;
    let (status, answer) = make(server, json!({"n": "2"})).await;
    assert_eq!(status, code, "{spec}: {answer}");
    if code != 201 {
        let text = answer["message"].as_str().unwrap();
        let start =
            "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: ";
        assert!(text.starts_with(&format!("{start}{message}")), "{spec}: {text}");
    }
    unbind(server, "validating", "p").await;
}

#[test]
fn validating_expressions_reject_writes() {
    simulate(|world| async move {
        let server = start(&world).await;
        let one = |expression: &str| json!({"validations": [{"expression": expression}]});
        let said = |more: Value| {
            let mut validation = json!({"expression": "object.data.n == '1'"});
            merge(&mut validation, more);
            json!({"validations": [validation]})
        };
        for (spec, code, message) in [
            (one("object.data.n == '2'"), 201, ""),
            (one("object.data.n == '1'"), 422, "failed expression: object.data.n == '1'"),
            (said(json!({"message": "one!"})), 422, "one!"),
            (said(json!({"message": "one!", "messageExpression": "'not ' + object.data.n"})), 422, "not 2"),
            (said(json!({"message": "one!", "messageExpression": "string(object.data.z)"})), 422, "one!"),
            (said(json!({"reason": "Forbidden"})), 403, "failed expression: object.data.n == '1'"),
            (
                one("object.data.z == '1'"),
                422,
                "expression 'object.data.z == '1'' resulted in error: no such key: z",
            ),
            (
                json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.z == '1'"}]}),
                201,
                "",
            ),
        ] {
            check_write(&server, spec, code, message).await;
        }
    });
}

#[test]
fn validating_expressions_see_variables_the_request_and_the_authorizer() {
    simulate(|world| async move {
        let server = start(&world).await;
        let one = |expression: &str| json!({"validations": [{"expression": expression}]});
        for (spec, code, message) in [
            (
                json!({
                    "variables": [
                        {"name": "n", "expression": "int(object.data.n)"},
                        {"name": "m", "expression": "variables.n + 1"},
                    ],
                    "validations": [{"expression": "variables.m < 3", "messageExpression": "string(variables.m)"}],
                }),
                422,
                "3",
            ),
            (
                json!({
                    "matchConditions": [{"name": "c", "expression": "object.data.n != '2'"}],
                    "validations": [{"expression": "false"}],
                }),
                201,
                "",
            ),
            (one("request.operation == 'CREATE' && oldObject == null"), 201, ""),
            (one("namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'"), 201, ""),
            (
                one("request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups"),
                201,
                "",
            ),
            (
                one("authorizer.group('').resource('pods').namespace('default').check('create').allowed()"),
                201,
                "",
            ),
            (
                one(
                    "authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed()",
                ),
                422,
                "failed expression",
            ),
            (one("authorizer.path('/healthz').check('get').allowed()"), 201, ""),
        ] {
            check_write(&server, spec, code, message).await;
        }
    });
}

#[test]
fn parameters_are_found_by_name_and_by_selector() {
    simulate(|world| async move {
        let server = start(&world).await;
        for (name, limit) in [("low", "3"), ("high", "9")] {
            let body =
                json!({"metadata": {"name": name, "labels": {"limit": "yes"}}, "data": {"max": limit}})
                    .to_string();
            assert_eq!(send(&server, "POST", MAPS, body).await.0, 201);
        }
        let spec = json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{
                "expression": "int(object.data.n) <= int(params.data.max)", "messageExpression": "'over ' + params.data.max",
            }],
        });
        for (reference, n, expected) in [
            (json!({"name": "low", "parameterNotFoundAction": "Deny"}), "3", ""),
            (json!({"name": "low", "parameterNotFoundAction": "Deny"}), "4", "over 3"),
            (json!({"name": "high", "namespace": "default", "parameterNotFoundAction": "Deny"}), "4", ""),
            (
                json!({"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Deny"}),
                "4",
                "over 3",
            ),
            (
                json!({"selector": {"matchLabels": {"limit": "no"}}, "parameterNotFoundAction": "Allow"}),
                "99",
                "",
            ),
            (
                json!({"name": "none", "parameterNotFoundAction": "Deny"}),
                "1",
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            ),
        ] {
            bind(&server, "validating", "p", spec.clone(), json!({"paramRef": reference})).await;
            let (status, answer) = make(&server, json!({"n": n})).await;
            let found = answer["message"].as_str().unwrap_or_default();
            assert_eq!(status == 201, expected.is_empty(), "{reference}: {answer}");
            assert!(found.ends_with(expected), "{reference}: {found}");
            unbind(&server, "validating", "p").await;
        }
    });
}

#[test]
fn expressions_that_do_not_compile_are_rejected() {
    simulate(|world| async move {
        let server = start(&world).await;
        let rules = json!({"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
        }]});
        for (more, field, expected) in [
            (
                json!({"validations": [{"expression": "1"}]}),
                "spec.validations[0].expression",
                "must evaluate to bool but got int",
            ),
            (
                json!({"validations": [{"expression": "nope("}]}),
                "spec.validations[0].expression",
                "compilation failed: ERROR: <input>:1:6: Syntax error",
            ),
            (
                json!({"validations": [{"expression": "true", "messageExpression": "1"}]}),
                "spec.validations[0].messageExpression",
                "must evaluate to string but got int",
            ),
            (
                json!({"variables": [{"name": "a", "expression": "variables.b"}], "validations": [{"expression": "true"}]}),
                "spec.variables[0].expression",
                "undefined field 'b'",
            ),
            (
                json!({"matchConditions": [{"name": "a", "expression": "params.x"}], "validations": [{"expression": "true"}]}),
                "spec.matchConditions[0].expression",
                "undeclared reference to 'params'",
            ),
        ] {
            let mut spec = json!({"matchConstraints": rules});
            merge(&mut spec, more);
            let body = json!({"metadata": {"name": "p"}, "spec": spec}).to_string();
            let (status, answer) =
                send(&server, "POST", &format!("{GROUP}/validatingadmissionpolicies"), body).await;
            let cause = &answer["details"]["causes"][0];
            assert_eq!((status, cause["field"].as_str().unwrap()), (422, field), "{answer}");
            assert!(cause["message"].as_str().unwrap().contains(expected), "{cause}");
        }
    });
}

#[test]
fn mutations_change_a_write() {
    simulate(|world| async move {
        let server = start(&world).await;
        let apply = |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
        let patch =
            |expression: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
        for (mutations, data, expected) in [
            (vec![apply("Object{data: {'a': 'b'}}")], json!({"n": "1", "a": "b"}), ""),
            (
                vec![patch("[JSONPatch{op: 'add', path: '/data/a', value: object.data.n + '!'}]")],
                json!({"n": "1", "a": "1!"}),
                "",
            ),
            (
                vec![apply("Object{data: {'a': 'b'}}"), patch("[JSONPatch{op: 'remove', path: '/data/n'}]")],
                json!({"a": "b"}),
                "",
            ),
            (
                vec![patch(
                    "[JSONPatch{op: 'test', path: '/data/n', value: '2'}, JSONPatch{op: 'remove', path: '/data/n'}]",
                )],
                json!({"n": "1"}),
                "",
            ),
            (
                vec![patch("[JSONPatch{op: 'remove', path: '/data/z'}]")],
                Value::Null,
                "policy 'p' with binding 'p' denied request: JSON Patch: ",
            ),
            (
                vec![
                    apply(
                        "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{name: 'a', uid: 'b'}]}}",
                    ),
                    apply("Object{immutable: 1}"),
                ],
                Value::Null,
                "policy 'p' with binding 'p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic \
                 arrays, maps or structs: .metadata.ownerReferences[0]",
            ),
            (
                vec![apply("Object{data: {'a': object.data.z}}")],
                Value::Null,
                "policy 'p' with binding 'p' denied request: expression 'Object{data: {'a': object.data.z}}' resulted in \
                 error: no such key: z",
            ),
        ] {
            let spec = json!({"mutations": mutations, "reinvocationPolicy": "Never"});
            bind(&server, "mutating", "p", spec, json!({})).await;
            let (status, answer) = make(&server, json!({"n": "1"})).await;
            if expected.is_empty() {
                assert_eq!((status, &answer["data"]), (201, &data), "{mutations:?}: {answer}");
            } else {
                let found = answer["message"].as_str().unwrap();
                assert_eq!((status, &answer["reason"]), (403, &json!("Invalid")), "{answer}");
                assert!(found.starts_with(expected), "{found}");
            }
            unbind(&server, "mutating", "p").await;
        }
    });
}

#[test]
fn a_deployment_is_scaled_by_a_policy() {
    simulate(|world| async move {
        let server = start(&world).await;
        let rules = json!({"resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
        }]});
        let sidecar = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{\
            containers: [Object.spec.template.spec.containers{name: 'side', image: 's'}]}}}}";
        let spec = json!({
            "matchConstraints": rules, "reinvocationPolicy": "IfNeeded",
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 3}}"}},
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": sidecar}},
            ],
        });
        bind(&server, "mutating", "p", spec, json!({})).await;
        let body = json!({"metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        let path = "/apis/apps/v1/namespaces/default/deployments";
        let (status, made) = send(&server, "POST", path, body.to_string()).await;
        assert_eq!((status, &made["spec"]["replicas"]), (201, &json!(3)), "{made}");
        let containers = made["spec"]["template"]["spec"]["containers"].as_array().unwrap();
        let names: Vec<_> = containers.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["c", "side"]);
        assert_eq!(containers[1]["imagePullPolicy"], "Always", "what is added is defaulted");
        let patch = json!({"spec": {"replicas": 1}}).to_string();
        let path = format!("{path}/web");
        assert_eq!(send_with(&server, "PATCH", &path, "application/merge-patch+json", patch).await.0, 200);
    });
}

#[test]
fn a_policys_status_lists_type_errors() {
    simulate(|world| async move {
        let server = start(&world).await;
        let rules = json!({"resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments", "statefulsets"],
        }]});
        let spec = json!({"matchConstraints": rules, "validations": [
            {"expression": "object.spec.replicas > 1"},
            {"expression": "object.spec.replica > 1", "messageExpression": "string(object.metadata.nom)"},
            {"expression": "object.spec.serviceName != ''"},
        ]});
        let body = json!({"metadata": {"name": "p"}, "spec": spec}).to_string();
        let path = format!("{GROUP}/validatingadmissionpolicies");
        let (status, made) = send(&server, "POST", &path, body).await;
        assert_eq!((status, &made["status"]), (201, &json!({})), "{made}");
        let (_, found) = send(&server, "GET", &format!("{path}/p"), "").await;
        assert_eq!(found["status"]["observedGeneration"], 1, "{found}");
        let warnings = found["status"]["typeChecking"]["expressionWarnings"].as_array().unwrap();
        let fields: Vec<_> = warnings.iter().map(|it| it["fieldRef"].as_str().unwrap()).collect();
        assert_eq!(
            fields,
            [
                "spec.validations[1].expression",
                "spec.validations[1].messageExpression",
                "spec.validations[2].expression",
            ]
        );
        let first = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica > 1\n | \
                     ...........^\n\napps/v1, Kind=StatefulSet: ";
        assert!(warnings[0]["warning"].as_str().unwrap().starts_with(first), "{}", warnings[0]);
        let only = warnings[2]["warning"].as_str().unwrap();
        assert!(only.starts_with("apps/v1, Kind=Deployment: ") && !only.contains("StatefulSet"), "{only}");
    });
}
