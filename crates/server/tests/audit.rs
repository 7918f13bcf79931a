//! The audit log: the events of a request and their content.

use crate::access::{Place, place_with};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use server::{Answer, Audit, AuditPolicy, Config, Exchange, Outbound};
use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};
use world::World;

const MAPS: &str = "/api/v1/namespaces/a/configmaps";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// A file in memory.
#[derive(Clone, Default)]
pub(crate) struct LogFile(Arc<Mutex<Vec<u8>>>);

impl LogFile {
    /// What was written since the last call.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A control plane that records every request at some level.
struct Watched {
    place: Place,
    paper: LogFile,
}

impl Watched {
    async fn start(world: World, rules: &str) -> Watched {
        Watched::start_with(world, rules, Config::default()).await
    }

    async fn start_with(world: World, rules: &str, config: Config) -> Watched {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
        let paper = LogFile::default();
        let audit =
            Audit { policy: AuditPolicy::parse(text.as_bytes()).unwrap(), out: Box::new(paper.clone()) };
        let place = place_with(world, Config { audit: Some(audit), ..config }).await;
        let watched = Watched { place, paper };
        watched.events().await;
        watched
    }

    /// The events since the last call.
    async fn events(&self) -> Vec<Value> {
        self.place.server.flush().await;
        self.paper.take().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn simulate<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    world::simulate(9, story).unwrap();
}

#[test]
fn an_event_has_user_request_and_response() {
    simulate(|world| async move {
        let watched = Watched::start(world, "rules: [{level: Metadata}]").await;
        let headers = [
            ("authorization", "Bearer root".to_owned()),
            ("user-agent", "tester/1".to_owned()),
            ("x-forwarded-for", "10.0.0.1, 10.0.0.2".to_owned()),
            ("audit-id", "my-own".to_owned()),
        ];
        let body = json!({"metadata": {"name": "m"}, "data": {"k": "v"}});
        let (code, _) = watched.place.send(&headers, &format!("POST {MAPS}?fieldManager=x"), body).await;
        assert_eq!(code, 201);
        let events = watched.events().await;
        let [received, complete] = &events[..] else { panic!("{events:?}") };
        assert_eq!(
            (&received["stage"], &complete["stage"]),
            (&json!("RequestReceived"), &json!("ResponseComplete"))
        );
        for (field, expected) in [
            ("kind", json!("Event")),
            ("apiVersion", json!("audit.k8s.io/v1")),
            ("level", json!("Metadata")),
            ("auditID", json!("my-own")),
            ("requestURI", json!(format!("{MAPS}?fieldManager=x"))),
            ("verb", json!("create")),
            (
                "user",
                json!({"username": "root", "uid": "u-root", "groups": ["system:masters", "system:authenticated"]}),
            ),
            ("sourceIPs", json!(["10.0.0.1", "10.0.0.2"])),
            ("userAgent", json!("tester/1")),
            (
                "objectRef",
                json!({"resource": "configmaps", "namespace": "a", "name": "m", "apiVersion": "v1"}),
            ),
            ("responseStatus", json!({"metadata": {}, "code": 201})),
            (
                "annotations",
                json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}),
            ),
            ("requestObject", Value::Null),
            ("responseObject", Value::Null),
        ] {
            assert_eq!(complete[field], expected, "{field}: {complete}");
        }
        let reference = json!({"resource": "configmaps", "namespace": "a", "apiVersion": "v1"});
        assert_eq!((&received["objectRef"], &received["responseStatus"]), (&reference, &Value::Null));
        assert_eq!(received["requestReceivedTimestamp"], received["stageTimestamp"]);
        assert_eq!(received["stageTimestamp"].as_str().unwrap().len(), "2006-01-02T15:04:05.000000Z".len());
    });
}

#[test]
fn levels_limit_what_is_recorded() {
    simulate(|world| async move {
        let rules = "
omitStages: [RequestReceived]
rules:
- {level: None, resources: [{group: '', resources: [services]}]}
- {level: Metadata, resources: [{group: '', resources: [secrets]}]}
- {level: Request, resources: [{group: '', resources: [configmaps]}], omitManagedFields: true}
- {level: RequestResponse, resources: [{group: '', resources: [serviceaccounts]}], omitManagedFields: true}
- {level: None}
";
        let watched = Watched::start(world, rules).await;
        let place = &watched.place;
        let ask = async |what: &str, body: Value| {
            place.by("root", what, body).await;
            watched.events().await
        };
        let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "xyzzy"}});
        let events = ask("POST /api/v1/namespaces/a/secrets", secret).await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(!events[0].to_string().contains("xyzzy"), "{events:?}");
        assert!(events[0].get("requestObject").is_none() && events[0].get("responseObject").is_none());
        let events = ask("GET /api/v1/namespaces/a/secrets/s", Value::Null).await;
        assert!(!events[0].to_string().contains("eHl6enk"), "{events:?}");

        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}});
        let events = ask(&format!("POST {MAPS}"), map.clone()).await;
        assert_eq!(
            (&events[0]["requestObject"], events[0].get("responseObject")),
            (&map, None),
            "{events:?}"
        );
        let events = ask(&format!("PATCH {MAPS}/m"), json!({"data": {"k": "w"}})).await;
        assert_eq!(events[0]["requestObject"], json!({"data": {"k": "w"}}));
        assert_eq!(events[0]["objectRef"]["name"], "m");

        let account = json!({"metadata": {"name": "new"}});
        let events = ask("POST /api/v1/namespaces/a/serviceaccounts", account).await;
        let answered = &events[0]["responseObject"];
        assert_eq!(
            (&answered["kind"], &answered["metadata"]["name"]),
            (&json!("ServiceAccount"), &json!("new"))
        );
        assert_eq!(answered["metadata"].get("managedFields"), None);
        let events = ask("GET /api/v1/namespaces/a/serviceaccounts", Value::Null).await;
        assert_eq!(events[0]["responseObject"]["items"].as_array().unwrap().len(), 3, "{events:?}");
        let events = ask("GET /api/v1/namespaces/a/serviceaccounts/none", Value::Null).await;
        let status = &events[0]["responseStatus"];
        assert_eq!((&status["code"], &status["reason"]), (&json!(404), &json!("NotFound")), "{status}");
        assert_eq!(status["message"], r#"serviceaccounts "none" not found"#);
        let events = ask("DELETE /api/v1/namespaces/a/serviceaccounts/new", Value::Null).await;
        assert_eq!(events[0]["responseObject"]["metadata"]["name"], "new", "{events:?}");
        assert_eq!(ask("GET /api/v1/namespaces/a/services", Value::Null).await, Vec::<Value>::new());
        assert_eq!(ask("GET /healthz", Value::Null).await, Vec::<Value>::new());
    });
}

#[test]
fn audit_records_requests_cut_off_by_the_client() {
    simulate(|world| async move {
        let watched = Watched::start(world, "rules: [{level: RequestResponse}]").await;
        let wrong = [("authorization", "Bearer wrong".to_owned())];
        watched.place.send(&wrong, "GET /api", Value::Null).await;
        let events = watched.events().await;
        assert_eq!(events[0]["responseObject"]["kind"], "Status", "{events:?}");
        assert_eq!(events[0]["responseObject"]["code"], 401);
    });
}

#[test]
fn rejections_watches_and_other_paths_are_recorded() {
    simulate(|world| async move {
        let watched =
            Watched::start(world, "rules: [{level: Metadata, omitStages: [RequestReceived]}]").await;
        let place = &watched.place;
        // As HTTP/2 sends it.
        let wrong = [("authorization", "Bearer wrong".to_owned())];
        place.send(&wrong, "GET https://here:1/api?a=b", Value::Null).await;
        let events = watched.events().await;
        assert_eq!(events[0]["requestURI"], "/api?a=b");
        assert_eq!((&events[0]["stage"], &events[0]["user"]), (&json!("ResponseStarted"), &json!({})));
        assert_eq!(events[0]["responseStatus"]["message"], "Unauthorized", "{events:?}");
        assert!(!events[0].to_string().contains("wrong"), "{events:?}");

        place.by("ann", &format!("GET {MAPS}"), Value::Null).await;
        let events = watched.events().await;
        assert_eq!(events[0]["responseStatus"]["code"], 403);
        assert_eq!(events[0]["annotations"]["authorization.k8s.io/decision"], "forbid");

        let headers = [("authorization", "Bearer root".to_owned()), ("impersonate-user", "ann".to_owned())];
        place.send(&headers, &format!("GET {MAPS}"), Value::Null).await;
        let events = watched.events().await;
        let (user, acting) = (&events[0]["user"]["username"], &events[0]["impersonatedUser"]);
        assert_eq!(
            (user, acting),
            (&json!("root"), &json!({"username": "ann", "groups": ["system:authenticated"]})),
            "{events:?}"
        );

        let watch = format!("GET {MAPS}?watch=1&timeoutSeconds=5");
        place.by("root", &watch, Value::Null).await;
        let events = watched.events().await;
        let stages: Vec<_> = events.iter().map(|event| event["stage"].as_str().unwrap()).collect();
        assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
        assert_eq!(events[0]["verb"], "watch");
        assert!(events[0]["stageTimestamp"].as_str() < events[1]["stageTimestamp"].as_str());

        let (server, world) = (place.server.clone(), place.world.clone());
        let request = http::Request::get(format!("{MAPS}?watch=1")).header("authorization", "Bearer root");
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        drop(world.timeout(Duration::from_secs(1), async { server.handle(request).await }).await);
        let events = watched.events().await;
        assert_eq!(events.last().unwrap()["stage"], "ResponseComplete", "an unread watch is over");
    });
}

#[test]
fn admission_policies_and_pod_security_add_annotations() {
    simulate(|world| async move {
        let watched = Watched::start(
            world,
            "rules: [{level: Metadata, verbs: [create], omitStages: [RequestReceived]}]",
        )
        .await;
        let place = &watched.place;
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
        let policy = json!({"metadata": {"name": "p.example.com"}, "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "true"}, {"expression": "object.metadata.name != 'bad'", "message": "bad name"}],
            "auditAnnotations": [
                {"key": "named", "valueExpression": "'it is ' + object.metadata.name"},
                {"key": "silent", "valueExpression": "null"},
            ],
        }});
        place.root(&format!("POST {HOOKS}/validatingadmissionpolicies"), policy).await;
        let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p.example.com", "validationActions": ["Audit"]}});
        place.root(&format!("POST {HOOKS}/validatingadmissionpolicybindings"), binding).await;
        watched.events().await;
        place.root(&format!("POST {MAPS}"), json!({"metadata": {"name": "bad"}})).await;
        let events = watched.events().await;
        let annotations = &events[0]["annotations"];
        let failure = r#"[{"message":"bad name","policy":"p.example.com","binding":"b","expressionIndex":1,"validationActions":["Audit"]}]"#;
        assert_eq!(
            annotations["validation.policy.admission.k8s.io/validation_failure"], failure,
            "{annotations}"
        );
        assert_eq!(annotations["p.example.com/named"], "it is bad", "{annotations}");
        assert_eq!(annotations.get("p.example.com/silent"), None);

        let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/audit": "restricted"}}});
        place.root("PATCH /api/v1/namespaces/a", labels).await;
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        place.root("POST /api/v1/namespaces/a/pods", pod).await;
        let events = watched.events().await;
        let annotations = &events[0]["annotations"];
        assert_eq!(annotations["pod-security.kubernetes.io/enforce-policy"], "privileged:latest");
        let violations = annotations["pod-security.kubernetes.io/audit-violations"].as_str().unwrap();
        assert!(violations.starts_with("would violate PodSecurity \"restricted:latest\": "), "{violations}");
    });
}

/// Webhooks that add a label and an audit annotation; one of them fails.
#[derive(Debug)]
struct Webhooks;

impl Outbound for Webhooks {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            if exchange.url.contains("down") {
                return Err("connection refused".to_owned());
            }
            let review: Value = serde_json::from_slice(&exchange.body).unwrap();
            let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"secret": "xyzzy"}}]);
            let response = json!({
                "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
                "patch": STANDARD.encode(patch.to_string()), "auditAnnotations": {"seen": "yes", "no/key/": "x"},
            });
            let answer =
                json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
            Ok(Answer {
                status: 200,
                body: answer.to_string().into(),
                content_type: "application/json".to_owned(),
            })
        })
    }
}

#[test]
fn webhooks_add_annotations() {
    for (level, tells_patch) in [("Metadata", false), ("Request", true)] {
        simulate(|world| async move {
            let rules =
                format!("rules: [{{level: {level}, verbs: [create], omitStages: [RequestReceived]}}]");
            let config = Config { outbound: Arc::new(Webhooks), ..Config::default() };
            let watched = Watched::start_with(world, &rules, config).await;
            let hook = |name: &str| {
                json!({
                    "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
                    "failurePolicy": "Ignore", "clientConfig": {"url": format!("https://hooks.example.com/{name}")},
                    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                })
            };
            let body = json!({"metadata": {"name": "one"}, "webhooks": [hook("label"), hook("down")]});
            watched.place.root(&format!("POST {HOOKS}/mutatingwebhookconfigurations"), body).await;
            watched.events().await;
            watched.place.root(&format!("POST {MAPS}"), json!({"metadata": {"name": "m"}})).await;
            let events = watched.events().await;
            let annotations = &events[0]["annotations"];
            let deed = r#"{"configuration":"one","webhook":"label.example.com""#;
            let patch = r#"[{"op":"add","path":"/metadata/labels","value":{"secret":"xyzzy"}}]"#;
            for (key, expected) in [
                ("label.example.com/seen", Some("yes".to_owned())),
                ("label.example.com/no/key/", None),
                (
                    "mutation.webhook.admission.k8s.io/round_0_index_0",
                    Some(format!(r#"{deed},"mutated":true}}"#)),
                ),
                (
                    "patch.webhook.admission.k8s.io/round_0_index_0",
                    tells_patch.then(|| format!(r#"{deed},"patch":{patch},"patchType":"JSONPatch"}}"#)),
                ),
                (
                    "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1",
                    Some("down.example.com".to_owned()),
                ),
            ] {
                let found = annotations.get(key).map(|it| it.as_str().unwrap().to_owned());
                assert_eq!(found, expected, "{level}: {key}: {annotations}");
            }
            assert_eq!(events[0].to_string().contains("xyzzy"), tells_patch, "{level}: {events:?}");
        });
    }
}
