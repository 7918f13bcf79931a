//! Webhooks and policies: the server calls them exactly where their rules and selectors match.

use super::control_plane::{post, send, with_config};
use crate::{
    Target,
    recorded::{divide, seed},
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use server::{Answer, Config, Exchange, Outbound, Server};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

pub(super) const TARGET: Target = Target { name: "matching", check, seeds, words: WORDS };

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

const WORDS: &[&str] = &[
    "\"operations\":[\"CREATE\"]",
    "\"operations\":[\"UPDATE\",\"DELETE\"]",
    "\"operations\":[\"*\"]",
    "\"apiGroups\":[\"\"]",
    "\"apiGroups\":[\"apps\"]",
    "\"apiVersions\":[\"v1\"]",
    "\"resources\":[\"configmaps\"]",
    "\"resources\":[\"*/*\"]",
    "\"resources\":[\"deployments/*\"]",
    "\"resources\":[\"*/status\"]",
    "\"scope\":\"Cluster\"",
    "\"scope\":\"Namespaced\"",
    "\"matchLabels\":{\"a\":\"b\"}",
    "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"b\"]}]",
    "\"key\":\"kubernetes.io/metadata.name\"",
    "\"operator\":\"DoesNotExist\"",
    "\"operator\":\"Exists\"",
    "null",
    "\"*\"",
];

fn seeds() -> Vec<Vec<u8>> {
    let rule = |more: &str| {
        format!(
            r#"[{{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]{more}}}]"#
        )
    };
    let everything = r#"[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]"#;
    let all = [
        (rule(""), "null", "null"),
        (rule(r#","scope":"Cluster""#), "null", "{}"),
        (everything.to_owned(), r#"{"matchLabels":{"a":"b"}}"#, "null"),
        (everything.to_owned(), "null", r#"{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["default"]}]}"#),
        (
            r#"[{"operations":["UPDATE","DELETE"],"apiGroups":["apps",""],"apiVersions":["v1"],"resources":["deployments/status","configmaps","*"]}]"#.to_owned(),
            r#"{"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"c","operator":"DoesNotExist"}]}"#,
            "{}",
        ),
    ];
    let parts = all.iter().map(|(rules, objects, namespaces)| [rules.as_str(), objects, namespaces]);
    parts.map(|parts| seed(b'!', &parts.map(str::as_bytes))).collect()
}

/// A webhook that rejects every request, and counts them.
#[derive(Debug, Default)]
struct RejectingWebhook(AtomicUsize);

impl Outbound for RejectingWebhook {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        self.0.fetch_add(1, SeqCst);
        let review: Value = serde_json::from_slice(&exchange.body).unwrap();
        let response = json!({"uid": review["request"]["uid"], "allowed": false});
        let answer =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let answer = Answer {
            status: 200,
            body: answer.to_string().into(),
            content_type: "application/json".to_owned(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

/// A write as dry run.
struct Probe {
    method: &'static str,
    uri: &'static str,
    body: Value,
    facts: Facts,
}

/// The attributes that rules and selectors match.
#[derive(Debug)]
struct Facts {
    operation: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    name: &'static str,
    is_namespaced: bool,
    labels: Value,
    /// Labels of its namespace.
    namespace_labels: Value,
}

/// What an absent list of rules means.
#[derive(Clone, Copy, PartialEq)]
enum AbsentRules {
    Everything,
    Nothing,
}

fn probes() -> Vec<Probe> {
    let object = |name: &str| json!({"metadata": {"name": name, "labels": {"a": "b"}}});
    let in_default = json!({"kubernetes.io/metadata.name": "default"});
    let facts = |operation, resource, name, labels| Facts {
        operation,
        group: "",
        resource,
        subresource: "",
        name,
        is_namespaced: true,
        labels,
        namespace_labels: in_default.clone(),
    };
    // A namespace is in itself, and its name label is its own name.
    let own = json!({"a": "b", "kubernetes.io/metadata.name": "n"});
    let labels = json!({"a": "b"});
    vec![
        Probe {
            method: "POST",
            uri: "/api/v1/namespaces/default/configmaps?dryRun=All",
            body: object("x"),
            facts: facts("CREATE", "configmaps", "x", labels.clone()),
        },
        Probe {
            method: "DELETE",
            uri: "/api/v1/namespaces/default/configmaps/c?dryRun=All",
            body: json!({}),
            facts: facts("DELETE", "configmaps", "c", labels.clone()),
        },
        Probe {
            method: "POST",
            uri: "/api/v1/namespaces?dryRun=All",
            body: object("n"),
            facts: Facts {
                is_namespaced: false,
                namespace_labels: own.clone(),
                ..facts("CREATE", "namespaces", "n", own)
            },
        },
        Probe {
            method: "PATCH",
            uri: "/apis/apps/v1/namespaces/default/deployments/d/status?dryRun=All",
            body: json!({"status": {"observedGeneration": 7}}),
            facts: Facts {
                group: "apps",
                subresource: "status",
                ..facts("UPDATE", "deployments", "d", labels)
            },
        },
    ]
}

fn check(input: &[u8]) {
    let Some((rules, rest)) = input.get(1..).and_then(divide) else { return };
    let Some((objects, namespaces)) = divide(rest) else { return };
    let json = |text| serde_json::from_slice::<Value>(text).ok();
    let (Some(rules), Some(objects), Some(namespaces)) = (json(rules), json(objects), json(namespaces))
    else {
        return;
    };
    let elsewhere = Arc::new(RejectingWebhook::default());
    let outbound: Arc<dyn Outbound> = Arc::<RejectingWebhook>::clone(&elsewhere);
    with_config(Config { outbound, ..Config::default() }, |server| async move {
        prepare(&server).await;
        let hook = json!({"metadata": {"name": "w"}, "webhooks": [{
            "name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://w.example.com/"}, "matchPolicy": "Exact",
            "rules": rules, "objectSelector": objects, "namespaceSelector": namespaces,
        }]});
        let made = post(&server, &format!("{GROUP}/validatingwebhookconfigurations"), &hook).await;
        if made.code == 201 {
            let hook = &made.json()["webhooks"][0];
            for probe in probes() {
                let before = elsewhere.0.load(SeqCst);
                let code = tried(&server, &probe).await;
                let is_asked = elsewhere.0.load(SeqCst) > before;
                let expected = probe.facts.fit(&hook["rules"], hook, AbsentRules::Nothing);
                assert_eq!(is_asked, expected, "{:?} and {hook}", probe.facts);
                assert_eq!(is_asked, code >= 400, "{:?} and {hook}", probe.facts);
            }
            let path = format!("{GROUP}/validatingwebhookconfigurations/w");
            send(&server, "DELETE", &path, "application/json", b"").await;
        }
        let policy = json!({"metadata": {"name": "p"}, "spec": {
            "validations": [{"expression": "false"}],
            "matchConstraints": {
                "matchPolicy": "Exact", "resourceRules": rules, "objectSelector": objects,
                "namespaceSelector": namespaces,
            },
        }});
        let made = post(&server, &format!("{GROUP}/validatingadmissionpolicies"), &policy).await;
        let binding =
            json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
        let bound = post(&server, &format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await;
        assert_eq!(bound.code, 201);
        if made.code == 201 {
            let matched = &made.json()["spec"]["matchConstraints"];
            for probe in probes() {
                let expected = probe.facts.fit(&matched["resourceRules"], matched, AbsentRules::Everything);
                assert_eq!(tried(&server, &probe).await >= 400, expected, "{:?} and {matched}", probe.facts);
            }
        }
    });
}

async fn prepare(server: &Server) {
    let config_map = json!({"metadata": {"name": "c", "labels": {"a": "b"}}});
    assert_eq!(post(server, "/api/v1/namespaces/default/configmaps", &config_map).await.code, 201);
    let deployment = json!({
        "metadata": {"name": "d", "labels": {"a": "b"}},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    });
    let made = post(server, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    assert_eq!(made.code, 201);
}

async fn tried(server: &Server, probe: &Probe) -> u16 {
    let content_type = match probe.method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = probe.body.to_string();
    send(server, probe.method, probe.uri, content_type, body.as_bytes()).await.unwrap().code
}

impl Facts {
    /// A naive reading of rules and selectors, without the server's own code.
    fn fit(&self, rules: &Value, selectors: &Value, absent_rules: AbsentRules) -> bool {
        let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_open = rules.is_empty() && absent_rules == AbsentRules::Everything;
        (is_open || rules.iter().any(|rule| self.fit_rule(rule)))
            && selected(&selectors["objectSelector"], &self.labels)
            && selected(&selectors["namespaceSelector"], &self.namespace_labels)
    }

    fn fit_rule(&self, rule: &Value) -> bool {
        let list = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        let has = |field: &str, wanted: &str| list(field).any(|it| it == "*" || it == wanted);
        let is_resource = |it: &str| {
            let (resource, subresource) = it.split_once('/').unwrap_or((it, ""));
            (resource == "*" || resource == self.resource)
                && (subresource == "*" || subresource == self.subresource)
        };
        let fits_scope = match rule["scope"].as_str() {
            Some("Namespaced") => self.is_namespaced,
            Some("Cluster") => !self.is_namespaced,
            _ => true,
        };
        fits_scope
            && has("operations", self.operation)
            && has("apiGroups", self.group)
            && has("apiVersions", "v1")
            && list("resources").any(is_resource)
            && (list("resourceNames").next().is_none() || list("resourceNames").any(|it| it == self.name))
    }
}

fn selected(selector: &Value, labels: &Value) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let fits = |it: &Value| {
        let value = it["key"].as_str().and_then(|key| labels.get(key));
        let values = it["values"].as_array().map(Vec::as_slice).unwrap_or_default();
        match it["operator"].as_str() {
            Some("In") => value.is_some_and(|value| values.contains(value)),
            Some("NotIn") => value.is_none_or(|value| !values.contains(value)),
            Some("Exists") => value.is_some(),
            _ => value.is_none(),
        }
    };
    equal.into_iter().all(|(key, value)| labels.get(key) == Some(value)) && expressions.into_iter().all(fits)
}
