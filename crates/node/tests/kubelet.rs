//! Logs and commands through the server, over connections in memory, in virtual time.

use crate::{
    rig,
    spdy_client::{Client, Way},
    web_socket_client::{Session, ask, upgrade},
};
use bytes::Bytes;
use futures::{AsyncBufReadExt, StreamExt};
use http::{Request, header};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api,
    api::{LogParams, PostParams},
};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;
use tokio::io::AsyncWriteExt;

const SCRIPT: &str = "app: {logs: [one, two], exec: {id: {stdout: uid=0, stderr: hm, exitCode: 4}}}";

/// A pod that runs, with a script.
pub(crate) async fn running(cluster: &Cluster) {
    cluster.create(&rig::pod("web", rig::container("nginx"), SCRIPT)).await;
    cluster.settle().await;
}

fn pods(client: kube::Client) -> Api<Pod> {
    Api::namespaced(client, "default")
}

#[test]
fn logs_come_from_the_node_through_the_server() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 2);
        running(&cluster).await;
        let late = rig::pod("late", rig::container("nginx"), "'*': {startAfter: 1h}");
        cluster.create(&late).await;
        let mut unbound = rig::pod("unbound", rig::container("nginx"), "");
        unbound.spec.as_mut().unwrap().node_name = None;
        cluster.create(&unbound).await;
        cluster.world().sleep(Duration::from_secs(5)).await;
        let tail = LogParams { tail_lines: Some(1), ..LogParams::default() };
        let previous = LogParams { previous: true, ..LogParams::default() };
        for (pod, options, expected) in [
            ("web", LogParams::default(), Ok("one\ntwo\n")),
            ("web", tail, Ok("two\n")),
            ("web", previous, Err("previous terminated container \"app\" in pod \"web\" not found")),
            (
                "late",
                LogParams::default(),
                Err("container \"app\" in pod \"late\" is waiting to start: ContainerCreating"),
            ),
            ("unbound", LogParams::default(), Ok("")),
        ] {
            let found = pods(cluster.client()).logs(pod, &options).await.map_err(|error| match error {
                kube::Error::Api(status) => status.message.clone(),
                other => other.to_string(),
            });
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{pod} {options:?}");
        }
    });
}

#[test]
fn a_followed_log_grows_and_ends_with_its_container() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        let words = json!(["sh", "-c", "echo a; sleep 100; echo b; sleep 3600; echo c"]);
        let spec = json!({"containers": [{"name": "app", "image": "x", "command": words}], "restartPolicy": "Never"});
        cluster.create(&rig::pod("clock", spec, "")).await;
        cluster.world().sleep(Duration::from_secs(5)).await;
        let begun = cluster.world().now();
        let options = LogParams { follow: true, ..LogParams::default() };
        let mut lines = pods(cluster.client()).log_stream("clock", &options).await.unwrap().lines();
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await {
            seen.push((line.unwrap(), cluster.world().now().since(begun).as_secs()));
        }
        let texts: Vec<&str> = seen.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c"]);
        assert_eq!(seen[0].1, 0);
        assert!((90..=100).contains(&seen[1].1) && (3690..=3700).contains(&seen[2].1), "{seen:?}");
        assert!(format!("{:?}", cluster.kubelet()).contains("followed: 0"), "{:?}", cluster.kubelet());
    });
}

#[test]
fn a_client_that_leaves_a_followed_log_frees_it() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let options = LogParams { follow: true, ..LogParams::default() };
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut lines = pods(cluster.client()).log_stream("web", &options).await.unwrap().lines();
            assert_eq!(lines.next().await.unwrap().unwrap(), "one");
            streams.push(lines);
        }
        assert!(format!("{:?}", cluster.kubelet()).contains("followed: 1"), "{:?}", cluster.kubelet());
        drop(streams);
        cluster.world().sleep(Duration::from_secs(1)).await;
        assert!(format!("{:?}", cluster.kubelet()).contains("followed: 0"), "{:?}", cluster.kubelet());
        // A pod that is deleted ends the logs of those who stay.
        let mut lines = pods(cluster.client()).log_stream("web", &options).await.unwrap().lines();
        cluster.delete::<Pod>("default", "web").await;
        let mut rest = Vec::new();
        while let Some(line) = lines.next().await {
            rest.push(line.unwrap());
        }
        assert_eq!(rest, ["one", "two"]);
    });
}

#[test]
fn a_stopped_node_does_not_answer() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let stop = json!({"metadata": {"annotations": {"setpoint.dev/node": "stopped"}}});
        cluster.patch::<Node>(None, "node-0", &stop).await;
        cluster.world().sleep(Duration::from_secs(1)).await;
        let refused = pods(cluster.client()).logs("web", &LogParams::default()).await.unwrap_err();
        assert!(refused.to_string().contains("EOF"), "{refused}");
    });
}

const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";
const V1: &str = "channel.k8s.io";
const BINARY: u8 = 0x82;

#[test]
fn commands_run_over_the_protocols_with_a_status() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let failure = |code: &str| json!([{"reason": "ExitCode", "message": code}]);
        for (query, stdout, stderr, causes) in [
            ("command=id&stdout=true&stderr=true", "uid=0", "hm", failure("4")),
            ("command=id&stdout=true&stderr=true&tty=true", "uid=0hm", "", failure("4")),
            ("command=id&stderr=true", "", "hm", failure("4")),
            ("command=echo&command=a%20b&stdout=true", "a b\n", "", Value::Null),
            ("command=sh&command=-c&command=sleep+100%3B+echo+late&stdout=true", "late\n", "", Value::Null),
            ("command=cat&stdout=true", "", "", Value::Null),
            ("stdout=true", "", "", Value::Null),
        ] {
            for protocol in [V5, V4] {
                let session = Session::start(&cluster, &format!("web/exec?{query}"), protocol).await;
                let (out, err, status, code) = session.rest().await;
                assert_eq!((out.as_str(), err.as_str(), code), (stdout, stderr, 1000), "{query} {protocol}");
                assert_eq!(status["details"]["causes"], causes, "{query} {protocol}: {status}");
            }
        }
    });
}

#[test]
fn the_first_protocol_tells_a_failure_as_text_and_no_success() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let failure = "command terminated with non-zero exit code: error executing command [id], exit code 4";
        for (command, stdout, told) in
            [("command=echo&command=hi", "hi\n", ""), ("command=id", "uid=0", failure)]
        {
            let path = format!("web/exec?{command}&stdout=true");
            let (out, _, status, code) = Session::start(&cluster, &path, V1).await.rest().await;
            assert_eq!((out.as_str(), status, code), (stdout, json!(told), 1000));
        }
    });
}

#[test]
fn input_reaches_a_command_and_pings_are_answered() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let mut cat = Session::start(&cluster, "web/exec?command=cat&stdin=true&stdout=true", V5).await;
        assert_eq!(cat.next().await, Some((BINARY, Bytes::from_static(b"\x01"))), "it is there");
        cat.send(0x89, b"ping").await;
        assert_eq!(cat.next().await, Some((0x8a, Bytes::from_static(b"ping"))));
        cat.send(BINARY, b"\x04{\"Width\": 80}").await;
        cat.send(0x02, b"\x00so").await;
        cat.send(0x80, b"me").await;
        assert_eq!(cat.next().await, Some((BINARY, Bytes::from_static(b"\x01some"))));
        cat.send(BINARY, b"\xff\x00").await;
        let (_, _, status, code) = cat.rest().await;
        assert_eq!((&status["status"], code), (&json!("Success"), 1000));

        let mut shell =
            Session::start(&cluster, "web/exec?command=sh&stdin=true&stdout=true&tty=true", V5).await;
        shell.send(BINARY, b"\x00echo hi\rexit 3\r").await;
        let (out, _, status, _) = shell.rest().await;
        assert_eq!(out, "# echo hi\r\nhi\r\n# exit 3\r\n");
        assert_eq!(status["details"]["causes"][0]["message"], "3");
    });
}

#[test]
fn what_is_typed_into_a_terminal_at_once_is_shown_in_one_message() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let path = "web/exec?command=sh&stdin=true&stdout=true&tty=true";
        let mut shell = Session::start(&cluster, path, V5).await;
        assert_eq!(shell.next().await, Some((BINARY, Bytes::from_static(b"\x01"))), "it is there");
        assert_eq!(shell.next().await, Some((BINARY, Bytes::from_static(b"\x01# "))));
        shell.send(BINARY, format!("\0{}", "é".repeat(50)).as_bytes()).await;
        assert_eq!(shell.next().await, Some((BINARY, Bytes::from(format!("\x01{}", "é".repeat(50))))));
        shell.send(BINARY, b"\0\x03").await;
        assert_eq!(shell.rest().await.2["details"]["causes"][0]["message"], "130");
    });
}

#[test]
fn clients_that_break_the_protocol_or_leave_are_cut_off() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let path = "web/exec?command=sleep&command=inf&stdin=true&stdout=true";
        for (name, frame, expected) in [
            ("not masked", &[0x82, 1, b'a'][..], 1002),
            ("an extension", &[0xf2, 0x80, 0, 0, 0, 0], 1002),
            ("too long", &[0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1009),
        ] {
            let mut session = Session::start(&cluster, path, V5).await;
            session.stream.write_all(frame).await.unwrap();
            assert_eq!(session.rest().await.3, expected, "{name}");
        }
        // Nothing happens for hours.
        let begun = cluster.world().now();
        let mut idle = Session::start(&cluster, path, V5).await;
        let mut forwarding = Client::start(&cluster, "web", Way::Spdy).await;
        while idle.next().await.is_some() {}
        forwarding.end().await;
        assert_eq!(cluster.world().now().since(begun).as_secs() / 3600, 4);
        drop(Session::start(&cluster, path, V5).await);
    });
}

#[test]
fn sessions_of_one_user_take_a_quarter_of_the_connections_to_nodes() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let path = "web/exec?command=sleep&command=inf&stdout=true";
        let mut sessions = Vec::new();
        for _ in 0..256 {
            sessions.push(Session::start(&cluster, path, V5).await);
        }
        let code = async |user: &str| {
            ask(&cluster, user, &["system:masters"], upgrade(path, V5)).await.status().as_u16()
        };
        assert_eq!(code("admin").await, 429, "a session counts until it ends");
        assert_eq!(code("root").await, 101, "another user has their own share");
        drop(sessions);
        cluster.world().sleep(Duration::from_secs(10)).await;
        assert_eq!(code("admin").await, 101);
    });
}

#[test]
fn only_those_who_may_create_get_a_command_and_only_those_who_may_read_a_log() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        for (user, resource, verbs) in [
            ("reader", "pods/log", json!(["get"])),
            ("pod-reader", "pods", json!(["get", "create"])),
            ("exec-getter", "pods/exec", json!(["get"])),
            ("executor", "pods/exec", json!(["get", "create"])),
        ] {
            let role = json!({"metadata": {"name": user, "namespace": "default"},
                "rules": [{"apiGroups": [""], "resources": [resource], "verbs": verbs}]});
            let binding = json!({"metadata": {"name": user, "namespace": "default"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
            let role: Role = serde_json::from_value(role).unwrap();
            let binding: RoleBinding = serde_json::from_value(binding).unwrap();
            let (roles, bindings) =
                (Api::namespaced(cluster.client(), "default"), Api::namespaced(cluster.client(), "default"));
            roles.create(&PostParams::default(), &role).await.unwrap();
            bindings.create(&PostParams::default(), &binding).await.unwrap();
        }
        let exec = "web/exec?command=id&stdout=true";
        for (user, path, code) in [
            ("reader", "web/log", 101),
            ("reader", exec, 403),
            ("pod-reader", "web/log", 403),
            ("pod-reader", exec, 403),
            ("exec-getter", exec, 403),
            ("exec-getter", "web/log", 403),
            ("executor", exec, 101),
            ("executor", "web/attach?stdout=true", 403),
            ("executor", "web/portforward?ports=80", 403),
            ("stranger", "web/log", 403),
        ] {
            let protocol = if path == "web/log" { "binary.k8s.io" } else { V5 };
            let response = ask(&cluster, user, &["system:authenticated"], upgrade(path, protocol)).await;
            assert_eq!(response.status().as_u16(), code, "{user} {path}");
        }
    });
}

#[test]
fn upgrades_that_a_node_does_not_know_are_refused_in_words() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let spdy = || {
            let mut request = upgrade("web/exec?command=id&stdout=true", V5);
            request.headers_mut().insert(header::UPGRADE, "SPDY/3.1".parse().unwrap());
            request
        };
        for (request, code, expected) in [
            (
                upgrade("web/exec?command=id&stdout=true", "chat"),
                400,
                "offer one of the protocols v5.channel.k8s.io",
            ),
            (upgrade("web/exec?command=id", V5), 400, "you must specify at least 1 of stdin, stdout, stderr"),
            (
                upgrade("web/exec?command=id&stdout=true&container=x", V5),
                400,
                "container x is not valid for pod web",
            ),
            (spdy(), 400, "a simulated node speaks WebSocket, not SPDY"),
            (upgrade("web/portforward?ports=80", V5), 400, "offer one of the protocols SPDY/3.1+portforward"),
            (upgrade("none/exec?command=id&stdout=true", V5), 404, "pods \\\"none\\\" not found"),
        ] {
            let path = request.uri().to_string();
            let response = ask(&cluster, "admin", &["system:masters"], request).await;
            assert_eq!(response.status().as_u16(), code, "{path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&body);
            assert!(text.contains(expected), "{path}: {text}");
        }
    });
}

#[test]
fn only_the_api_server_may_ask_a_kubelet() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        for (user, path, code) in [
            ("kube-apiserver-kubelet-client", "/containerLogs/default/web/app", 200),
            ("kube-apiserver-kubelet-client", "/containerLogs/default/web/../app", 404),
            ("kube-apiserver-kubelet-client", "/containerLogs/default/web/none", 404),
            ("kube-apiserver-kubelet-client", "/containerLogs/default/none/app", 404),
            ("kube-apiserver-kubelet-client", "/exec/default/web/app", 400),
            ("kube-apiserver-kubelet-client", "/nothing", 404),
            ("kube-apiserver-kubelet-client", "/healthz", 200),
            ("kubernetes-admin", "/containerLogs/default/web/app", 403),
            ("system:node:node-0", "/exec/default/web/app", 403),
            ("", "/healthz", 403),
        ] {
            let (near, far) = tokio::io::duplex(4096);
            let (kubelet, world) = (cluster.kubelet().clone(), cluster.world().clone());
            cluster.world().spawn("kubelet", async move { kubelet.serve(&world, far, user).await }).detach();
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
            cluster.world().spawn("client", async move { drop(connection.await) }).detach();
            let request = Request::get(path).header(header::HOST, "x").body(Empty::<Bytes>::new()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.status().as_u16(), code, "{user} {path}");
        }
    });
}
