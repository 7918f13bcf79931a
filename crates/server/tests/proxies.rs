//! Proxies to pods and services: what reaches a pod, what comes back, and what is refused.

use crate::{
    client::{send, send_raw},
    pod_lab::{PODS, SERVICES, answer, with_lab},
    socket::{PATIENCE, request},
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Caller, Config, Server};
use std::{net::UdpSocket, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const IP: &str = "10.0.0.7";

#[test]
fn a_pod_gets_method_path_query_and_body_but_no_credentials() {
    with_lab(|lab| async move {
        lab.pod("web", IP, 8080).await;
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let pod = lab.listen(IP, &[&answer("200 OK", "X-Mine: 1\r\n", "")], false).await;
            let body = if matches!(method, "POST" | "PUT" | "PATCH") { "the body" } else { "" };
            let length =
                if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
            let headers = format!(
                "{length}Accept: text/html\r\nContent-Type: text/x\r\nCookie: a=b\r\nImpersonate-User: admin\r\n\
                 Impersonate-Group: system:masters\r\nX-Forwarded-For: 192.0.2.9\r\nProxy-Authorization: Basic eA==\r\n"
            );
            let path = format!("{PODS}/web/proxy/a%2Fb//c?dryRunning=1&fieldManager=/&x=%20");
            let answer = lab.ask(&request(method, &path, &headers, body.as_bytes())).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{method}: {answer}");
            assert!(answer.to_lowercase().contains("x-mine: 1\r\n"), "{method}: {answer}");
            let received = pod.received();
            let first = format!("{method} /a%2Fb//c?dryRunning=1&fieldManager=/&x=%20 HTTP/1.1\r\n");
            assert!(received.starts_with(&first), "{received}");
            assert!(received.ends_with(&format!("\r\n\r\n{body}")), "{received}");
            let lower = received.to_lowercase();
            for passed in ["accept: text/html", "content-type: text/x", "cookie: a=b", "host: localhost"] {
                assert!(lower.contains(&format!("\r\n{passed}\r\n")), "{passed}: {received}");
            }
            assert!(lower.contains("\r\nx-forwarded-for: 192.0.2.9, 127.0.0.1\r\n"), "{received}");
            let uri = format!("\r\nx-forwarded-uri: {PODS}/web/proxy/a%2Fb//c\r\n").to_lowercase();
            assert!(lower.contains(&uri), "{received}");
            for secret in ["t0ken", "authorization", "impersonate", "connection"] {
                assert!(!lower.contains(secret), "{secret}: {received}");
            }
        }
        assert!(lab.dialled().iter().all(|address| address.to_string() == "10.0.0.7:8080"));
    });
}

#[test]
fn names_of_pods_have_ports_and_paths_have_a_slash() {
    with_lab(|lab| async move {
        let _pod = lab.listen(IP, &[&answer("200 OK", "", "hello")], false).await;
        lab.pod("web", IP, 8080).await;
        for (method, path, code, expected, port) in [
            ("GET", "web/proxy/", 200, "hello", 8080),
            ("GET", "web:99/proxy/", 200, "hello", 99),
            ("GET", "http:web:99/proxy/", 200, "hello", 99),
            ("POST", "web/proxy", 200, "hello", 8080),
            ("GET", "web/proxy", 301, "", 0),
            ("GET", "web:http/proxy/", 503, "dial tcp: lookup tcp/http: unknown port", 0),
            ("GET", "ftp:web:1/proxy/", 400, "invalid pod request \\\"ftp:web:1\\\"", 0),
            ("GET", "none/proxy/", 404, "pods \\\"none\\\" not found", 0),
            ("POST", "web/proxy/?dryRun=All", 400, "dryRun is not supported", 0),
            ("TRACE", "web/proxy/", 405, "", 0),
        ] {
            let before = lab.dialled().len();
            let (found, body) = send_raw(&lab.server, method, &format!("{PODS}/{path}"), "").await;
            let text = String::from_utf8_lossy(&body);
            assert_eq!(found, code, "{method} {path}: {text}");
            assert!(text.contains(expected), "{method} {path}: {text}");
            let dialled: Vec<u16> = lab.dialled()[before..].iter().map(|address| address.port()).collect();
            assert_eq!(dialled, if port == 0 { vec![] } else { vec![port] }, "{method} {path}");
        }
    });
}

#[test]
fn a_pod_that_does_not_answer_is_a_503_in_the_words_of_gos_dialer() {
    with_lab(|lab| async move {
        lab.pod("off", "10.0.0.8", 80).await;
        let (code, status) = send(&lab.server, "GET", &format!("{PODS}/off/proxy/"), "").await;
        let refused = "error trying to reach service: dial tcp 10.0.0.8:80: connect: connection refused";
        assert_eq!((code, &status["message"]), (503, &json!(refused)), "{status}");
        assert_eq!(status["reason"], "ServiceUnavailable");
        for (ip, pieces, expected) in
            [("10.0.0.9", vec![], "EOF"), ("10.0.0.10", vec!["nonsense\r\n\r\n"], "")]
        {
            let _pod = lab.listen(ip, &pieces, true).await;
            let name = format!("pod-{}", ip.replace('.', "-"));
            lab.pod(&name, ip, 80).await;
            let (code, status) = send(&lab.server, "GET", &format!("{PODS}/{name}/proxy/"), "").await;
            assert_eq!(code, 503, "{status}");
            let message = status["message"].as_str().unwrap();
            assert!(message.starts_with("error trying to reach service: "), "{message}");
            assert!(message.ends_with(expected), "{message}");
        }
    });
}

#[test]
fn a_service_is_answered_by_a_ready_pod_behind_its_port() {
    with_lab(|lab| async move {
        let first = lab.listen("10.0.0.1", &[&answer("200 OK", "", "hello")], false).await;
        let second = lab.listen("10.0.0.2", &[&answer("200 OK", "", "hello")], false).await;
        lab.pod("one", "10.0.0.1", 1).await;
        lab.pod("two", "10.0.0.2", 1).await;
        lab.pod("gone", "10.0.0.9", 1).await;
        let ports =
            json!([{"name": "http", "port": 80, "targetPort": 8080}, {"name": "admin", "port": 9000}]);
        for name in ["web", "empty", "unready", "none"] {
            lab.create("services", json!({"metadata": {"name": name}, "spec": {"ports": ports}})).await;
        }
        let target = |pod: &str| json!({"kind": "Pod", "namespace": "default", "name": pod});
        let address = |ip: &str, pod: &str| json!({"ip": ip, "targetRef": target(pod)});
        let subset = |addresses: Value| json!([{"addresses": addresses, "ports": [{"name": "http", "port": 8080}, {"name": "admin", "port": 9000}]}]);
        let ready = json!([
            address("10.0.0.1", "one"),
            address("10.0.0.2", "two"),
            // Not the address of that pod, no pod at all, and a pod that is not there.
            address("10.0.0.66", "gone"),
            json!({"ip": "10.0.0.67"}),
            address("10.0.0.68", "missing"),
        ]);
        let unready = json!([{"notReadyAddresses": [address("10.0.0.1", "one")], "ports": [{"name": "http", "port": 8080}]}]);
        for (name, subsets) in [("web", subset(ready)), ("empty", json!([])), ("unready", unready)] {
            lab.create("endpoints", json!({"metadata": {"name": name}, "subsets": subsets})).await;
        }
        for (path, code, expected) in [
            ("web:http/proxy/x", 200, "hello"),
            ("web:80/proxy/x", 200, "hello"),
            ("http:web:80/proxy/x", 200, "hello"),
            ("web:admin/proxy/x", 200, "hello"),
            ("web:80/proxy", 301, ""),
            ("web/proxy/x", 503, "no endpoints available for service \\\"web\\\""),
            ("web:8080/proxy/x", 503, "no service port 8080 found for service \\\"web\\\""),
            ("web:other/proxy/x", 503, "no endpoints available for service \\\"web:other\\\""),
            ("empty:80/proxy/x", 503, "no endpoints available for service \\\"empty\\\""),
            ("unready:80/proxy/x", 503, "no endpoints available for service \\\"unready:80\\\""),
            ("none/proxy/x", 404, "endpoints \\\"none\\\" not found"),
            ("missing:80/proxy/x", 404, "services \\\"missing\\\" not found"),
            ("a:b:c:d/proxy/x", 400, "invalid service request \\\"a:b:c:d\\\""),
        ] {
            let (found, body) = send_raw(&lab.server, "GET", &format!("{SERVICES}/{path}"), "").await;
            let text = String::from_utf8_lossy(&body);
            assert_eq!(found, code, "{path}: {text}");
            assert!(text.contains(expected), "{path}: {text}");
        }
        // Both pods are asked in the long run.
        for _ in 0..100 {
            send_raw(&lab.server, "GET", &format!("{SERVICES}/web:http/proxy/x"), "").await;
        }
        assert!(first.received().contains("GET /x ") && second.received().contains("GET /x "));
        let allowed = ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.1:9000", "10.0.0.2:9000"];
        assert!(
            lab.dialled().iter().all(|it| allowed.contains(&it.to_string().as_str())),
            "{:?}",
            lab.dialled()
        );
    });
}

#[test]
fn answers_of_a_pod_come_back_without_what_belongs_to_its_connection() {
    with_lab(|lab| async move {
        let headers = "Content-Type: text/html\r\nSet-Cookie: a=b\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop\r\n\
                       X-Hop: 1\r\nAccess-Control-Allow-Origin: *\r\nLocation: http://10.0.0.7:8080/login?a=b\r\n";
        let _pod = lab.listen(IP, &[&answer("302 Found", headers, "moved")], false).await;
        lab.pod("web", IP, 8080).await;
        let answer = lab.ask(&request("GET", &format!("{PODS}/web/proxy/x"), "", b"")).await;
        assert!(answer.starts_with("HTTP/1.1 302 Found\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nmoved"), "{answer}");
        let lower = answer.to_lowercase();
        for header in [
            "content-type: text/html",
            "set-cookie: a=b",
            "content-length: 5",
            "location: /api/v1/namespaces/default/pods/web/proxy/login?a=b",
        ] {
            assert!(lower.contains(&format!("\r\n{header}\r\n")), "{header}: {answer}");
        }
        for header in ["keep-alive", "x-hop", "access-control"] {
            assert!(!lower.contains(header), "{header}: {answer}");
        }
    });
}

#[test]
fn bodies_are_passed_on_as_they_come_in_both_directions() {
    with_lab(|lab| async move {
        let pod = lab
            .listen(IP, &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"], false)
            .await;
        lab.pod("web", IP, 8080).await;
        let mut stream = lab.tls("http/1.1").await;
        let head = request("POST", &format!("{PODS}/web/proxy/"), "Transfer-Encoding: chunked\r\n", b"");
        stream.write_all(&head).await.unwrap();
        stream.write_all(b"5\r\nfirst\r\n").await.unwrap();
        stream.flush().await.unwrap();
        let mut text = String::new();
        let mut bytes = vec![0; 4096];
        // The first piece of the answer is there while neither body is at its end.
        while !text.contains("one") {
            let count = lab.world.timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
            assert!(count > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        stream.write_all(b"6\r\nsecond\r\n").await.unwrap();
        stream.flush().await.unwrap();
        let begun = lab.world.now();
        while !pod.received().contains("second") {
            assert!(lab.world.now().since(begun) < PATIENCE, "{}", pod.received());
            lab.world.sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        while pod.open() > 0 {
            assert!(lab.world.now().since(begun) < PATIENCE, "the connection to the pod stays open");
            lab.world.sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn an_answer_that_breaks_off_is_not_taken_for_whole() {
    with_lab(|lab| async move {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        let _broken = lab.listen(IP, &[head], true).await;
        lab.pod("web", IP, 8080).await;
        let answer = lab.ask(&request("GET", &format!("{PODS}/web/proxy/"), "", b"")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("one"), "{answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
        let _whole = lab.listen(IP, &[head, "0\r\n\r\n"], true).await;
        let answer = lab.ask(&request("GET", &format!("{PODS}/web/proxy/"), "", b"")).await;
        assert!(answer.ends_with("3\r\none\r\n0\r\n\r\n"), "{answer}");
    });
}

#[test]
fn a_web_socket_of_a_pod_is_passed_through() {
    with_lab(|lab| async move {
        let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: x\r\n\r\nfrom the pod";
        let pod = lab.listen(IP, &[switched], false).await;
        lab.pod("web", IP, 8080).await;
        let mut stream = lab.tls("http/1.1").await;
        let upgrade = |path: &str| {
            format!(
                "GET {PODS}/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t0ken\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\
                 Sec-WebSocket-Protocol: chat, base64url.bearer.authorization.k8s.io.c2VjcmV0\r\n\r\n"
            )
        };
        stream.write_all(upgrade("web/proxy/socket").as_bytes()).await.unwrap();
        let mut text = String::new();
        let mut bytes = vec![0; 4096];
        while !text.ends_with("from the pod") {
            let count = lab.world.timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
            assert!(count > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
        stream.write_all(b"\x00\xffto the pod").await.unwrap();
        stream.flush().await.unwrap();
        let begun = lab.world.now();
        while !pod.received().ends_with("to the pod") {
            assert!(lab.world.now().since(begun) < PATIENCE, "{}", pod.received());
            lab.world.sleep(Duration::from_millis(5)).await;
        }
        let received = pod.received().to_lowercase();
        assert!(received.contains("sec-websocket-protocol: chat\r\n"), "{received}");
        assert!(received.contains("upgrade: websocket\r\n"), "{received}");
        for secret in ["t0ken", "c2vjcmv0"] {
            assert!(!received.contains(secret), "{received}");
        }
        drop(stream);
        let refusing = [answer("403 Forbidden", "", "no"), answer("200 OK", "", "what?")];
        for (refused, code, expected) in
            [(&refusing[0], "403", "no"), (&refusing[1], "500", "invalid upgrade response: status code 200")]
        {
            let _pod = lab.listen(IP, &[refused], false).await;
            let mut stream = lab.tls("http/1.1").await;
            stream.write_all(upgrade("web/proxy/socket").as_bytes()).await.unwrap();
            let mut text = String::new();
            while !text.contains(expected) {
                let count = lab.world.timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
                assert!(count > 0, "{text}");
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            assert!(text.starts_with(&format!("HTTP/1.1 {code} ")), "{text}");
        }
    });
}

#[test]
fn the_right_to_use_a_proxy_is_that_of_the_method() {
    with_lab(|lab| async move {
        let _pod = lab.listen(IP, &[&answer("200 OK", "", "hello")], false).await;
        lab.pod("web", IP, 8080).await;
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
        for (user, resource, verbs, names) in [
            ("reader", "pods/proxy", json!(["get"]), json!([])),
            ("writer", "pods/proxy", json!(["create"]), json!([])),
            ("any", "pods/proxy", json!(["*"]), json!([])),
            ("pods", "pods", json!(["*"]), json!([])),
            ("one", "pods/proxy", json!(["get"]), json!(["web:80"])),
        ] {
            let role = json!({"metadata": {"name": user}, "rules": [
                {"apiGroups": [""], "resources": [resource], "verbs": verbs, "resourceNames": names}]});
            let binding = json!({"metadata": {"name": user},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
            for (resource, object) in [("roles", role), ("rolebindings", binding)] {
                let (code, answer) =
                    send(&lab.server, "POST", &format!("{rbac}/{resource}"), object.to_string()).await;
                assert_eq!(code, 201, "{answer}");
            }
        }
        for (user, method, name, code) in [
            ("reader", "GET", "web", 200),
            ("reader", "HEAD", "web", 200),
            ("reader", "POST", "web", 403),
            ("reader", "DELETE", "web", 403),
            ("reader", "OPTIONS", "web", 403),
            ("writer", "POST", "web", 200),
            ("writer", "GET", "web", 403),
            ("any", "OPTIONS", "web", 200),
            ("any", "PATCH", "web", 200),
            ("pods", "GET", "web", 403),
            // The name is that in the path, as in Kubernetes.
            ("one", "GET", "web:80", 200),
            ("one", "GET", "web", 403),
            ("one", "GET", "http:web:80", 403),
        ] {
            let path = format!("{PODS}/{name}/proxy/");
            let mut request =
                Request::builder().method(method).uri(path).body(Full::<Bytes>::default()).unwrap();
            request.extensions_mut().insert(Caller::known(user, "", vec!["system:authenticated".to_owned()]));
            let response = lab.server.handle(request).await;
            assert_eq!(response.status().as_u16(), code, "{user} {method} {name}");
            drop(response.into_body().collect().await.unwrap());
        }
    });
}

#[test]
fn a_pod_with_a_real_address_is_reached_over_a_socket() {
    // The address that this machine would use: nothing is sent.
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.254:9")?;
        socket.local_addr()
    });
    let Ok(own) = own else { return };
    world::run(|world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        let listener = TcpListener::bind((own.ip(), 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = world.spawn("pod", async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let count = socket.read(&mut bytes).await.unwrap();
            socket.write_all(answer("200 OK", "", "hello").as_bytes()).await.unwrap();
            String::from_utf8_lossy(&bytes[..count]).into_owned()
        });
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        send(&server, "POST", PODS, pod.to_string()).await;
        let ip = own.ip().to_string();
        let status = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": pod["spec"],
            "status": {"podIP": ip, "podIPs": [{"ip": ip}]}});
        let patch = "application/merge-patch+json";
        let path = format!("{PODS}/web/status");
        let (code, _) =
            crate::client::send_with(&server, "PATCH", &path, patch, json!({"status": status["status"]}).to_string()).await;
        assert_eq!(code, 200);
        let path = format!("{PODS}/web:{port}/proxy/x?y=z");
        let (code, body) = world.timeout(PATIENCE, send_raw(&server, "GET", &path, "")).await.unwrap();
        assert_eq!((code, &body[..]), (200, &b"hello"[..]));
        assert!(serving.await.unwrap().starts_with("GET /x?y=z HTTP/1.1\r\n"));
        // The listener is closed.
        let (code, status) = send(&server, "GET", &path, "").await;
        let refused = format!("error trying to reach service: dial tcp {ip}:{port}: connect: connection refused");
        assert_eq!((code, &status["message"]), (503, &json!(refused)));
    })
    .unwrap();
}
