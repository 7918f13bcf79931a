//! Admission webhooks: which are called, with which review, and what becomes of their answers, in virtual time.

mod elsewhere;

use crate::client::{send, send_with};
use elsewhere::Elsewhere;
use serde_json::{Value, json};
use server::{Config, Outbound, Server};
use std::sync::Arc;
use world::World;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A webhook for new config maps, with what else is said about it.
fn hook(path: &str, more: Value) -> Value {
    let mut hook = json!({
        "name": format!("{path}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": format!("https://hooks.example.com/{path}")},
        "rules": [rule(json!({}))],
    });
    merge(&mut hook, more);
    hook
}

fn rule(more: Value) -> Value {
    let mut rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    merge(&mut rule, more);
    rule
}

fn merge(value: &mut Value, more: Value) {
    for (name, more) in more.as_object().unwrap() {
        value[name] = more.clone();
    }
}

async fn start(world: &World) -> (Server, Arc<Elsewhere>) {
    let elsewhere = Arc::new(Elsewhere::new(world));
    let outbound: Arc<dyn Outbound> = Arc::<Elsewhere>::clone(&elsewhere);
    let config = Config { outbound, ..Config::default() };
    let server = Server::start(world, Arc::new(store::Memory::new()), config).await.unwrap();
    (server, elsewhere)
}

async fn configure(server: &Server, sort: &str, name: &str, hooks: Vec<Value>) {
    let body = json!({"metadata": {"name": name}, "webhooks": hooks}).to_string();
    let (status, answer) = send(server, "POST", &format!("{GROUP}/{sort}webhookconfigurations"), body).await;
    assert_eq!(status, 201, "{answer}");
}

async fn make(server: &Server, name: &str, labels: Value) -> (u16, Value) {
    let body = json!({"metadata": {"name": name, "labels": labels}}).to_string();
    send(server, "POST", MAPS, body).await
}

fn simulate<F>(story: impl FnOnce(World) -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let () = world::simulate(5, story).unwrap().output;
}

#[test]
fn connections_are_reviewed_with_their_options() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let connects =
            rule(json!({"operations": ["CONNECT"], "resources": ["pods/attach", "services/proxy"]}));
        configure(&server, "validating", "never", vec![hook("deny", json!({"rules": [connects]}))]).await;
        let before = elsewhere.reviews().len();
        for (path, expected) in [
            ("pods/web/attach?stdin=true&container=main", 400),
            ("services/web:80/proxy/a/b", 400),
            ("pods/web/exec?command=ls", 404),
            ("pods/web/log", 404),
        ] {
            let (status, told) =
                send(&server, "GET", &format!("/api/v1/namespaces/default/{path}"), "").await;
            assert_eq!(status, expected, "{path}: {told}");
        }
        let reviews = elsewhere.reviews();
        let asked: Vec<_> = reviews[before..].iter().map(|it| &it["request"]).collect();
        assert_eq!(asked.len(), 2, "{asked:?}");
        let attach =
            json!({"kind": "PodAttachOptions", "apiVersion": "v1", "stdin": true, "container": "main"});
        let kind = json!({"group": "", "version": "v1", "kind": "PodAttachOptions"});
        assert_eq!(
            (&asked[0]["object"], &asked[0]["kind"], &asked[0]["options"]),
            (&attach, &kind, &Value::Null)
        );
        assert_eq!((&asked[0]["operation"], &asked[0]["name"]), (&json!("CONNECT"), &json!("web")));
        assert_eq!(
            (&asked[0]["subResource"], &asked[1]["object"]["path"]),
            (&json!("attach"), &json!("/a/b"))
        );
    });
}

#[test]
fn rejections_and_failures_have_the_texts_of_kubernetes() {
    simulate(|world| async move {
        let (server, _) = start(&world).await;
        for (path, more, code, message) in [
            ("deny", json!({}), 400, "admission webhook \"deny.example.com\" denied the request: never"),
            (
                "down",
                json!({}),
                500,
                "Internal error occurred: failed calling webhook \"down.example.com\": failed to call webhook: \
                 Post \"https://hooks.example.com/down?timeout=10s\": connection refused",
            ),
            (
                "broken",
                json!({}),
                500,
                "Internal error occurred: failed calling webhook \"broken.example.com\": failed to call webhook: an \
                 error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (
                "hang",
                json!({"timeoutSeconds": 3}),
                500,
                "Internal error occurred: failed calling webhook \"hang.example.com\": failed to call webhook: \
                 Post \"https://hooks.example.com/hang?timeout=3s\": context deadline exceeded",
            ),
            (
                "wrong-uid",
                json!({}),
                500,
                "failed calling webhook \"wrong-uid.example.com\": received invalid webhook response: expected response.uid=",
            ),
            ("garbage", json!({}), 500, "failed calling webhook \"garbage.example.com\""),
            ("redirect", json!({}), 500, "failed calling webhook \"redirect.example.com\""),
            ("down", json!({"failurePolicy": "Ignore"}), 201, ""),
            ("hang", json!({"failurePolicy": "Ignore"}), 201, ""),
        ] {
            for sort in ["validating", "mutating"] {
                configure(&server, sort, "one", vec![hook(path, more.clone())]).await;
                let (status, answer) = make(&server, "x", json!({})).await;
                let text = answer["message"].as_str().unwrap_or_default();
                assert_eq!(status, code, "{path}: {answer}");
                assert!(text.contains(message), "{path}: {text}");
                send(&server, "DELETE", &format!("{GROUP}/{sort}webhookconfigurations/one"), "").await;
                send(&server, "DELETE", &format!("{MAPS}/x"), "").await;
            }
        }
    });
}

#[test]
fn only_matching_webhooks_are_called() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let everything = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
        for (more, is_asked) in [
            (json!({}), true),
            (everything.clone(), true),
            (json!({"rules": [rule(json!({"operations": ["UPDATE"]}))]}), false),
            (json!({"rules": [rule(json!({"apiGroups": ["apps"]}))]}), false),
            (json!({"rules": [rule(json!({"resources": ["configmaps/status"]}))]}), false),
            (json!({"rules": [rule(json!({"scope": "Namespaced"}))]}), true),
            (json!({"rules": [rule(json!({"scope": "Cluster"}))]}), false),
            (json!({"objectSelector": {"matchLabels": {"a": "b"}}}), true),
            (json!({"objectSelector": {"matchLabels": {"a": "c"}}}), false),
            (json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}), true),
            (json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}), false),
            (json!({"matchConditions": [{"name": "n", "expression": "object.metadata.name == 'x'"}]}), true),
            (
                json!({"matchConditions": [{"name": "n", "expression": "request.userInfo.username == 'x'"}]}),
                false,
            ),
            (
                json!({"matchConditions": [{"name": "n", "expression": "authorizer.requestResource.check('get').allowed()"}]}),
                true,
            ),
        ] {
            configure(&server, "validating", "one", vec![hook("yes", more.clone())]).await;
            assert_eq!(make(&server, "x", json!({"a": "b"})).await.0, 201);
            send(&server, "DELETE", &format!("{GROUP}/validatingwebhookconfigurations/one"), "").await;
            // Webhooks are never called for configurations themselves.
            let expected = if is_asked { 1 } else { 0 };
            assert_eq!(elsewhere.asked().len(), expected, "{more}");
            send(&server, "DELETE", &format!("{MAPS}/x"), "").await;
        }
        let broken = json!({"matchConditions": [{"name": "n", "expression": "object.spec.x == 1"}]});
        configure(&server, "validating", "one", vec![hook("yes", broken)]).await;
        let (status, answer) = make(&server, "x", json!({})).await;
        let expected = "configmaps \"x\" is forbidden: expression 'object.spec.x == 1' resulted in error: no such key: spec";
        assert_eq!((status, answer["message"].as_str().unwrap()), (403, expected));
    });
}

#[test]
fn a_review_has_the_fields_of_the_request() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let rules = json!([rule(json!({"operations": ["*"]}))]);
        configure(&server, "validating", "one", vec![hook("yes", json!({"rules": rules}))]).await;
        let body = json!({"metadata": {"name": "x"}, "data": {"a": "b"}}).to_string();
        send(&server, "POST", &format!("{MAPS}?fieldManager=me&dryRun=All"), body.clone()).await;
        let review = elsewhere.last();
        let request = &review["request"];
        let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "me"});
        for (member, expected) in [
            ("kind", json!({"group": "", "version": "v1", "kind": "ConfigMap"})),
            ("resource", json!({"group": "", "version": "v1", "resource": "configmaps"})),
            ("requestKind", json!({"group": "", "version": "v1", "kind": "ConfigMap"})),
            ("requestResource", json!({"group": "", "version": "v1", "resource": "configmaps"})),
            ("name", json!("x")),
            ("namespace", json!("default")),
            ("operation", json!("CREATE")),
            ("userInfo", json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]})),
            ("oldObject", Value::Null),
            ("dryRun", json!(true)),
            ("options", options),
        ] {
            assert_eq!(request[member], expected, "{member}");
        }
        assert_eq!(
            (&request["object"]["kind"], &request["object"]["data"]),
            (&json!("ConfigMap"), &json!({"a": "b"}))
        );
        assert!(
            !request["object"]["metadata"]["uid"].as_str().unwrap().is_empty(),
            "a validating one sees the end"
        );
        send(&server, "POST", MAPS, body).await;
        send(&server, "DELETE", &format!("{MAPS}/x"), "").await;
        let review = elsewhere.last();
        let request = &review["request"];
        assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
        assert_eq!(request["oldObject"]["data"], json!({"a": "b"}));
    });
}

#[test]
fn patches_are_applied_defaulted_and_validated() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let second = json!({"objectSelector": {"matchLabels": {"made": "yes"}}});
        let hooks = vec![hook("label", json!({"reinvocationPolicy": "IfNeeded"})), hook("data", second)];
        configure(&server, "mutating", "one", hooks).await;
        let (status, made) = make(&server, "x", json!({})).await;
        assert_eq!((status, &made["data"]), (201, &json!({"a": "b"})), "{made}");
        assert_eq!(made["metadata"]["labels"], json!({"made": "yes"}));
        assert_eq!(
            elsewhere.asked(),
            ["label", "data", "label"],
            "who was changed after is called again, once"
        );
        configure(&server, "mutating", "bad", vec![hook("bad-patch", json!({}))]).await;
        let (status, answer) = make(&server, "y", json!({})).await;
        assert_eq!(status, 500, "{answer}");
        let services = json!({"rules": [rule(json!({"resources": ["services"]}))]});
        configure(&server, "mutating", "ports", vec![hook("ports", services)]).await;
        let service =
            json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "a", "port": 80}]}}).to_string();
        let (status, made) = send(&server, "POST", "/api/v1/namespaces/default/services", service).await;
        let port = json!({"name": "b", "port": 81, "protocol": "TCP", "targetPort": 81});
        assert_eq!((status, &made["spec"]["ports"][1]), (201, &port), "{made}");
    });
}

#[test]
fn a_rule_for_one_version_matches_all_versions() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let rule = json!({
            "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["horizontalpodautoscalers"],
        });
        let exact = hook("exact", json!({"rules": [rule], "matchPolicy": "Exact"}));
        configure(&server, "mutating", "one", vec![exact, hook("label", json!({"rules": [rule]}))]).await;
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
        let body = json!({"metadata": {"name": "a"}, "spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "metrics": [metric],
        }});
        let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        let (status, made) = send(&server, "POST", path, body.to_string()).await;
        assert_eq!((status, &made["metadata"]["labels"]), (201, &json!({"made": "yes"})), "{made}");
        assert_eq!((&made["apiVersion"], &made["spec"]["metrics"][0]), (&json!("autoscaling/v2"), &metric));
        let review = elsewhere.last();
        let request = &review["request"];
        assert_eq!(
            (&request["kind"]["version"], &request["requestKind"]["version"]),
            (&json!("v1"), &json!("v2"))
        );
        assert_eq!(request["object"]["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(elsewhere.asked(), ["label"]);
    });
}

#[test]
fn a_scale_is_reviewed_as_a_scale() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}]);
        configure(&server, "validating", "one", vec![hook("yes", json!({"rules": rules}))]).await;
        let path = "/apis/apps/v1/namespaces/default/deployments";
        let body = json!({"metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        assert_eq!(send(&server, "POST", path, body.to_string()).await.0, 201);
        let patch = json!({"spec": {"replicas": 4}}).to_string();
        let path = format!("{path}/web/scale");
        assert_eq!(send_with(&server, "PATCH", &path, "application/merge-patch+json", patch).await.0, 200);
        let review = elsewhere.last();
        let request = &review["request"];
        assert_eq!(
            (&request["kind"]["kind"], &request["object"]["kind"]),
            (&json!("Scale"), &json!("Scale"))
        );
        assert_eq!(
            (&request["object"]["spec"]["replicas"], &request["oldObject"]["spec"]["replicas"]),
            (&json!(4), &json!(1))
        );
        assert_eq!(request["subResource"], "scale");
    });
}

#[test]
fn metadata_removed_by_webhooks_is_restored() {
    simulate(|world| async move {
        let (server, _) = start(&world).await;
        let (_, before) = make(&server, "a", json!({"l": "v"})).await;
        let updates = json!([rule(json!({"operations": ["UPDATE"]}))]);
        let called = hook("whole", json!({"rules": updates}));
        configure(&server, "mutating", "m", vec![called, hook("elsewhere", json!({}))]).await;
        let body = json!({"metadata": {"name": "a"}}).to_string();
        let (status, after) = send(&server, "PUT", &format!("{MAPS}/a"), body).await;
        assert_eq!((status, &after["data"]["a"]), (200, &json!("whole")), "{after}");
        for field in ["uid", "creationTimestamp"] {
            assert_eq!(after["metadata"][field], before["metadata"][field], "{field}");
        }
        let (status, refusal) = make(&server, "b", json!({})).await;
        let expected =
            "the namespace of the provided object does not match the namespace sent on the request";
        assert_eq!((status, &refusal["message"]), (400, &json!(expected)));
    });
}

#[test]
fn webhooks_are_called_for_access_reviews() {
    simulate(|world| async move {
        let (server, elsewhere) = start(&world).await;
        let reviews = rule(json!({"apiGroups": ["authorization.k8s.io"], "resources": ["*"]}));
        configure(&server, "validating", "v", vec![hook("deny", json!({"rules": [reviews]}))]).await;
        let spec = json!({"user": "ann", "nonResourceAttributes": {"path": "/x", "verb": "get"}});
        let (status, answer) = send(
            &server,
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({"spec": spec}).to_string(),
        )
        .await;
        assert_eq!(status, 400, "{answer}");
        assert_eq!(elsewhere.last()["request"]["object"]["spec"], spec);
    });
}

#[test]
fn rejected_requests_get_warnings_too() {
    simulate(|world| async move {
        let (server, _) = start(&world).await;
        let rules = json!([rule(json!({"resources": ["endpoints"]}))]);
        configure(&server, "validating", "v", vec![hook("deny", json!({"rules": rules}))]).await;
        let request = http::Request::post("/api/v1/namespaces/default/endpoints")
            .extension(server::Caller::known("admin", "", vec!["system:masters".to_owned()]));
        let body =
            http_body_util::Full::new(bytes::Bytes::from(r#"{"metadata": {"name": "e"}, "bogus": 1}"#));
        let answer = server.handle(request.body(body).unwrap()).await;
        let warnings: Vec<_> =
            answer.headers().get_all("warning").iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(answer.status(), 400);
        assert!(warnings.iter().any(|it| it.contains("v1 Endpoints is deprecated")), "{warnings:?}");
    });
}

#[test]
fn a_write_without_changes_is_still_validated() {
    simulate(|world| async move {
        let (server, _) = start(&world).await;
        let (status, made) = make(&server, "x", json!({})).await;
        assert_eq!(status, 201, "{made}");
        let path = format!("{MAPS}/x");
        assert_eq!(send(&server, "PUT", &path, made.to_string()).await, (200, made.clone()));
        let rules = json!([rule(json!({"operations": ["UPDATE"]}))]);
        configure(&server, "validating", "v", vec![hook("deny", json!({"rules": rules}))]).await;
        let (status, answer) = send(&server, "PUT", &path, made.to_string()).await;
        assert_eq!(status, 400, "{answer}");
    });
}
