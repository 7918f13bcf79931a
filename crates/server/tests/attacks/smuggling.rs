//! A request hidden in another, over real sockets: it is never executed, whatever the lengths say.

use crate::socket::{Lab, request};
use server::accept::Limits;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A request of the administrator whose end two readers see in different places, and the hidden one after
/// it.
fn raw(head: &str, body: &str) -> Vec<u8> {
    let hidden = r#"{"metadata":{"name":"smuggled"}}"#;
    let head =
        format!("Host: localhost\r\nAuthorization: Bearer t0ken\r\nContent-Type: application/json\r\n{head}");
    let after = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t0ken\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{hidden}",
        hidden.len()
    );
    format!("POST {MAPS} HTTP/1.1\r\n{head}\r\n{body}{after}").into_bytes()
}

#[test]
fn hidden_requests_are_not_executed() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let cases = [
        ("two lengths", raw("Content-Length: 0\r\nContent-Length: 300\r\n", "")),
        ("two lengths in one", raw("Content-Length: 0, 300\r\n", "")),
        ("a length with a sign", raw("Content-Length: +0\r\n", "")),
        ("a length below zero", raw("Content-Length: -1\r\n", "")),
        ("a length in hexadecimal", raw("Content-Length: 0x0\r\n", "")),
        ("a length without end", raw("Content-Length: 99999999999999999999999\r\n", "")),
        ("a length and chunks", raw(&format!("Content-Length: 300\r\n{chunked}"), "0\r\n\r\n")),
        ("chunks and a length", raw(&format!("{chunked}Content-Length: 5\r\n"), "0\r\n\r\n")),
        ("chunks that are not the last word", raw("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")),
        ("an unknown coding", raw("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
        (
            "two codings, the second unknown",
            raw(&format!("{chunked}Transfer-Encoding: cow\r\n"), "0\r\n\r\n"),
        ),
        (
            "a space before the colon",
            raw("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
        ),
        ("a coding on the next line", raw("X: y\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("a carriage return alone", raw("X: y\rTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("a zero byte in a header", raw("X: y\0z\r\nContent-Length: 0\r\n", "")),
        ("a header without a name", raw(": y\r\nContent-Length: 0\r\n", "")),
        ("a chunk's size with a sign", raw(chunked, "+0\r\n\r\n")),
        ("a chunk's size in another notation", raw(chunked, "0x0\r\n\r\n")),
        ("a chunk's size that is too large", raw(chunked, "10000000000000000\r\n\r\n")),
        ("chunks in HTTP/1.0", {
            let text = String::from_utf8(raw(chunked, "0\r\n\r\n")).unwrap();
            text.replacen("HTTP/1.1", "HTTP/1.0", 1).into_bytes()
        }),
        ("a space in the path", b"GET /version x HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("another protocol", b"GET /version HTTP/3.7\r\nHost: localhost\r\n\r\n".to_vec()),
    ];
    world::run(async |world| {
        let lab = Lab::start(&world, Limits::default()).await;
        for (attack, bytes) in cases {
            let answer = lab.ask(&bytes).await;
            assert!(
                answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.0 4"),
                "{attack}: {answer}"
            );
            assert_eq!(answer.matches("HTTP/1.").count(), 1, "{attack}: there is one answer: {answer}");
            let found = lab.ask(&request("GET", &format!("{MAPS}/smuggled"), "", b"")).await;
            assert!(found.starts_with("HTTP/1.1 404 "), "{attack}: {found}");
        }
    })
    .unwrap();
}

#[test]
fn clients_cannot_inject_response_headers() {
    let body =
        "{\"metadata\":{\"name\":\"a\"},\"x\\r\\nX-Evil: 1\\r\\n\":1,\"data\":{\"a\\r\\nX-Evil: 1\":\"b\"}}";
    let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let cases = [
        ("a path with a line break", request("GET", "/version%0d%0aX-Evil:%201", "", b"")),
        ("a name with a line break", request("GET", &format!("{MAPS}/a%0d%0aX-Evil:%201"), "", b"")),
        (
            "a warning with a line break",
            request("POST", &format!("{MAPS}?fieldValidation=Warn"), &length, body.as_bytes()),
        ),
        (
            "a selector with a line break",
            request("GET", &format!("{MAPS}?labelSelector=a%0d%0aX-Evil:%201"), "", b""),
        ),
        (
            "an option with a line break",
            request("GET", &format!("{MAPS}?resourceVersion=1%0d%0aX-Evil:%201"), "", b""),
        ),
        (
            "a type with a line break",
            request("GET", MAPS, "Accept: application/json%0d%0aX-Evil: 1\r\n", b""),
        ),
        (
            "an identity with a line break",
            request("GET", MAPS, "Impersonate-User: a%0d%0aX-Evil: 1\r\n", b""),
        ),
    ];
    world::run(async |world| {
        let lab = Lab::start(&world, Limits::default()).await;
        for (attack, bytes) in cases {
            let answer = lab.ask(&bytes).await;
            let head = answer.split("\r\n\r\n").next().unwrap();
            assert!(head.starts_with("HTTP/1.1 "), "{attack}: {answer}");
            assert!(!head.to_lowercase().contains("\r\nx-evil"), "{attack}: {answer}");
        }
        lab.assert_well("headers in answers").await;
    })
    .unwrap();
}
