//! What rules, webhooks and policies cost a request that they let through.
//!
//! `cargo xtask bench admission` runs it, in one process without sockets or disk: what is left is the pipeline. Each
//! cost is the processor time of a request beside that of the same request where nothing is configured, in turns.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[path = "../../setpoint/benches/server/process.rs"]
#[expect(dead_code, reason = "the other benchmark wants more of it")]
mod process;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use process::busy;
use serde_json::{Value, json};
use server::{Answer, Caller, Config, Exchange, Outbound, Server};
use std::{process::ExitCode, sync::Arc};
use world::World;

/// Each measurement is taken so often, one server after the other, and the median counts.
const ROUNDS: usize = 7;
const REQUESTS: u32 = 1000;
/// Half of them in namespaces, half in the cluster.
const BINDINGS: usize = 10_000;
const NAMESPACES: usize = 100;
const MANY: usize = 100;
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/n0/configmaps";

/// Webhooks that cannot be reached. None is called here: no configuration matches the requests.
#[derive(Debug)]
struct Nowhere;

impl Outbound for Nowhere {
    fn post(&self, _: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async { Err("no webhook is reachable".to_owned()) })
    }
}

fn main() -> ExitCode {
    let done = world::run(|world| async move {
        println!("processor time for each request in process, median of {ROUNDS} rounds of {REQUESTS}\n");
        println!("{:<58} {:>9} {:>9}", "", "get", "create");
        let plain = Plain::start(&world).await;
        plain.show("master, nothing configured", &plain.server, master()).await;
        plain.show("user with one binding", &plain.server, user()).await;
        bindings(&world, &plain).await;
        webhooks(&world, &plain).await;
        policies(&world, &plain).await;
    });
    done.unwrap();
    ExitCode::SUCCESS
}

/// A server on which nothing is configured.
struct Plain {
    server: Server,
}

impl Plain {
    async fn start(world: &World) -> Plain {
        Plain { server: start(world).await }
    }

    /// What a get and a create cost on a server, and what more than for a master here.
    async fn show(&self, what: &str, server: &Server, caller: Caller) {
        let mut costs = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            for (at, (server, caller)) in
                [(&self.server, master()), (server, caller.clone())].into_iter().enumerate()
            {
                costs[2 * at].push(cost(server, &caller, "GET", &format!("{MAPS}/kept"), "").await);
                let body = json!({"metadata": {"name": "new"}, "data": {"k": "v"}}).to_string();
                costs[2 * at + 1]
                    .push(cost(server, &caller, "POST", &format!("{MAPS}?dryRun=All"), &body).await);
            }
        }
        let [base_get, base_create, get, create] = costs.map(median);
        println!(
            "{what:<58} {get:>6.1} µs {create:>6.1} µs   ({:+.1}, {:+.1})",
            get - base_get,
            create - base_create
        );
    }
}

async fn bindings(world: &World, plain: &Plain) {
    let server = start(world).await;
    for number in 0..BINDINGS / 2 {
        let subjects = json!([{"kind": "User", "name": format!("other-{number}")}, {"kind": "Group", "name": format!("group-{number}")}]);
        let binding =
            json!({"metadata": {"name": format!("b{number}")}, "subjects": subjects, "roleRef": role()});
        create(&server, &format!("{RBAC}/clusterrolebindings"), &binding).await;
        let path = format!("{RBAC}/namespaces/n{}/rolebindings", number % NAMESPACES);
        create(&server, &path, &binding).await;
    }
    plain.show("user with one of 10,000 bindings", &server, user()).await;
    let mut many = user();
    many.groups.extend((0..MANY).map(|number| format!("group-{number}")));
    plain.show("user of 100 groups that are bound", &server, many).await;
}

async fn webhooks(world: &World, plain: &Plain) {
    for (what, resource, selector) in [
        ("100 webhooks for another resource", "pods", json!({})),
        ("100 webhooks for objects with another label", "configmaps", json!({"matchLabels": {"a": "b"}})),
    ] {
        let server = start(world).await;
        for number in 0..MANY {
            let hook = json!({
                "name": format!("w{number}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": "https://w.example.com/"}, "objectSelector": selector,
                "rules": [rule(resource)],
            });
            let configuration = json!({"metadata": {"name": format!("w{number}")}, "webhooks": [hook]});
            let sort = if number % 2 == 0 { "validating" } else { "mutating" };
            create(&server, &format!("{ADMISSION}/{sort}webhookconfigurations"), &configuration).await;
        }
        plain.show(what, &server, master()).await;
    }
}

async fn policies(world: &World, plain: &Plain) {
    for (what, resource, expression) in [
        ("100 policies for another resource", "pods", "true"),
        ("100 policies that match, each with a simple rule", "configmaps", "size(object.data) < 10"),
        (
            "100 policies that match, each with three rules on strings",
            "configmaps",
            "object.data.all(k, k.matches('^[a-z]+$') && object.data[k].startsWith('v') && k in object.data)",
        ),
    ] {
        let server = start(world).await;
        for number in 0..MANY {
            let name = format!("p{number}");
            let policy = json!({"metadata": {"name": name}, "spec": {
                "matchConstraints": {"resourceRules": [rule(resource)]},
                "validations": [{"expression": expression}],
            }});
            create(&server, &format!("{ADMISSION}/validatingadmissionpolicies"), &policy).await;
            let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
            create(&server, &format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding).await;
        }
        plain.show(what, &server, master()).await;
    }
}

/// A server with namespaces, an object to read, and a user who may read and write it.
async fn start(world: &World) -> Server {
    let config = Config { outbound: Arc::new(Nowhere), ..Config::default() };
    let server = Server::start(world, Arc::new(store::Memory::new()), config).await.unwrap();
    for number in 0..NAMESPACES {
        create(&server, "/api/v1/namespaces", &json!({"metadata": {"name": format!("n{number}")}})).await;
    }
    create(&server, MAPS, &json!({"metadata": {"name": "kept"}, "data": {"k": "v"}})).await;
    let subjects = json!([{"kind": "User", "name": "user"}]);
    let binding = json!({"metadata": {"name": "own"}, "subjects": subjects, "roleRef": role()});
    create(&server, &format!("{RBAC}/namespaces/n0/rolebindings"), &binding).await;
    server
}

fn role() -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"})
}

fn rule(resource: &str) -> Value {
    json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]})
}

fn master() -> Caller {
    Caller::known("admin", "", vec!["system:masters".to_owned()])
}

fn user() -> Caller {
    Caller::known("user", "", Vec::new())
}

async fn create(server: &Server, path: &str, object: &Value) {
    let (status, body) = send(server, &master(), "POST", path, object.to_string().into()).await;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
}

async fn send(server: &Server, caller: &Caller, method: &str, path: &str, body: Bytes) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let mut request = request.body(Full::new(body)).unwrap();
    request.extensions_mut().insert(caller.clone());
    let response = server.handle(request).await;
    (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
}

/// Microseconds of a processor for one request.
async fn cost(server: &Server, caller: &Caller, method: &str, path: &str, body: &str) -> f64 {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let before = busy(std::process::id());
    for _ in 0..REQUESTS {
        let (status, answer) = send(server, caller, method, path, body.clone()).await;
        assert!(status < 300, "{}", String::from_utf8_lossy(&answer));
    }
    let spent = busy(std::process::id()).saturating_sub(before);
    spent.as_secs_f64() * 1e6 / f64::from(REQUESTS)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
