//! Malformed requests: rejected with a clear error, without side effects.

use crate::client::send;
use server::{Config, Server};
use std::sync::Arc;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn oversized_and_malformed_bodies_are_rejected() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("{{\"data\":{}{}}}", open.repeat(times), close.repeat(times))
    };
    let cases = [
        ("a body over the limit", format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(3 << 20)), 413),
        ("a million lists", deep("[", "]", 1_000_000), 400),
        ("half a million objects", deep("{\"a\":", "}", 500_000), 400),
        ("no JSON", "{".to_owned(), 400),
        ("no object", "[1,2]".to_owned(), 400),
        ("no text", "\u{0}\u{1}".to_owned(), 400),
        ("a number that is none", "{\"metadata\":{\"generation\":1e999}}".to_owned(), 400),
    ];
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        for (name, body, expected) in cases {
            let (status, answer) = send(&server, "POST", PATH, body).await;
            assert_eq!((status, &answer["kind"]), (expected, &"Status".into()), "{name}: {answer}");
            assert!(!answer["message"].as_str().unwrap().is_empty(), "{name}");
        }
        for path in [
            "/api/v1/namespaces/%zz/configmaps",
            "/api/v1/namespaces/default/configmaps?labelSelector=%21%21",
            "/api/v1/namespaces/default/configmaps?fieldSelector=a%3Db%3Dc%5C",
            "/api/v1/namespaces/default/configmaps?continue=%21%21%21",
        ] {
            let (status, answer) = send(&server, "GET", path, "").await;
            assert_eq!(status, 400, "{path}: {answer}");
        }
        let (status, _) = send(&server, "POST", PATH, r#"{"metadata":{"name":"fine"}}"#).await;
        assert_eq!(status, 201, "and it goes on");
    });
    run.unwrap();
}
