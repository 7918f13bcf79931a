//! Malicious or broken clients over real sockets: they are cut off or rejected, while others are served.

use crate::socket::{Lab, request};
use server::accept::Limits;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use world::World;

/// Short enough for a test, long enough for a busy machine.
const SHORT: Duration = Duration::from_millis(400);

fn quick() -> Limits {
    Limits { handshake: SHORT, headers: SHORT, ..Limits::default() }
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(World) -> F) {
    world::run(test).unwrap();
}

#[test]
fn oversized_requests_get_a_clear_error() {
    run(async |world| {
        let lab = Lab::start(&world, Limits::default()).await;
        let bomb = format!("X-Bomb: {}\r\n", "x".repeat(1 << 20));
        let many: String = (0..5000).map(|number| format!("X-{number}: x\r\n")).collect();
        for (name, headers) in [("one header of a megabyte", bomb), ("5000 headers", many)] {
            let answer = lab.ask(&request("GET", "/version", &headers, b"")).await;
            assert!(answer.starts_with("HTTP/1.1 431 "), "{name}: {answer}");
            lab.assert_well(name).await;
        }
        let long = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(4 << 20));
        let deep = format!("{{\"data\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let chunked =
            [format!("{:x}\r\n", long.len()).as_bytes(), long.as_bytes(), b"\r\n0\r\n\r\n"].concat();
        let chunked = request(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            "Transfer-Encoding: chunked\r\n",
            &chunked,
        );
        for (name, answer, expected) in [
            ("a body over the limit", lab.post(long.as_bytes()).await, "HTTP/1.1 413 "),
            ("a body over the limit that does not say so", lab.ask(&chunked).await, "HTTP/1.1 413 "),
            ("a million lists", lab.post(deep.as_bytes()).await, "HTTP/1.1 400 "),
            ("no HTTP", lab.ask(b"\x00\x01\x02\r\n\r\n").await, "HTTP/1.1 400 "),
        ] {
            assert!(answer.starts_with(expected), "{name}: {answer}");
            assert!(name == "no HTTP" || answer.contains("\"kind\":\"Status\""), "{name}: {answer}");
            lab.assert_well(name).await;
        }
    });
}

#[test]
fn clients_that_never_finish_are_cut_off() {
    run(async |world| {
        let lab = Lab::start(&world, quick()).await;
        // A handshake that stops in the middle.
        let mut half = lab.tcp().await;
        half.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await.unwrap();
        lab.assert_well("half a handshake").await;
        assert_eq!(lab.read_all(&mut half).await, "");
        // Connected, without a byte sent.
        for protocol in ["h2", "http/1.1"] {
            let mut silent = lab.tls(protocol).await;
            lab.assert_well(protocol).await;
            lab.read_all(&mut silent).await;
        }
        // A header now and then.
        let stream = lab.tls("http/1.1").await;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let trickle_world = world.clone();
        let trickle = world.spawn("trickle", async move {
            while writer.write_all(b"X: x\r\n").await.is_ok() && writer.flush().await.is_ok() {
                trickle_world.sleep(Duration::from_millis(50)).await;
            }
        });
        lab.assert_well("slow headers").await;
        assert!(!lab.read_all(&mut reader).await.contains("200 OK"));
        drop(trickle);
    });
}

#[test]
fn a_body_that_trickles_in_gets_504() {
    run(async |world| {
        let lab = Lab::start(&world, Limits { request: SHORT, ..Limits::default() }).await;
        let head =
            request("POST", "/api/v1/namespaces/default/configmaps", "Content-Length: 100000\r\n", b"{");
        let stream = lab.tls("http/1.1").await;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let trickle_world = world.clone();
        let trickle = world.spawn("trickle", async move {
            drop(writer.write_all(&head).await);
            while writer.write_all(b" ").await.is_ok() && writer.flush().await.is_ok() {
                trickle_world.sleep(Duration::from_millis(20)).await;
            }
        });
        lab.assert_well("a slow body").await;
        let answer = lab.read_all(&mut reader).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        assert!(answer.contains("request did not complete within the allotted timeout"), "{answer}");
        drop(trickle);
    });
}

#[test]
fn a_flood_of_connections_does_not_block_other_clients() {
    run(async |world| {
        let lab = Lab::start(&world, Limits { connections: 16, ..Limits::default() }).await;
        let mut flood = Vec::new();
        for _ in 0..200 {
            flood.push(lab.tcp().await);
        }
        lab.assert_well("a flood of sockets").await;
        let mut idle = Vec::new();
        for _ in 0..40 {
            idle.push(lab.tls("h2").await);
        }
        lab.assert_well("a flood of idle connections").await;
        // A connection with a request keeps its seat.
        let mut watching = lab.tls("http/1.1").await;
        watching.write_all(&request("GET", "/api/v1/namespaces?watch=1", "", b"")).await.unwrap();
        let mut first = [0; 12];
        watching.read_exact(&mut first).await.unwrap();
        for _ in 0..40 {
            idle.push(lab.tls("h2").await);
        }
        lab.assert_well("the same again").await;
        let mut more = [0; 1024];
        let read = world.timeout(Duration::from_millis(100), async {
            while watching.read(&mut more).await.unwrap() > 0 {}
        });
        assert!(read.await.is_err(), "the watch goes on");
    });
}

/// The first line of the answer to a request on a connection that stays open.
async fn first_line(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(line).unwrap()
}

#[test]
fn watches_of_one_user_take_a_quarter_of_the_connections_and_leave_those_of_others_alone() {
    const WEB_SOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://localhost\r\n";
    run(async |world| {
        for (headers, code) in [("", "200 OK"), (WEB_SOCKET, "101 Switching Protocols")] {
            let lab = Lab::start(&world, Limits { connections: 16, ..Limits::default() }).await;
            let watch = |token: &str| {
                format!(
                    "GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: localhost\r\n\
                     Authorization: Bearer {token}\r\n{headers}\r\n"
                )
            };
            let mut own = lab.tls("http/1.1").await;
            assert_eq!(first_line(&mut own, &watch("t0ken")).await, format!("HTTP/1.1 {code}\r\n"));
            let mut others = Vec::new();
            for _ in 0..40 {
                let mut stream = lab.tls("http/1.1").await;
                assert_eq!(first_line(&mut stream, &watch("al1ce")).await, format!("HTTP/1.1 {code}\r\n"));
                others.push(stream);
            }
            lab.assert_well("watches of another user").await;
            // Her oldest ones have been closed, to the last byte of each.
            for stream in &mut others[..36] {
                lab.read_all(stream).await;
            }
            let mut more = [0; 1024];
            for (name, stream) in [("admin", &mut own), ("alice", &mut others[36])] {
                let read = world.timeout(Duration::from_millis(100), async {
                    while stream.read(&mut more).await.unwrap() > 0 {}
                });
                assert!(read.await.is_err(), "the watch of {name} goes on");
            }
        }
    });
}

#[test]
fn slow_requests_of_one_user_take_no_connection_from_others() {
    run(async |world| {
        let lab = Lab::start(&world, Limits { connections: 16, ..Limits::default() }).await;
        let watch = "GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: localhost\r\n\
            Authorization: Bearer t0ken\r\n\r\n";
        let mut own = lab.tls("http/1.1").await;
        assert_eq!(first_line(&mut own, watch).await, "HTTP/1.1 200 OK\r\n");
        let mut slow = Vec::new();
        for _ in 0..40 {
            let mut stream = lab.tls("http/1.1").await;
            // The interim answer tells that the request is under way.
            let head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n\
                Authorization: Bearer al1ce\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n";
            assert_eq!(first_line(&mut stream, head).await, "HTTP/1.1 100 Continue\r\n");
            slow.push(stream);
        }
        lab.assert_well("bodies that do not come").await;
        let mut more = [0; 1024];
        let read = world
            .timeout(Duration::from_millis(100), async { while own.read(&mut more).await.unwrap() > 0 {} });
        assert!(read.await.is_err(), "the watch of another user goes on");
        for stream in &mut slow[..20] {
            lab.read_all(stream).await;
        }
    });
}

#[test]
fn a_watcher_that_does_not_read_is_cut_off() {
    run(async |world| {
        let lab = Lab::start(&world, Limits { stall: SHORT, ..Limits::default() }).await;
        let mut watcher = lab.tls("http/1.1").await;
        let watch = request("GET", "/api/v1/namespaces/default/configmaps?watch=1", "", b"");
        watcher.write_all(&watch).await.unwrap();
        let value = "x".repeat(900 << 10);
        for number in 0..24 {
            let body = format!("{{\"metadata\":{{\"name\":\"a{number}\"}},\"data\":{{\"a\":\"{value}\"}}}}");
            let answer = lab.post(body.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        }
        world.sleep(SHORT * 2).await;
        let received = lab.read_all(&mut watcher).await.len();
        assert!(received < 24 * value.len(), "it was cut off before the end: {received}");
        lab.assert_well("a stalled watch").await;
    });
}

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// `GET /version` in HPACK without a table: `:method GET`, `:scheme https`, `:path`, `:authority`.
fn headers() -> Vec<u8> {
    [&b"\x82\x87\x04\x08/version\x41\x09"[..], b"localhost"].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

#[test]
fn http2_floods_end_only_their_own_connection() {
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat();
    let resets = (0..20_000).flat_map(|number| {
        let stream = number * 2 + 1;
        [frame(HEADERS, 5, stream, &headers()), frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
    });
    let endless = (0..4000).flat_map(|number| match number {
        0 => frame(HEADERS, 1, 1, &headers()),
        _ => frame(CONTINUATION, 0, 1, &[b"\x00\x01x\x7f\x81\x7e".as_slice(), &[b'x'; 254]].concat()),
    });
    let opened = (0..2000).flat_map(|number| frame(HEADERS, 4, number * 2 + 1, &headers()));
    let cases = [
        ("streams opened and reset", resets.collect::<Vec<_>>()),
        ("headers without end", endless.collect()),
    ];
    run(async |world| {
        let lab = Lab::start(&world, Limits::default()).await;
        for (name, attack) in cases {
            let stream = lab.tls("h2").await;
            let (mut reader, mut writer) = tokio::io::split(stream);
            let bytes = [hello.clone(), attack].concat();
            let sending = world.spawn("sender", async move {
                drop(writer.write_all(&bytes).await);
                drop(writer.flush().await);
                std::future::pending::<()>().await;
            });
            lab.assert_well(name).await;
            lab.read_all(&mut reader).await;
            drop(sending);
        }
        // More streams than allowed, none of which ends: each extra one is refused.
        let stream = lab.tls("h2").await;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let bytes = [hello, opened.collect()].concat();
        let sending = world.spawn("sender", async move { drop(writer.write_all(&bytes).await) });
        lab.assert_well("too many streams").await;
        let mut some = vec![0; 9];
        reader.read_exact(&mut some).await.unwrap();
        drop(sending);
    });
}
