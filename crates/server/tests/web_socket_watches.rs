//! Watches over WebSocket, with frames written by hand over a real socket.

use crate::{
    client::{send, send_raw},
    socket::{Lab, PATIENCE},
};
use serde_json::{Value, json};
use server::accept::Limits;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;
use world::World;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const COMPLETE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8a;

/// A client that has sent the request for a watch.
struct Watcher {
    world: World,
    stream: TlsStream<TcpStream>,
    received: Vec<u8>,
}

impl Watcher {
    /// Sends a request; returns the head of the response.
    async fn start(lab: &Lab, path: &str, headers: &str) -> (Watcher, String) {
        let mut stream = lab.tls("http/1.1").await;
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t0ken\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut watcher = Watcher { world: lab.world.clone(), stream, received: Vec::new() };
        loop {
            if let Some(end) = watcher.received.windows(4).position(|it| it == b"\r\n\r\n") {
                let rest = watcher.received.split_off(end + 4);
                let head = std::mem::replace(&mut watcher.received, rest);
                return (watcher, String::from_utf8(head).unwrap());
            }
            assert!(watcher.read().await, "{}", String::from_utf8_lossy(&watcher.received));
        }
    }

    /// A watch that has become a WebSocket.
    async fn switched(lab: &Lab, query: &str, headers: &str) -> Watcher {
        let path = format!("{CONFIG_MAPS}?watch=1{query}");
        let headers = format!("{COMPLETE}Origin: https://localhost\r\n{headers}");
        let (watcher, head) = Watcher::start(lab, &path, &headers).await;
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        assert!(head.contains(": s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
        watcher
    }

    async fn read(&mut self) -> bool {
        let mut bytes = vec![0; 65536];
        let count = self.world.timeout(PATIENCE, self.stream.read(&mut bytes)).await.unwrap().unwrap_or(0);
        self.received.extend(&bytes[..count]);
        count > 0
    }

    /// The next frame: its first byte and its payload; `None` at the end of the connection.
    async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let [first, second, ..] = self.received[..] {
                assert!(second < 128, "a server must not mask");
                let number = |from: usize, count: usize| {
                    let bytes = self.received.get(from..from + count)?;
                    Some(bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
                };
                let (length, head) = match second {
                    126 => (number(2, 2), 4),
                    127 => (number(2, 8), 10),
                    short => (Some(usize::from(short)), 2),
                };
                if let Some(length) = length.filter(|length| self.received.len() >= head + length) {
                    let rest = self.received.split_off(head + length);
                    let frame = std::mem::replace(&mut self.received, rest);
                    return Some((first, frame[head..].to_vec()));
                }
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn event(&mut self) -> Value {
        let (first, payload) = self.next().await.expect("there is an event");
        assert_eq!(first, TEXT);
        assert!(payload.ends_with(b"}\n"));
        serde_json::from_slice(&payload).unwrap()
    }

    /// Sends a frame with a mask that changes nothing.
    async fn send(&mut self, first: u8, payload: &[u8]) {
        let length = u8::try_from(payload.len()).unwrap();
        let frame = [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat();
        self.stream.write_all(&frame).await.unwrap();
        self.stream.flush().await.unwrap();
    }
}

fn with_lab<F: Future<Output = ()>>(act: impl FnOnce(Lab) -> F) {
    world::run(|world| async move { act(Lab::start(&world, Limits::default()).await).await }).unwrap();
}

async fn create(lab: &Lab, name: &str, data: &str) {
    let map = json!({"metadata": {"name": name}, "data": {"key": data}});
    assert_eq!(send(&lab.server, "POST", CONFIG_MAPS, map.to_string()).await.0, 201);
}

#[test]
fn each_event_is_a_message() {
    with_lab(|lab| async move {
        create(&lab, "first", "1").await;
        let mut watcher = Watcher::switched(&lab, "", "").await;
        let event = watcher.event().await;
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!("first"))
        );
        let long = "x".repeat(300_000);
        for data in ["2", &"y".repeat(1000), &long] {
            create(&lab, &format!("m{}", data.len()), data).await;
            assert_eq!(watcher.event().await["object"]["data"]["key"].as_str(), Some(data));
        }
        send_raw(&lab.server, "DELETE", &format!("{CONFIG_MAPS}/first"), "").await;
        assert_eq!(watcher.event().await["type"], "DELETED");
    });
}

#[test]
fn protobuf_comes_in_binary_messages_and_a_protocol_is_agreed_on() {
    with_lab(|lab| async move {
        create(&lab, "first", "1").await;
        let headers = "Accept: application/vnd.kubernetes.protobuf;stream=watch\r\n";
        let mut watcher = Watcher::switched(&lab, "", headers).await;
        let (first, payload) = watcher.next().await.unwrap();
        assert_eq!(first, BINARY);
        // The first field of a WatchEvent is its type: no length in front of it.
        assert!(payload.windows(7).any(|it| it == b"\x0a\x05ADDED"), "{payload:?}");
        assert_ne!(payload[0], 0);
        let offer = "Sec-WebSocket-Protocol: base64.binary.k8s.io\r\nOrigin: https://localhost\r\n";
        let path = format!("{CONFIG_MAPS}?watch=1");
        let headers = format!("{COMPLETE}{offer}");
        let (_, head) = Watcher::start(&lab, &path, &headers).await;
        assert!(head.to_lowercase().contains("sec-websocket-protocol: base64.binary.k8s.io\r\n"), "{head}");
    });
}

#[test]
fn a_web_socket_ends_with_its_watch_and_errors_are_events() {
    with_lab(|lab| async move {
        create(&lab, "first", "1").await;
        let mut watcher = Watcher::switched(&lab, "&timeoutSeconds=1", "").await;
        assert_eq!(watcher.event().await["type"], "ADDED");
        assert_eq!(watcher.next().await, Some((CLOSE, vec![3, 232])));
        watcher.send(CLOSE, &[3, 232]).await;
        assert_eq!(watcher.next().await, None);
        // What is wrong with the request is told before the connection switches.
        let origin = "Origin: https://localhost\r\n";
        for (path, headers, code) in [
            (format!("{CONFIG_MAPS}?watch=1&resourceVersion=x"), format!("{COMPLETE}{origin}"), 500),
            (format!("{CONFIG_MAPS}?watch=1"), COMPLETE.to_owned(), 403),
            (format!("{CONFIG_MAPS}?watch=1"), format!("{COMPLETE}{origin}").replace("13", "8"), 400),
            (
                format!("{CONFIG_MAPS}?watch=1"),
                format!("{COMPLETE}{origin}Sec-WebSocket-Protocol: a, b\r\n"),
                400,
            ),
            (CONFIG_MAPS.to_owned(), format!("{COMPLETE}{origin}"), 200),
        ] {
            let (_, head) = Watcher::start(&lab, &path, &headers).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{path} {headers}: {head}");
        }
    });
}

#[test]
fn clients_are_answered_ignored_or_cut_off() {
    with_lab(|lab| async move {
        create(&lab, "first", "1").await;
        let mut watcher = Watcher::switched(&lab, "", "").await;
        watcher.event().await;
        watcher.send(TEXT, b"not listened to").await;
        watcher.send(0x89, b"ping").await;
        assert_eq!(watcher.next().await, Some((PONG, b"ping".to_vec())));
        create(&lab, "later", "1").await;
        assert_eq!(watcher.event().await["object"]["metadata"]["name"], "later");
        watcher.send(CLOSE, &[3, 232]).await;
        assert_eq!(watcher.next().await, Some((CLOSE, vec![3, 232])));
        for (frame, code) in [
            (&[TEXT, 1, b'a'][..], 1002_u16),
            (&[0xc1, 0x80, 0, 0, 0, 0], 1002),
            (&[0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0], 1009),
        ] {
            let mut watcher = Watcher::switched(&lab, "&resourceVersion=1", "").await;
            watcher.stream.write_all(frame).await.unwrap();
            loop {
                match watcher.next().await.expect("the server says why") {
                    (CLOSE, payload) => break assert_eq!(payload, code.to_be_bytes()),
                    (first, _) => assert_eq!(first, TEXT),
                }
            }
        }
    });
}

#[test]
fn many_web_sockets_get_the_same_events() {
    with_lab(|lab| async move {
        let mut watchers = Vec::new();
        for _ in 0..50 {
            watchers.push(Watcher::switched(&lab, "", "").await);
        }
        create(&lab, "shared", "1").await;
        for watcher in &mut watchers {
            assert_eq!(watcher.event().await["object"]["metadata"]["name"], "shared");
        }
        drop(watchers);
        lab.assert_well("after many WebSockets").await;
    });
}
