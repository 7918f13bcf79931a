//! Faults and settling reach watches over WebSockets, which browsers and fabric8's client open.

use super::{Tested, create, maps, objects, put_map, raw, try_create, with_cluster};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps?watch=1";

/// The map that each namespace has from the start.
const ROOT_CA: &str = "kube-root-ca.crt";

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
/// The code of a proper end.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

/// A watch over a WebSocket.
struct WebSocket {
    stream: TokioIo<Upgraded>,
    received: Vec<u8>,
}

impl WebSocket {
    async fn watch(client: &Client, path: &str, accept: &str) -> WebSocket {
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("origin", "https://localhost"),
            ("accept", accept),
        ];
        let response = raw(client, "GET", path, &headers, "").await;
        assert_eq!(response.status(), 101);
        let stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
        WebSocket { stream, received: Vec::new() }
    }

    /// The next frame: its first byte and its payload; `None` at the end of the connection.
    async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let [first, second, ..] = self.received[..] {
                let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                let (length, head) = match second {
                    126 => (self.received.get(2..4).map(number), 4),
                    127 => (self.received.get(2..10).map(number), 10),
                    short => (Some(usize::from(short)), 2),
                };
                if let Some(length) = length.filter(|length| self.received.len() >= head + length) {
                    let rest = self.received.split_off(head + length);
                    let frame = std::mem::replace(&mut self.received, rest);
                    return Some((first, frame[head..].to_vec()));
                }
            }
            // A connection that breaks is at its end, too.
            if self.stream.read_buf(&mut self.received).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    async fn event(&mut self) -> Value {
        let (first, payload) = self.next().await.expect("there is an event");
        assert_eq!(first, TEXT, "{payload:?}");
        serde_json::from_slice(&payload).unwrap()
    }
}

#[test]
fn a_fault_ends_a_watch_over_a_web_socket() {
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        put_map(client, "one", "1").await;
        for how in ["Cut", "Close", "Expire"] {
            let spec = json!({
                "match": {"verb": "watch", "resource": "configmaps"}, "times": 1,
                "endWatch": {"after": 1, "how": how},
            });
            create(client, "Fault", &how.to_lowercase(), spec).await;
            let mut watch = WebSocket::watch(client, MAPS, "application/json").await;
            assert_eq!(watch.event().await["object"]["metadata"]["name"], ROOT_CA, "{how}");
            if how == "Expire" {
                let event = watch.event().await;
                assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
            }
            let end = if how == "Cut" { None } else { Some((CLOSE, NORMAL.to_vec())) };
            assert_eq!(watch.next().await, end, "{how}");
            // Its client is expected to watch again.
            let busy = try_create(client, "Settle", "", json!({"timeout": "200ms"})).await.unwrap_err();
            assert!(busy.to_string().contains("has not come back to watch"), "{busy}");
            let mut watch = WebSocket::watch(client, MAPS, "application/json").await;
            for name in [ROOT_CA, "one"] {
                assert_eq!(watch.event().await["object"]["metadata"]["name"], name);
            }
            create(client, "Settle", "", json!({})).await;
        }
        let faults = objects(client, "Fault").list(&Default::default()).await.unwrap().items;
        assert!(faults.iter().all(|fault| fault.data["status"]["hits"] == 1), "{faults:?}");
    });
}

#[test]
fn a_watch_in_protobuf_expires_with_an_event_in_protobuf() {
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        let expire = json!({"match": {"verb": "watch"}, "endWatch": {"after": 1, "how": "Expire"}});
        create(client, "Fault", "expire", expire).await;
        let mut watch =
            WebSocket::watch(client, MAPS, "application/vnd.kubernetes.protobuf;stream=watch").await;
        for kind in ["ADDED", "ERROR"] {
            let (first, payload) = watch.next().await.unwrap();
            // The first field of a WatchEvent is its type.
            let head = [&[0x0a, 5], kind.as_bytes()].concat();
            assert!(first == BINARY && payload.starts_with(&head), "{first} {payload:?}");
        }
        assert_eq!(watch.next().await, Some((CLOSE, NORMAL.to_vec())));
    });
}

#[test]
fn events_over_a_web_socket_come_late_by_the_clock_of_the_cluster() {
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        create(client, "Fault", "late", json!({"match": {"verb": "watch"}, "lagWatch": "10m"})).await;
        let mut watch = WebSocket::watch(client, MAPS, "application/json").await;
        let busy = try_create(client, "Settle", "", json!({"timeout": "200ms"})).await.unwrap_err();
        assert!(busy.to_string().contains("an event of configmaps that comes late"), "{busy}");
        create(client, "Advance", "", json!({"by": "5m"})).await;
        put_map(client, "later", "1").await;
        create(client, "Advance", "", json!({"by": "6m"})).await;
        assert_eq!(watch.event().await["object"]["metadata"]["name"], ROOT_CA);
        // Each is late for itself.
        create(client, "Advance", "", json!({"by": "5m"})).await;
        assert_eq!(watch.event().await["object"]["metadata"]["name"], "later");
    });
}

#[test]
fn a_settle_waits_until_watches_are_read() {
    /// More than sockets hold.
    const EVENTS: usize = 60;
    const LARGE: usize = 900_000;
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        for number in 0..EVENTS {
            put_map(client, &format!("large-{number}"), &"x".repeat(LARGE)).await;
        }
        let unread = async || {
            let busy = try_create(client, "Settle", "", json!({"timeout": "300ms"})).await.unwrap_err();
            let said = "kubernetes-admin has not read all events of /api/v1/namespaces/default/configmaps";
            assert!(busy.to_string().contains(said), "{busy}");
        };
        let mut watch = WebSocket::watch(client, MAPS, "application/json").await;
        unread().await;
        for _ in 0..=EVENTS {
            watch.event().await;
        }
        create(client, "Settle", "", json!({})).await;
        let watched = maps(client);
        let events = watched.watch(&Default::default(), "0").await.unwrap();
        futures::pin_mut!(events);
        unread().await;
        for _ in 0..=EVENTS {
            futures::StreamExt::next(&mut events).await.unwrap().unwrap();
        }
        create(client, "Settle", "", json!({})).await;
    });
}
