//! Ports of simulated pods: through the proxy of the server, and forwarded over SPDY in both ways.

use crate::{
    rig,
    spdy_client::{Client, Way},
    web_socket_client::{ask, upgrade},
};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Empty};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use std::time::Duration;
use testkit::Cluster;

const SCRIPT: &str = "app: {http: {80: hello, 8080: again}}";

async fn running(cluster: &Cluster) {
    cluster.create(&rig::pod("web", rig::container("nginx"), SCRIPT)).await;
    cluster.settle().await;
}

/// The code and the text of a page of a pod through the server.
async fn page(cluster: &Cluster, pod: &str) -> (u16, String) {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/proxy/any");
    let request = Request::get(path).header(header::HOST, "x").body(Empty::<Bytes>::new()).unwrap();
    let response = ask(cluster, "admin", &["system:masters"], request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn the_proxy_of_a_pod_shows_what_its_script_says() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        for (pod, code, expected) in [
            ("web", 200, "hello"),
            ("web:8080", 200, "again"),
            ("web:81", 503, ":81: connect: connection refused"),
        ] {
            let (found, text) = page(&cluster, pod).await;
            assert_eq!(found, code, "{pod}: {text}");
            assert!(text.contains(expected), "{pod}: {text}");
        }
        let stop = json!({"metadata": {"annotations": {"setpoint.dev/node": "stopped"}}});
        cluster.patch::<Node>(None, "node-0", &stop).await;
        cluster.world().sleep(Duration::from_secs(1)).await;
        let (code, text) = page(&cluster, "web").await;
        assert_eq!(code, 503);
        assert!(text.contains("error trying to reach service: dial tcp "), "{text}");
        assert!(text.contains(":80: connect: no route to host"), "{text}");
    });
}

#[test]
fn an_address_that_no_simulated_pod_has_is_not_dialled_in_a_test() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let status = json!({"status": {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]}});
        let mut elsewhere = rig::pod("elsewhere", rig::container("nginx"), "");
        elsewhere.spec.as_mut().unwrap().node_name = None;
        cluster.create(&elsewhere).await;
        let pods: kube::Api<Pod> = kube::Api::namespaced(cluster.client(), "default");
        let patch = kube::api::Patch::Merge(&status);
        pods.patch_status("elsewhere", &kube::api::PatchParams::default(), &patch).await.unwrap();
        let (code, text) = page(&cluster, "elsewhere").await;
        assert_eq!(code, 503);
        assert!(text.contains("dial tcp 192.0.2.1:80: connect: no route to host"), "{text}");
    });
}

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn ports_are_forwarded_over_spdy_and_through_a_web_socket() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        for way in [Way::WebSocket, Way::Spdy] {
            let mut client = Client::start(&cluster, "web", way).await;
            // Two connections at once, and an answer for each.
            let (first, second) = (client.open(80, "0").await, client.open(8080, "1").await);
            client.send(second.data, ASK, true).await;
            client.send(first.data, ASK, false).await;
            for (pair, expected) in [(first, "hello"), (second, "again")] {
                let text = client.all_of(pair.data).await;
                assert!(
                    text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with(expected),
                    "{way:?}: {text}"
                );
                assert_eq!(client.all_of(pair.errors).await, "", "{way:?}");
            }
            client.ping(7).await;
        }
    });
}

#[test]
fn a_port_on_which_nothing_listens_is_an_error_of_its_connection() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let mut client = Client::start(&cluster, "web", Way::WebSocket).await;
        let pair = client.open(81, "0").await;
        let problem = client.all_of(pair.errors).await;
        assert!(problem.starts_with("error forwarding port 81 to pod web, uid "), "{problem}");
        assert!(problem.ends_with("dial tcp4 127.0.0.1:81: connect: connection refused"), "{problem}");
        assert!(client.is_reset(pair.data).await);
        // The others go on.
        let pair = client.open(80, "1").await;
        client.send(pair.data, ASK, false).await;
        assert!(client.all_of(pair.data).await.ends_with("hello"));
    });
}

#[test]
fn streams_without_their_other_one_and_too_many_streams_are_refused() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let mut client = Client::start(&cluster, "web", Way::WebSocket).await;
        for headers in [
            &[("port", "80"), ("streamtype", "other"), ("requestid", "0")][..],
            &[("port", "0"), ("streamtype", "data"), ("requestid", "0")],
            &[("port", "65536"), ("streamtype", "data"), ("requestid", "0")],
            &[("streamtype", "data"), ("requestid", "0")],
            &[("port", "80"), ("streamtype", "data"), ("requestid", &"0".repeat(65))],
            &[],
        ] {
            let id = client.stream(headers).await;
            assert!(client.is_reset(id).await, "{headers:?}");
        }
        let begun = cluster.world().now();
        let alone = client.stream(&[("port", "80"), ("streamtype", "error"), ("requestid", "0")]).await;
        assert!(client.is_reset(alone).await);
        assert_eq!(cluster.world().now().since(begun).as_secs(), 30);
        for number in 0..128 {
            let pair = number.to_string();
            client.stream(&[("port", "80"), ("streamtype", "error"), ("requestid", &pair)]).await;
        }
        let late = client.stream(&[("port", "80"), ("streamtype", "error"), ("requestid", "late")]).await;
        assert!(client.is_reset(late).await);
    });
}

#[test]
fn a_forwarding_holds_only_so_many_connections_and_each_only_short_headers_for_a_short_time() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        let mut client = Client::start(&cluster, "web", Way::Spdy).await;
        let begun = cluster.world().now();
        let mut pairs = Vec::new();
        for number in 0..128 {
            let pair = client.open(80, &number.to_string()).await;
            client.send(pair.data, b"GET / HTTP/1.1\r\nX: x", false).await;
            pairs.push(pair);
        }
        let late = client.stream(&[("port", "80"), ("streamtype", "error"), ("requestid", "late")]).await;
        assert!(client.is_reset(late).await, "the buffers of more connections would not fit");
        for pair in pairs {
            assert_eq!(client.all_of(pair.data).await, "");
        }
        assert_eq!(cluster.world().now().since(begun).as_secs(), 30, "unfinished headers end a connection");
        let pair = client.open(80, "long").await;
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
        client.send(pair.data, long.as_bytes(), false).await;
        let text = client.all_of(pair.data).await;
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
        let pair = client.open(80, "short").await;
        client.send(pair.data, ASK, false).await;
        assert!(client.all_of(pair.data).await.ends_with("hello"));
    });
}

#[test]
fn clients_that_break_the_protocol_of_port_forwarding_are_cut_off() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        for way in [Way::WebSocket, Way::Spdy] {
            for bytes in
                [&[0x80, 9, 0, 1, 0, 0, 0, 0][..], &[0, 0, 0, 1, 0, 1, 0, 1], b"GET / HTTP/1.1\r\n\r\n"]
            {
                let mut client = Client::start(&cluster, "web", way).await;
                client.send_bytes(bytes).await;
                client.end().await;
            }
        }
        for (path, protocol, code, expected) in [
            (
                "web/portforward",
                "v4.channel.k8s.io",
                400,
                "offer one of the protocols SPDY/3.1+portforward.k8s.io",
            ),
            ("none/portforward", "SPDY/3.1+portforward.k8s.io", 404, "not found"),
        ] {
            let response = ask(&cluster, "admin", &["system:masters"], upgrade(path, protocol)).await;
            assert_eq!(response.status().as_u16(), code, "{path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&body).contains(expected), "{path}");
        }
    });
}
