//! Overload: which requests are served, queued and rejected, and at what cost.

mod slow_readers;
mod upkeep;

use crate::{
    client::send,
    slow_store::{Slow, StoreAccess},
};
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Body, Caller, Config, Server};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use world::World;

const OBJECT: &str = "/api/v1/namespaces/default/configmaps/one";
const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

/// A server with that many seats, one object that takes `delay` to read, and users who may read it.
async fn start(world: &World, seats: u32, delay: Duration) -> Server {
    let delay_ms = Arc::new(AtomicU64::new(0));
    let read_delay = Arc::clone(&delay_ms);
    let store = Arc::new(Slow::new(world, move |asked| match asked {
        // Only reads by requests are delayed: settings and roles are read at once.
        StoreAccess::Get(key) if key.starts_with(b"/registry/configmaps/") => {
            Duration::from_millis(read_delay.load(Relaxed))
        }
        StoreAccess::Get(_) | StoreAccess::Commit => Duration::ZERO,
    }));
    let config = Config { seats, ..Config::default() };
    let server = Server::start(world, store, config).await.unwrap();
    send(&server, "POST", "/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"one"}}"#).await;
    let binding = json!({
        "metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}],
    });
    let made =
        send(&server, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding.to_string());
    assert_eq!(made.await.0, 201);
    delay_ms.store(delay.as_millis() as u64, Relaxed);
    server
}

async fn ask(server: &Server, caller: Caller, path: &str) -> Response<Body> {
    let mut request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    request.extensions_mut().insert(caller);
    server.handle(request).await
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

fn user(name: &str) -> Caller {
    Caller::known(name, "", vec![])
}

#[test]
fn under_ten_times_the_load_quiet_users_are_served() {
    let load = |seed| {
        let run = world::simulate(seed, |world| async move {
            let delay = Duration::from_millis(20);
            let server = start(&world, 60, delay).await;
            let begun = world.now();
            let one = |name: String, after: Duration| {
                let (world, server) = (world.clone(), server.clone());
                async move {
                    world.sleep(after).await;
                    let since = world.now();
                    let response = ask(&server, user(&name), OBJECT).await;
                    (response.status().as_u16(), world.now().since(since))
                }
            };
            // Ten thousand at once from one user, and one in ten milliseconds from another.
            let noisy = (0..10_000).map(|_| world.spawn("noisy", one("noisy".to_owned(), Duration::ZERO)));
            let quiet = (0..10).map(|at| world.spawn("quiet", one("quiet".to_owned(), delay * at / 2)));
            let (noisy, quiet): (Vec<_>, Vec<_>) = (noisy.collect(), quiet.collect());
            for answered in join_all(quiet).await {
                let (code, took) = answered.unwrap();
                assert_eq!(code, 200);
                assert!(took <= delay * 4, "a quiet request took {took:?}");
            }
            let mut codes: BTreeMap<u16, u32> = BTreeMap::new();
            for answered in join_all(noisy).await {
                *codes.entry(answered.unwrap().0).or_default() += 1;
            }
            // Six queues of fifty wait; the others are rejected at once.
            assert!(codes[&200] >= 300 && codes[&200] < 400, "{codes:?}");
            assert_eq!(codes[&200] + codes[&429], 10_000, "{codes:?}");
            assert!(world.now().since(begun) < Duration::from_secs(5));
            // system:masters are served meanwhile, and all others afterwards.
            assert_eq!(send(&server, "GET", OBJECT, "").await.0, 200);
            assert_eq!(ask(&server, user("noisy"), OBJECT).await.status(), 200);
        })
        .unwrap();
        run.fingerprint
    };
    assert_eq!(load(7), load(7), "the same seed gives the same run");
}

#[test]
fn the_rejection_is_that_of_kubernetes() {
    world::simulate(1, |world| async move {
        let server = start(&world, 60, Duration::from_secs(40)).await;
        let made =
            tighten(&server, &json!({"kind": "User", "user": {"name": "tom"}}), json!({"type": "Reject"}))
                .await;
        let waiting = {
            let server = server.clone();
            world.spawn("first", async move { ask(&server, user("tom"), OBJECT).await })
        };
        world.sleep(Duration::from_secs(1)).await;
        let refused = ask(&server, user("tom"), OBJECT).await;
        let header = |name: &str| refused.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(refused.status(), 429);
        assert_eq!(header("retry-after"), "1");
        assert_eq!(header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(header(SCHEMA_UID), made["metadata"]["uid"].as_str().unwrap());
        let level = send(&server, "GET", &format!("{FLOW}/prioritylevelconfigurations/tight"), "").await.1;
        assert_eq!(header(LEVEL_UID), level["metadata"]["uid"].as_str().unwrap());
        assert_eq!(text(refused).await, "Too many requests, please try again later.\n");
        // Other users are not affected, and all responses have the classification headers.
        for (caller, path, code) in [
            (user("ann"), "/version", 200),
            (user("ann"), "/api/v1/namespaces/default/secrets", 403),
            (
                user("ann"),
                "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1&timeoutSeconds=1",
                200,
            ),
        ] {
            let response = ask(&server, caller, path).await;
            assert_eq!(response.status(), code, "{path}");
            assert!(
                response.headers().contains_key(SCHEMA_UID) && response.headers().contains_key(LEVEL_UID)
            );
        }
        let dump = send_dump(&server).await;
        assert!(dump.starts_with("PriorityLevelName, ActiveQueues, IsIdle, "), "{dump}");
        let tight = dump.lines().find(|line| line.starts_with("tight,")).unwrap();
        let cells: Vec<&str> = tight.split_whitespace().collect();
        assert_eq!(cells, ["tight,", "0,", "false,", "false,", "0,", "1,", "1,", "1,", "0,", "0"], "{dump}");
        assert_eq!(waiting.await.unwrap().status(), 200);
    })
    .unwrap();
}

/// Creates a level of one seat for a subject's requests in namespaces; returns its schema.
async fn tighten(server: &Server, subject: &Value, response: Value) -> Value {
    let limited =
        json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": response});
    let level = json!({"metadata": {"name": "tight"}, "spec": {"type": "Limited", "limited": limited}});
    let (code, made) =
        send(server, "POST", &format!("{FLOW}/prioritylevelconfigurations"), level.to_string()).await;
    assert_eq!(code, 201, "{made}");
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]});
    let schema = json!({"metadata": {"name": "tight"}, "spec": {
        "matchingPrecedence": 10, "priorityLevelConfiguration": {"name": "tight"},
        "rules": [{"subjects": [subject], "resourceRules": [rule]}],
    }});
    let (code, made) = send(server, "POST", &format!("{FLOW}/flowschemas"), schema.to_string()).await;
    assert_eq!(code, 201, "{made}");
    made
}

async fn send_dump(server: &Server) -> String {
    text(ask(server, admin(), "/debug/api_priority_and_fairness/dump_priority_levels").await).await
}

async fn send_metrics(server: &Server) -> String {
    text(ask(server, admin(), "/metrics").await).await
}

fn admin() -> Caller {
    Caller::known("admin", "", vec!["system:masters".to_owned()])
}

#[test]
fn requests_that_wait_too_long_are_rejected_and_cancelled_ones_make_room() {
    world::simulate(3, |world| async move {
        let server = start(&world, 60, Duration::from_secs(50)).await;
        let everybody = json!({"kind": "Group", "group": {"name": "system:authenticated"}});
        tighten(&server, &everybody, json!({"type": "Queue", "queuing": {}})).await;
        let ask_as = |name: &'static str, path: &'static str| {
            let (world, inner) = (world.clone(), server.clone());
            world.clone().spawn("ask", async move {
                let since = world.now();
                let response = ask(&inner, user(name), path).await;
                (response.status().as_u16(), world.now().since(since).as_secs())
            })
        };
        // The first has the seat, the others wait for a quarter of their deadline.
        let first = ask_as("ann", OBJECT);
        world.sleep(Duration::from_secs(1)).await;
        let (second, third) =
            (ask_as("bob", OBJECT), ask_as("cleo", "/api/v1/namespaces/default/configmaps/one?timeout=8s"));
        let hung_up = ask_as("dan", OBJECT);
        world.sleep(Duration::from_millis(1)).await;
        drop(hung_up);
        assert_eq!(third.await.unwrap(), (429, 2));
        assert_eq!(second.await.unwrap(), (429, 15));
        assert_eq!(first.await.unwrap(), (200, 50));
        let dump = send_dump(&server).await;
        let cells: Vec<&str> =
            dump.lines().find(|it| it.starts_with("tight,")).unwrap().split_whitespace().collect();
        assert_eq!(cells[4..], ["0,", "0,", "1,", "3,", "2,", "1"], "{dump}");
        let page = send_metrics(&server).await;
        for expected in [
            r#"rejected_requests_total{flow_schema="tight",priority_level="tight",reason="time-out"} 2"#,
            r#"rejected_requests_total{flow_schema="tight",priority_level="tight",reason="cancelled"} 1"#,
            r#"dispatched_requests_total{flow_schema="tight",priority_level="tight"} 1"#,
            r#"current_inqueue_requests{flow_schema="tight",priority_level="tight"} 0"#,
            r#"current_executing_seats{flow_schema="tight",priority_level="tight"} 0"#,
            r#"request_wait_duration_seconds_count{execute="true",flow_schema="tight",priority_level="tight"} 1"#,
            r#"request_wait_duration_seconds_count{execute="false",flow_schema="tight",priority_level="tight"} 3"#,
            r#"request_execution_seconds_sum{flow_schema="tight",priority_level="tight",type="regular"} 50"#,
        ] {
            let expected = format!("apiserver_flowcontrol_{expected}");
            assert!(page.lines().any(|line| line == expected), "{expected}\n{page}");
        }
    })
    .unwrap();
}

#[test]
fn requests_have_deadlines_and_watches_have_none() {
    world::simulate(4, |world| async move {
        let server = start(&world, 600, Duration::from_secs(100)).await;
        for (query, seconds) in [("?timeout=5s", 5), ("", 60)] {
            let since = world.now();
            let response = ask(&server, user("ann"), &format!("{OBJECT}{query}")).await;
            assert_eq!((response.status().as_u16(), world.now().since(since).as_secs()), (504, seconds));
            let status: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
            assert_eq!(status["message"], "Timeout: request did not complete within the allotted timeout");
            assert_eq!((status["reason"].as_str(), status["code"].as_u64()), (Some("Timeout"), Some(504)));
        }
        let bad = ask(&server, user("ann"), &format!("{OBJECT}?timeout=soon")).await;
        assert_eq!(bad.status(), 400);
        assert!(
            text(bad).await.contains(
                r#"invalid timeout specified in the request URL - time: invalid duration \"soon\""#
            )
        );
        let since = world.now();
        let watch =
            ask(&server, user("ann"), "/api/v1/configmaps?watch=1&timeoutSeconds=300&timeout=1s").await;
        assert_eq!(watch.status(), 200);
        text(watch).await;
        assert_eq!(world.now().since(since).as_secs(), 300);
    })
    .unwrap();
}

#[test]
fn flow_schemas_report_a_missing_priority_level() {
    world::simulate(5, |world| async move {
        let server = start(&world, 600, Duration::ZERO).await;
        let schemas = format!("{FLOW}/flowschemas");
        let dangling = async |name: &str| {
            let schema = send(&server, "GET", &format!("{schemas}/{name}"), "").await.1;
            let condition = schema["status"]["conditions"][0].clone();
            (condition["status"].as_str().unwrap_or_default().to_owned(), condition["message"].clone(), schema)
        };
        let (status, message, schema) = dangling("global-default").await;
        assert_eq!(status, "False", "{schema}");
        assert_eq!(message, r#"This FlowSchema references the PriorityLevelConfiguration object named "global-default" and it exists"#);
        let owner = &schema["metadata"]["managedFields"][0];
        assert_eq!(owner["manager"], "api-priority-and-fairness-config-consumer-v1", "{schema}");
        assert_eq!((owner["operation"].as_str(), owner["subresource"].as_str()), (Some("Apply"), Some("status")));
        let schema = json!({"metadata": {"name": "lost"}, "spec": {"priorityLevelConfiguration": {"name": "later"}}});
        assert_eq!(send(&server, "POST", &schemas, schema.to_string()).await.0, 201);
        let (status, message, _) = dangling("lost").await;
        assert_eq!(status, "True");
        assert_eq!(message, r#"This FlowSchema references the PriorityLevelConfiguration object named "later" but there is no such object"#);
        let level = json!({
            "metadata": {"name": "later"},
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
        });
        let levels = format!("{FLOW}/prioritylevelconfigurations");
        assert_eq!(send(&server, "POST", &levels, level.to_string()).await.0, 201);
        assert_eq!(dangling("lost").await.0, "False");
        assert_eq!(send(&server, "DELETE", &format!("{levels}/later"), "").await.0, 200);
        assert_eq!(dangling("lost").await.0, "True");
    })
    .unwrap();
}

#[test]
fn an_impersonating_caller_takes_the_impersonated_users_seat() {
    world::simulate(6, |world| async move {
        let server = start(&world, 600, Duration::ZERO).await;
        let made =
            tighten(&server, &json!({"kind": "User", "user": {"name": "tom"}}), json!({"type": "Reject"}))
                .await;
        let tight = made["metadata"]["uid"].as_str().unwrap();
        for (caller, acts_as, path, is_tight) in [
            (user("tom"), None, OBJECT, true),
            (admin(), None, OBJECT, false),
            (admin(), Some("tom"), OBJECT, true),
            (admin(), Some("ann"), OBJECT, false),
            (admin(), Some("tom"), "/version", false),
        ] {
            let mut request = Request::get(path);
            if let Some(name) = acts_as {
                request = request.header("impersonate-user", name);
            }
            let mut request = request.body(Full::<Bytes>::default()).unwrap();
            request.extensions_mut().insert(caller.clone());
            let response = server.handle(request).await;
            assert_eq!(response.status(), 200, "{caller:?} as {acts_as:?}");
            assert_eq!(response.headers()[SCHEMA_UID] == tight, is_tight, "{caller:?} as {acts_as:?}");
        }
        // Rejected impersonation is reported before any seat is taken.
        let mut request =
            Request::get(OBJECT).header("impersonate-user", "ann").body(Full::<Bytes>::default()).unwrap();
        request.extensions_mut().insert(user("tom"));
        let response = server.handle(request).await;
        assert_eq!((response.status().as_u16(), response.headers().get(SCHEMA_UID)), (403, None));
    })
    .unwrap();
}
