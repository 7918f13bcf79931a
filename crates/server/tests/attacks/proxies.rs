//! Pods that lead the server astray, exhaust it, or never end, and clients that do.

use crate::{
    client::{send, send_raw, send_with},
    pod_lab::{PODS, SERVICES, with_lab},
    slow_store::{Slow, StoreAccess},
    socket::{PATIENCE, request},
};
use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use http_body_util::{BodyExt, Empty};
use serde_json::json;
use server::{Caller, Config, Connecting, KubeletAddress, KubeletStream, Kubelets, Server};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
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
fn clients_cannot_remove_the_headers_that_the_server_adds() {
    with_lab(|lab| async move {
        lab.pod("web", IP, 80).await;
        let switched = "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n";
        for (path, headers) in [
            ("web/proxy/x", "Connection: x-forwarded-for, x-forwarded-uri, host\r\n"),
            ("web%2fproxy/x", ""),
            ("web%2Fproxy/x", "Connection: X-Forwarded-For\r\nX-Forwarded-For: 192.0.2.9\r\n"),
            ("web/proxy/x", "Connection: Upgrade, x-forwarded-for, host\r\nUpgrade: any\r\n"),
        ] {
            let answer = if headers.contains("Upgrade: ") { switched } else { "HTTP/1.1 200 OK\r\n\r\n" };
            let pod = lab.listen(IP, &[answer], true).await;
            let answer = lab.ask(&request("GET", &format!("{PODS}/{path}"), headers, b"")).await;
            assert!(answer.starts_with("HTTP/1.1 200 ") || answer.starts_with("HTTP/1.1 101 "), "{answer}");
            let received = pod.received().to_lowercase();
            let uri = format!("x-forwarded-uri: {PODS}/{path}").to_lowercase();
            for header in ["host: localhost", "x-forwarded-for: 127.0.0.1", &uri] {
                assert!(received.contains(&format!("\r\n{header}\r\n")), "{path} {header}: {received}");
            }
        }
    });
}

#[test]
fn endpoints_that_name_many_pods_cost_a_hundred_lookups_and_the_same_pod_costs_one() {
    world::simulate(1, |world| async move {
        let lookups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lookups);
        let store = Slow::new(&world, move |access: StoreAccess<'_>| {
            if let StoreAccess::Get(key) = access
                && key.windows(6).any(|part| part == b"/pods/")
            {
                counted.fetch_add(1, Relaxed);
            }
            Duration::ZERO
        });
        let server = Server::start(&world, Arc::new(store), Config::default()).await.unwrap();
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(send(&server, "POST", PODS, pod.to_string()).await.0, 201);
        for (name, is_same, expected) in [("same", true, 1), ("many", false, 100)] {
            let address = |number: usize| {
                let pod = if is_same { "web".to_owned() } else { format!("pod-{number}") };
                json!({"ip": format!("10.0.{}.{}", number / 200, number % 200 + 1),
                    "targetRef": {"kind": "Pod", "namespace": "default", "name": pod}})
            };
            let addresses: Vec<_> = (0..400).map(address).collect();
            let endpoints = json!({"metadata": {"name": name}, "subsets": [
                {"addresses": addresses, "ports": [{"port": 80}]}]});
            let path = "/api/v1/namespaces/default/endpoints";
            assert_eq!(send(&server, "POST", path, endpoints.to_string()).await.0, 201);
            lookups.store(0, Relaxed);
            let (code, status) = send(&server, "GET", &format!("{SERVICES}/{name}/proxy/"), "").await;
            assert_eq!(code, 503, "{status}");
            assert_eq!(lookups.load(Relaxed), expected, "{name}");
        }
    })
    .unwrap();
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
fn idle_streams_have_a_limit_for_each_user_and_make_room_for_others() {
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
        let open = async |user: &str| {
            let mut request = Request::get(format!("{PODS}/web/proxy/")).body(Empty::<Bytes>::new()).unwrap();
            request.extensions_mut().insert(Caller::known(user, "", vec!["system:masters".to_owned()]));
            server.handle(request).await
        };
        let mut responses = Vec::new();
        let account =
            |namespace: &str, number: usize| format!("system:serviceaccount:{namespace}:bot-{}", number % 9);
        for number in 0..1024 {
            let user = match number / 256 {
                // Service accounts of a namespace have one share together.
                0 => account("a", number),
                1 => account("b", number),
                2 => "bob".to_owned(),
                _ => "carol".to_owned(),
            };
            let mut response = open(&user).await;
            assert_eq!(response.status(), 200, "{number}");
            assert!(response.body_mut().frame().await.is_some(), "the answer begins");
            responses.push(response);
        }
        for user in ["system:serviceaccount:a:another", "bob"] {
            let refused = open(user).await;
            assert_eq!(refused.status(), 429, "{user} has a quarter");
            let body = refused.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&body).contains("too many connections to pods are open"));
        }
        let begun = world.now();
        assert_eq!(open("admin").await.status(), 200, "another user gets a connection");
        let is_over = |response: &mut http::Response<server::Body>| {
            response.body_mut().frame().now_or_never().is_some_and(|frame| frame.is_none())
        };
        while !responses.iter_mut().any(is_over) {
            assert!(world.now().since(begun) < PATIENCE, "no other connection has ended");
            world.sleep(Duration::from_millis(5)).await;
        }
        drop(responses);
        while open("bob").await.status() != 200 {
            assert!(world.now().since(begun) < PATIENCE, "the connections to the pod stay open");
            world.sleep(Duration::from_millis(5)).await;
        }
    })
    .unwrap();
}
