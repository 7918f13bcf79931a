//! Port forwarding: what a client and a kubelet say once they have switched protocols passes through as it is.

use crate::{
    client::send,
    pod_lab::{PODS, TestPod, with_lab},
    socket::PATIENCE,
};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn both_ways_to_forward_a_port_pass_through_to_the_kubelet() {
    for (method, asked, answered) in [
        (
            "GET",
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\
             Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0\r\n",
            "Upgrade: websocket\r\nSec-WebSocket-Accept: y\r\nSec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n",
        ),
        (
            "POST",
            "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\nContent-Length: 0\r\n",
            "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n",
        ),
    ] {
        with_lab(|lab| async move {
            let switched = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{answered}\r\n\x00from the node\x7f"
            );
            let kubelet: TestPod = lab.listen("127.0.0.1", &[&switched], false).await;
            let node = json!({"metadata": {"name": "n"}, "status": {"addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"}]}});
            assert_eq!(send(&lab.server, "POST", "/api/v1/nodes", node.to_string()).await.0, 201);
            let pod = json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n",
                "containers": [{"name": "c", "image": "i"}]}});
            assert_eq!(send(&lab.server, "POST", PODS, pod.to_string()).await.0, 201);
            let mut stream = lab.tls("http/1.1").await;
            let request = format!(
                "{method} {PODS}/web/portforward?ports=80 HTTP/1.1\r\nHost: localhost\r\n\
                 Authorization: Bearer t0ken\r\nConnection: Upgrade\r\n{asked}\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let (mut text, mut bytes) = (String::new(), vec![0; 4096]);
            while !text.ends_with("\x00from the node\x7f") {
                let count = lab.world.timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
                assert!(count > 0, "{text}");
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            let lower = text.to_lowercase();
            assert!(lower.starts_with("http/1.1 101 switching protocols\r\n"), "{text}");
            for header in answered.to_lowercase().lines() {
                assert!(lower.contains(&format!("\r\n{header}\r\n")), "{header}: {text}");
            }
            stream.write_all(b"\x01from the client\x7f").await.unwrap();
            stream.flush().await.unwrap();
            let begun = lab.world.now();
            while !kubelet.received().ends_with("\x01from the client\x7f") {
                assert!(lab.world.now().since(begun) < PATIENCE, "{}", kubelet.received());
                lab.world.sleep(Duration::from_millis(5)).await;
            }
            let received = kubelet.received();
            assert!(received.starts_with("GET /portForward/default/web?port=80 HTTP/1.1\r\n"), "{received}");
            let received = received.to_lowercase();
            assert!(received.contains("portforward.k8s.io\r\n"), "{received}");
            for secret in ["t0ken", "authorization", "c2vjcmv0"] {
                assert!(!received.contains(secret), "{received}");
            }
            drop(stream);
            while kubelet.open() > 0 {
                assert!(lab.world.now().since(begun) < PATIENCE, "the connection to the kubelet stays open");
                lab.world.sleep(Duration::from_millis(5)).await;
            }
        });
    }
}
