//! Pods that lead the server astray, exhaust it, or never end, and clients that do.

use crate::{
    client::{send, send_raw, send_with},
    pod_lab::{PODS, SERVICES, with_lab},
    socket::{PATIENCE, request},
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use serde_json::json;
use server::{Caller, Config, Connecting, KubeletAddress, KubeletStream, Kubelets, Server};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use world::World;

const IP: &str = "10.0.0.7";

#[test]
fn the_status_of_a_pod_does_not_lead_to_this_machine_or_its_metadata() {
    with_lab(|lab| async move {
        for (at, ip) in
            ["127.0.0.1", "127.1.2.3", "169.254.169.254", "::1", "fe80::1", "0.0.0.0", "224.0.0.1"]
                .into_iter()
                .enumerate()
        {
            let name = format!("evil-{at}");
            lab.pod(&name, ip, 80).await;
            // Endpoints may not have such addresses; these are only of the pod.
            let target = json!({"kind": "Pod", "namespace": "default", "name": name});
            let endpoints = json!({"metadata": {"name": name}, "subsets": [
                {"addresses": [{"ip": ip, "targetRef": target}], "ports": [{"port": 80}]}]});
            let path = "/api/v1/namespaces/default/endpoints";
            send(&lab.server, "POST", path, endpoints.to_string()).await;
            for method in ["GET", "POST", "OPTIONS"] {
                let (code, status) = send(&lab.server, method, &format!("{PODS}/{name}/proxy/x"), "").await;
                assert_eq!((code, &status["message"]), (400, &json!("address not allowed")), "{ip} {method}");
                let (code, body) =
                    send_raw(&lab.server, method, &format!("{SERVICES}/{name}/proxy/x"), "").await;
                assert!(matches!(code, 400 | 404), "{ip} {method}: {}", String::from_utf8_lossy(&body));
            }
        }
        assert_eq!(lab.dialled(), []);
    });
}

#[test]
fn endpoints_lead_only_to_pods_of_their_namespace() {
    with_lab(|lab| async move {
        let _pod = lab.listen(IP, &["HTTP/1.1 200 OK\r\n\r\n"], true).await;
        lab.pod("web", "10.0.0.1", 80).await;
        for (name, target) in [
            ("unnamed", json!(null)),
            ("other-address", json!({"kind": "Pod", "namespace": "default", "name": "web"})),
            ("missing", json!({"kind": "Pod", "namespace": "default", "name": "none"})),
            ("elsewhere", json!({"kind": "Pod", "namespace": "kube-system", "name": "web"})),
        ] {
            let endpoints = json!({"metadata": {"name": name}, "subsets": [
                {"addresses": [{"ip": IP, "targetRef": target}], "ports": [{"port": 80}]}]});
            lab.create("endpoints", endpoints).await;
            let (code, status) = send(&lab.server, "GET", &format!("{SERVICES}/{name}/proxy/"), "").await;
            let problem = format!("no endpoints available for service \"{name}\"");
            assert_eq!((code, &status["message"]), (503, &json!(problem)));
        }
        assert_eq!(lab.dialled(), []);
    });
}

#[test]
fn headers_of_a_pod_have_a_limit() {
    with_lab(|lab| async move {
        lab.pod("web", IP, 80).await;
        let (long, many) = ("x".repeat(1 << 20), "a: b\r\n".repeat(10_000));
        for headers in [format!("a: {long}\r\n"), many, long] {
            let _pod = lab.listen(IP, &[&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")], false).await;
            let (code, status) = send(&lab.server, "GET", &format!("{PODS}/web/proxy/"), "").await;
            assert_eq!(code, 503, "{status}");
            assert!(status.to_string().len() < 1000, "{status}");
        }
        lab.assert_well("after long headers").await;
    });
}

#[test]
fn a_pod_that_answers_without_end_is_stopped_by_a_client_that_does_not_read() {
    with_lab(|lab| async move {
        let piece = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        let pieces: Vec<&str> =
            [head.as_str()].into_iter().chain(std::iter::repeat_n(piece.as_str(), 64)).collect();
        let pod = lab.listen(IP, &pieces, false).await;
        lab.pod("web", IP, 80).await;
        let mut stream = lab.tls("http/1.1").await;
        stream.write_all(&request("GET", &format!("{PODS}/web/proxy/"), "", b"")).await.unwrap();
        let mut bytes = vec![0; 1000];
        let count = lab.world.timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
        assert!(bytes[..count].starts_with(b"HTTP/1.1 200 OK"));
        lab.assert_well("beside an answer without end").await;
        assert_eq!(pod.open(), 1, "the pod has not got rid of its 64 MiB");
        drop(stream);
        let begun = lab.world.now();
        while pod.open() > 0 {
            assert!(lab.world.now().since(begun) < PATIENCE, "the connection to the pod stays open");
            lab.world.sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn connections_that_one_side_has_half_closed_end() {
    with_lab(|lab| async move {
        let switched = "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n";
        lab.pod("web", IP, 80).await;
        let upgrade = format!(
            "GET {PODS}/web/proxy/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t0ken\r\n\
             Connection: Upgrade\r\nUpgrade: any\r\n\r\n"
        );
        for pod_closes in [true, false] {
            let pod = lab.listen(IP, &[switched], pod_closes).await;
            let mut stream = lab.tls("http/1.1").await;
            stream.write_all(upgrade.as_bytes()).await.unwrap();
            let mut bytes = vec![0; 1000];
            let count = lab.world.timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
            assert!(bytes[..count].starts_with(b"HTTP/1.1 101 "));
            if !pod_closes {
                stream.shutdown().await.unwrap();
            }
            let begun = lab.world.now();
            drop(
                lab.world
                    .timeout(PATIENCE, stream.read_to_end(&mut bytes))
                    .await
                    .expect("the server hangs up"),
            );
            while pod.open() > 0 {
                assert!(lab.world.now().since(begun) < PATIENCE, "the connection to the pod stays open");
                lab.world.sleep(Duration::from_millis(5)).await;
            }
        }
    });
}

/// Pods that begin an answer and never end it, over connections in memory.
#[derive(Debug)]
struct Endless(World);

impl Kubelets for Endless {
    fn connect<'a>(&'a self, _: &'a KubeletAddress) -> Connecting<'a> {
        Box::pin(async { Err("there is no kubelet".to_owned()) })
    }

    fn connect_to_pod(&self, _: SocketAddr) -> Connecting<'_> {
        let (near, mut far) = tokio::io::duplex(4096);
        let begin = async move {
            assert_ne!(far.read(&mut [0; 4096]).await.unwrap(), 0, "the request has come");
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
            far.write_all(head).await.unwrap();
            drop(far.read_to_end(&mut Vec::new()).await);
        };
        self.0.spawn("endless pod", begin).detach();
        Box::pin(async move { Ok(Box::new(near) as Box<dyn KubeletStream>) })
    }
}

#[test]
fn idle_streams_have_a_limit_and_their_end_makes_room() {
    world::run(|world| async move {
        let kubelets = Some(Arc::new(Endless(world.clone())) as Arc<dyn Kubelets>);
        let config = Config { kubelets, ..Config::default() };
        let server = Server::start(&world, Arc::new(store::Memory::new()), config).await.unwrap();
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            "status": {"podIPs": [{"ip": IP}]}});
        send(&server, "POST", PODS, pod.to_string()).await;
        let patch = "application/merge-patch+json";
        let status = json!({"status": {"podIP": IP, "podIPs": [{"ip": IP}]}}).to_string();
        assert_eq!(send_with(&server, "PATCH", &format!("{PODS}/web/status"), patch, status).await.0, 200);
        let open = || async {
            let mut request = Request::get(format!("{PODS}/web/proxy/")).body(Empty::<Bytes>::new()).unwrap();
            request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
            server.handle(request).await
        };
        let mut responses = Vec::new();
        for _ in 0..1024 {
            let response = open().await;
            assert_eq!(response.status(), 200);
            responses.push(response);
        }
        let refused = open().await;
        assert_eq!(refused.status(), 429);
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("too many connections to pods are open"));
        assert_eq!(send(&server, "GET", PODS, "").await.0, 200, "other requests are answered");
        drop(responses);
        let begun = world.now();
        while open().await.status() != 200 {
            assert!(world.now().since(begun) < PATIENCE, "the connections to the pod stay open");
            world.sleep(Duration::from_millis(5)).await;
        }
    })
    .unwrap();
}
