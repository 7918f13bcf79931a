//! Unread responses: each costs the server a few pieces, however long it is.

use crate::{
    client::send,
    counted,
    socket::{Lab, request},
};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Body, Caller, Config, Server, accept::Limits};
use std::{sync::Arc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const METADATA_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Limit on what an unread response may hold: some pieces, and the part that is kept so that it is encoded
/// only once.
const MOST: isize = 2 << 20;
const READERS: isize = 6;

async fn ask(server: &Server, path: &str, accept: &str, coding: &str) -> http::Response<Body> {
    let request = Request::get(path).header(header::ACCEPT, accept).header(header::ACCEPT_ENCODING, coding);
    let mut request = request.body(Full::<Bytes>::default()).unwrap();
    request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
    server.handle(request).await
}

/// A server with that many ConfigMaps of that many bytes each, in data and metadata.
async fn filled(world: &world::World, count: usize, size: usize) -> Server {
    let server = Server::start(world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
    for number in 0..count {
        let map = json!({
            "metadata": {"name": format!("map-{number:05}"), "annotations": {"about": "x".repeat(size / 2)}},
            "data": {"k": "x".repeat(size / 2)},
        });
        assert_eq!(send(&server, "POST", MAPS, map.to_string()).await.0, 201);
    }
    server
}

#[test]
fn unread_lists_hold_one_piece_each_in_every_form() {
    world::simulate(1, |world| async move {
        let server = filled(&world, 40, 100 << 10).await;
        for (accept, coding) in [
            (JSON, ""),
            (PROTOBUF, ""),
            (YAML, ""),
            (TABLE, ""),
            (METADATA, ""),
            (METADATA_PROTOBUF, ""),
            (JSON, "gzip"),
        ] {
            let before = counted::held();
            let mut unread = Vec::new();
            for _ in 0..READERS {
                let mut response = ask(&server, MAPS, accept, coding).await;
                assert_eq!(response.status(), 200, "{accept}");
                assert!(response.body_mut().frame().await.is_some(), "a piece is taken");
                unread.push(response);
            }
            let each = (counted::held() - before) / READERS;
            assert!(each < MOST, "{accept} {coding}: {each} bytes for each reader");
            drop(unread);
        }
        let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(900 << 10)}});
        assert_eq!(send(&server, "POST", MAPS, large.to_string()).await.0, 201);
        let before = counted::held();
        let mut unread = Vec::new();
        for _ in 0..READERS {
            unread.push(ask(&server, &format!("{MAPS}/large"), JSON, "").await);
        }
        let each = (counted::held() - before) / READERS;
        assert!(each < 64 << 10, "one large object: {each} bytes for each reader");
    })
    .unwrap();
}

#[test]
fn a_list_in_pieces_equals_the_list_at_once() {
    world::simulate(1, |world| async move {
        let server = filled(&world, 12, 150 << 10).await;
        let types = kinds::types();
        let (of, _) = types.kind("", "v1", "ConfigMapList").unwrap();
        let (partial, _) = types.kind("meta.k8s.io", "v1", "PartialObjectMetadataList").unwrap();
        let get = async |accept: &str| {
            let response = ask(&server, MAPS, accept, "").await;
            let said = response.headers().get(header::CONTENT_LENGTH).cloned();
            let size = http_body::Body::size_hint(response.body()).exact();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(size, Some(body.len() as u64), "{accept} {said:?}");
            body
        };
        let line = |mut json: Vec<u8>| {
            json.push(b'\n');
            Bytes::from(json)
        };
        let json_list = get(JSON).await;
        let list: Value = serde_json::from_slice(&json_list).unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), 12);
        assert!(json_list == line(schema::encode::encode(types, of, &list)), "JSON");
        let sealed = |of, kind: &str, group: &str, list: &Value| {
            let message = schema::proto::encode(types, of, list);
            Bytes::from(schema::proto::Envelope::new(group, kind, &message).seal())
        };
        assert!(get(PROTOBUF).await == sealed(of, "ConfigMapList", "v1", &list), "protobuf");
        let yaml = schema::yaml::to_json(&get(YAML).await).unwrap().json;
        let yaml: Value = serde_json::from_slice(&yaml).unwrap();
        let mut named = list.clone();
        for item in named["items"].as_array_mut().unwrap() {
            assert!(item.get("kind").is_none());
        }
        named["kind"] = "ConfigMapList".into();
        assert_eq!(yaml, named, "YAML");
        let metadata = get(METADATA).await;
        let read: Value = serde_json::from_slice(&metadata).unwrap();
        assert_eq!(read["items"][1]["metadata"], list["items"][1]["metadata"]);
        assert!(metadata == line(schema::encode::encode(types, partial, &read)), "metadata");
        let group = "meta.k8s.io/v1";
        assert!(
            get(METADATA_PROTOBUF).await == sealed(partial, "PartialObjectMetadataList", group, &read),
            "metadata as protobuf"
        );
        let table = get(TABLE).await;
        let read: Value = serde_json::from_slice(&table).unwrap();
        assert_eq!(read["rows"].as_array().unwrap().len(), 12);
        assert_eq!(read["rows"][1]["object"]["metadata"], list["items"][1]["metadata"]);
        assert_eq!(read["columnDefinitions"][1]["name"], "Data");
        assert!(table == line(schema::encode::encode_any(&read)), "table");
        let gzipped = ask(&server, MAPS, JSON, "gzip").await;
        assert_eq!(gzipped.headers()[header::CONTENT_ENCODING], "gzip");
        let gzipped = gzipped.into_body().collect().await.unwrap().to_bytes();
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*gzipped), &mut plain).unwrap();
        assert!(plain == json_list, "gzip");
    })
    .unwrap();
}

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request of HTTP/2 with an open or a closed window: whether its stream is reset within that time.
async fn is_reset(lab: &Lab, path: &str, window: u8, time: Duration) -> bool {
    let mut stream = lab.tls("h2").await;
    // SETTINGS_INITIAL_WINDOW_SIZE: with 0, no response body may be sent.
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, window, 0]);
    let length = u8::try_from(path.len()).unwrap();
    let token = b"Bearer t0ken";
    let headers = [
        &b"\x82\x87\x04"[..],
        &[length],
        path.as_bytes(),
        b"\x41\x09localhost\x0f\x08",
        &[u8::try_from(token.len()).unwrap()],
        token,
    ];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let hello = [preface, settings, frame(1, 5, 1, &headers.concat())];
    stream.write_all(&hello.concat()).await.unwrap();
    let reset = lab.world.timeout(time, async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload).await.unwrap();
            // The status must be 200, which has an index of its own in HPACK.
            assert!(head[3] != 1 || payload[0] == 0x88, "{payload:?}");
            if head[3] == 3 {
                return head[8];
            }
        }
    });
    reset.await.is_ok_and(|stream| stream == 1)
}

#[test]
fn a_watch_over_http2_is_reset_if_its_events_are_not_read_but_not_for_being_idle() {
    const SHORT: Duration = Duration::from_millis(400);
    world::run(async |world| {
        let lab = Lab::start(&world, Limits { stall: SHORT, ..Limits::default() }).await;
        let watch = "/api/v1/namespaces?watch=1";
        assert!(is_reset(&lab, watch, 0, Duration::from_secs(20)).await, "its events wait");
        assert!(!is_reset(&lab, watch, 0xff, SHORT * 3).await, "its events are read");
    })
    .unwrap();
}

#[test]
fn an_http2_response_that_is_not_read_in_time_is_reset() {
    const SHORT: Duration = Duration::from_millis(400);
    world::run(async |world| {
        let lab = Lab::start(&world, Limits { request: SHORT, ..Limits::default() }).await;
        assert!(is_reset(&lab, "/version", 0, Duration::from_secs(20)).await, "the stream is reset");
        // A watch on the same server lasts longer.
        let mut watching = lab.tls("http/1.1").await;
        watching.write_all(&request("GET", "/api/v1/namespaces?watch=1", "", b"")).await.unwrap();
        let mut first = [0; 12];
        watching.read_exact(&mut first).await.unwrap();
        let ended = world.timeout(SHORT * 2, async {
            let mut more = [0; 1024];
            while watching.read(&mut more).await.unwrap() > 0 {}
        });
        assert!(ended.await.is_err(), "the watch goes on");
    })
    .unwrap();
}
