//! A client of port forwarding: SPDY over an upgraded connection, or through a WebSocket.

use crate::web_socket_client::{Session, ask, upgrade};
use http::{Request, StatusCode, header};
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::collections::{BTreeMap, BTreeSet};
use testkit::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";

#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    WebSocket,
    Spdy,
}

enum Connection {
    WebSocket(Box<Session>),
    Spdy(TokioIo<Upgraded>),
}

/// The streams of a connection to a port.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) data: u32,
    pub(crate) errors: u32,
}

pub(crate) struct Client {
    connection: Connection,
    received: Vec<u8>,
    next: u32,
    /// What each stream has sent.
    data: BTreeMap<u32, Vec<u8>>,
    ended: BTreeSet<u32>,
    reset: BTreeSet<u32>,
    pings: BTreeSet<u32>,
}

impl Client {
    pub(crate) async fn start(cluster: &Cluster, pod: &str, way: Way) -> Client {
        let connection = match way {
            Way::WebSocket => {
                let path = format!("{pod}/portforward");
                Connection::WebSocket(Box::new(Session::start(cluster, &path, TUNNELLED).await))
            }
            Way::Spdy => {
                let mut request: Request<Empty<_>> = upgrade(&format!("{pod}/portforward"), "");
                let headers = request.headers_mut();
                headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
                headers.insert(header::UPGRADE, "SPDY/3.1".parse().unwrap());
                headers.insert("x-stream-protocol-version", "portforward.k8s.io".parse().unwrap());
                let response = ask(cluster, "admin", &["system:masters"], request).await;
                assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
                assert_eq!(response.headers()["x-stream-protocol-version"], "portforward.k8s.io");
                Connection::Spdy(TokioIo::new(hyper::upgrade::on(response).await.unwrap()))
            }
        };
        let (data, ended) = (BTreeMap::new(), BTreeSet::new());
        let (reset, pings) = (BTreeSet::new(), BTreeSet::new());
        Client { connection, received: Vec::new(), next: 1, data, ended, reset, pings }
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        match &mut self.connection {
            Connection::Spdy(stream) => stream.write_all(bytes).await.unwrap(),
            // A message is a piece of the connection, wherever it is cut.
            Connection::WebSocket(session) => {
                for piece in bytes.chunks(100) {
                    session.send(0x82, piece).await;
                }
            }
        }
    }

    /// Opens a stream with these headers; returns its number.
    pub(crate) async fn stream(&mut self, headers: &[(&str, &str)]) -> u32 {
        let id = self.next;
        let mut text = u32::try_from(headers.len()).unwrap().to_be_bytes().to_vec();
        for part in headers.iter().flat_map(|(name, value)| [name, value]) {
            text.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
            text.extend(part.as_bytes());
        }
        // Not really compressed: a block that is stored as it is.
        let length = u16::try_from(text.len()).unwrap();
        let zlib = if id == 1 { &[0x78, 1][..] } else { &[] };
        let block = [zlib, &[0], &length.to_le_bytes(), &(!length).to_le_bytes(), &text].concat();
        let payload = [&id.to_be_bytes()[..], &[0; 6], &block].concat();
        let length = u32::try_from(payload.len()).unwrap();
        self.send_bytes(&[&[0x80, 3, 0, 1][..], &length.to_be_bytes(), &payload].concat()).await;
        self.next += 2;
        id
    }

    /// Opens the streams of a connection to a port, the one for errors first.
    pub(crate) async fn open(&mut self, port: u16, pair: &str) -> Pair {
        let port = port.to_string();
        let headers = |kind| [("streamtype", kind), ("port", port.as_str()), ("requestid", pair)];
        let errors = self.stream(&headers("error")).await;
        self.send(errors, b"", true).await;
        let data = self.stream(&headers("data")).await;
        Pair { data, errors }
    }

    pub(crate) async fn send(&mut self, id: u32, data: &[u8], is_last: bool) {
        let length = u32::try_from(data.len()).unwrap() | if is_last { 1 << 24 } else { 0 };
        self.send_bytes(&[&id.to_be_bytes()[..], &length.to_be_bytes(), data].concat()).await;
    }

    /// Sends a ping and waits for the answer.
    pub(crate) async fn ping(&mut self, id: u32) {
        self.send_bytes(&[&[0x80, 3, 0, 6, 0, 0, 0, 4][..], &id.to_be_bytes()].concat()).await;
        while !self.pings.contains(&id) {
            assert!(self.read().await, "a ping is answered");
        }
    }

    /// What a stream sends to its end.
    pub(crate) async fn all_of(&mut self, id: u32) -> String {
        while !self.ended.contains(&id) {
            assert!(self.read().await, "stream {id} ends");
        }
        String::from_utf8(self.data.remove(&id).unwrap_or_default()).unwrap()
    }

    pub(crate) async fn is_reset(&mut self, id: u32) -> bool {
        while !self.reset.contains(&id) {
            if self.ended.contains(&id) || !self.read().await {
                return false;
            }
        }
        true
    }

    /// Waits for the end of the connection.
    pub(crate) async fn end(&mut self) {
        while self.read().await {}
    }

    /// Reads more, and takes the frames that are complete; `false` at the end of the connection.
    async fn read(&mut self) -> bool {
        let bytes = match &mut self.connection {
            Connection::Spdy(stream) => {
                let mut bytes = vec![0; 4096];
                let count = stream.read(&mut bytes).await.unwrap_or(0);
                bytes.truncate(count);
                bytes
            }
            Connection::WebSocket(session) => match session.next().await {
                Some((0x82, payload)) => payload.to_vec(),
                _ => Vec::new(),
            },
        };
        self.received.extend(&bytes);
        while self.take() {}
        !bytes.is_empty()
    }

    fn take(&mut self) -> bool {
        let number = |at: usize| Some(u32::from_be_bytes(self.received.get(at..at + 4)?.try_into().unwrap()));
        let (Some(first), Some(second)) = (number(0), number(4)) else { return false };
        let length = (second & 0xff_ffff) as usize;
        if self.received.len() < 8 + length {
            return false;
        }
        let payload: Vec<u8> = self.received.drain(..8 + length).skip(8).collect();
        let id = || u32::from_be_bytes(payload[..4].try_into().unwrap());
        match first {
            0x8003_0002 => assert!(payload.len() > 4, "a reply has headers"),
            0x8003_0003 => drop(self.reset.insert(id())),
            0x8003_0006 => drop(self.pings.insert(id())),
            data => {
                assert_eq!(data >> 31, 0, "an unknown frame");
                self.data.entry(data).or_default().extend(&payload);
                if second >> 24 & 1 == 1 {
                    self.ended.insert(data);
                }
            }
        }
        true
    }
}
