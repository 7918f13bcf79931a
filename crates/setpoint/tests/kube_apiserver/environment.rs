//! What test environments do beside flags: the variable for control loops, the log, admission plugins, and `etcd`.

use super::{client, file, program, run, start, start_as};
use crate::harness::SETPOINT;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Pod, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command},
    time::Duration,
};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn tokens(directory: &Path) -> String {
    let tokens = file(directory, "tokens.csv", "secret,bob,1,\"system:masters\"\n");
    format!("--token-auth-file={}", tokens.display())
}

async fn create_namespace(client: &Client, name: &str) {
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

#[test]
fn the_variable_brings_control_loops() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = program(scratch.path());
    command.env("SETPOINT_CONTROLLERS", "*");
    let off = "--disable-admission-plugins=ServiceAccount";
    let server = start_as(command, scratch.path(), &[&tokens(scratch.path()), off]);
    run(async {
        let deployments: Api<Deployment> = Api::namespaced(client(&server, None, Some("secret")), "default");
        let deployment = json!({"metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        let deployment = serde_json::from_value(deployment).unwrap();
        deployments.create(&PostParams::default(), &deployment).await.unwrap();
        let is_available = |found: Option<&Deployment>| {
            found.and_then(|found| found.status.as_ref()?.available_replicas) == Some(1)
        };
        await_condition(deployments, "web", is_available).await.unwrap();
    });
    let mut command = program(scratch.path());
    command.env("SETPOINT_CONTROLLERS", "magic").arg("--secure-port=0");
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(said.contains("SETPOINT_CONTROLLERS") && said.contains("\"magic\""), "{said}");
}

#[test]
fn flags_that_change_nothing_are_named_in_the_log_with_the_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(
        scratch.path(),
        &["--feature-gates=WatchList=true", "--event-ttl=1h", "--anonymous-auth=false"],
    );
    let warnings: Vec<&str> = server.said.lines().filter(|line| line.contains("changes nothing")).collect();
    let has = |text: &str| warnings.iter().any(|line| line.contains(text));
    assert!(has("--feature-gates changes nothing: each feature is fixed here"), "{}", server.said);
    assert!(has("--event-ttl changes nothing: events do not expire here"), "{}", server.said);
    assert_eq!(warnings.len(), 2, "{}", server.said);
}

#[test]
fn a_version_that_is_turned_off_is_not_served() {
    let scratch = tempfile::tempdir().unwrap();
    let flag = "--runtime-config=api/beta=true,batch/v1=false,events.k8s.io/v1=false";
    let server = start(scratch.path(), &[&tokens(scratch.path()), flag]);
    assert!(server.said.contains("--runtime-config api/beta=true changes nothing"), "{}", server.said);
    run(async {
        let client = client(&server, None, Some("secret"));
        let groups = client.list_api_groups().await.unwrap().groups;
        let has = |name: &str| groups.iter().any(|group| group.name == name);
        assert!(has("apps") && !has("batch") && !has("events.k8s.io"), "{groups:?}");
        for (path, is_served) in [
            ("/apis/apps/v1/deployments", true),
            ("/api/v1/events", true),
            ("/apis/batch/v1/jobs", false),
            ("/apis/batch/v1/namespaces/default/cronjobs/one/status", false),
            ("/apis/batch/v1", false),
            ("/apis/batch", false),
            ("/openapi/v3/apis/batch/v1", false),
            ("/openapi/v3/apis/apps/v1", true),
        ] {
            let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
            let code = client.send(request).await.unwrap().status().as_u16();
            assert_eq!(code, if is_served { 200 } else { 404 }, "{path}");
        }
    });
}

/// Whether a pod may be created in a new namespace, which no control loop gives an account.
async fn pod_is_admitted(client: &Client) -> Result<Pod, u16> {
    create_namespace(client, "n").await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "n");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let created = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await;
    created.map_err(|error| if let kube::Error::Api(status) = error { status.code } else { 0 })
}

#[test]
fn pods_need_an_account_unless_the_plugin_is_off() {
    let scratch = tempfile::tempdir().unwrap();
    let tokens = tokens(scratch.path());
    let with = start(scratch.path(), &[&tokens]);
    let without =
        start(scratch.path(), &[&tokens, "--disable-admission-plugins=ServiceAccount,NodeRestriction"]);
    run(async {
        let refused = pod_is_admitted(&client(&with, None, Some("secret"))).await;
        assert_eq!(refused.err(), Some(403));
        let client = client(&without, None, Some("secret"));
        let spec = pod_is_admitted(&client).await.unwrap().spec.unwrap();
        assert_eq!((spec.service_account_name, spec.volumes), (None, None));
        let accounts = Api::<ServiceAccount>::all(client).list(&ListParams::default()).await.unwrap();
        assert!(accounts.items.is_empty(), "no default account is made");
    });
}

/// A running `etcd`, ended when it is dropped.
struct Etcd(Child);

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The answer of `/health`, if something listens.
fn health(address: &str) -> Option<String> {
    let mut socket = TcpStream::connect(address).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(socket, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    Some(answer)
}

#[test]
fn etcd_is_healthy_for_several_connections_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("etcd");
    symlink(SETPOINT, &link).unwrap();
    // Test environments choose the port; it does not print one.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://{address}");
    let mut command = Command::new(link);
    command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--unsafe-no-fsync"]);
    let mut etcd = Etcd(command.arg("--data-dir").arg(scratch.path()).spawn().unwrap());
    let first = loop {
        if let Some(answer) = health(&address) {
            break answer;
        }
        assert!(etcd.0.try_wait().unwrap().is_none(), "it has ended");
    };
    assert!(first.contains("200 OK") && first.contains(r#""health":"true""#), "{first}");
    // A connection that says nothing holds up no other one.
    let _idle = TcpStream::connect(&address).unwrap();
    for _ in 0..2 {
        assert!(health(&address).unwrap().contains(r#""health":"true""#));
    }
    // kube-apiserver finds that it is not a real one, and has its own store.
    let server = start(scratch.path(), &[&tokens(scratch.path()), &format!("--etcd-servers={url}")]);
    run(async { create_namespace(&client(&server, None, Some("secret")), "kept").await });
}
