//! Continue tokens: any token gets a response, and the server's own lead through the whole list, each object
//! once.

use super::{
    control_plane::{send, with_server},
    texts,
};
use crate::Target;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::collections::BTreeSet;

pub(super) const TARGET: Target = Target { name: "continue_token", check, seeds, words: WORDS };

const LIST: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const WORDS: &[&str] =
    &["\"v\":", "\"rv\":", "\"start\":", "meta.k8s.io/v1", "-1", "0", "\\u0000", "admin", "../"];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"v":"meta.k8s.io/v1","rv":1,"start":"admin\u0000"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"edit"}"#,
        r#"{"v":"meta.k8s.io/v1","rv":0,"start":"../../secrets/"}"#,
        r#"{"v":"v2","rv":9223372036854775807,"start":""}"#,
    ])
}

fn check(input: &[u8]) {
    let limit = 1 + usize::from(input.first().copied().unwrap_or_default()) % 40;
    with_server(|server| async move {
        for token in [URL_SAFE_NO_PAD.encode(input), super::percent(input)] {
            let uri = format!("{LIST}?limit=2&continue={token}");
            let answer = send(&server, "GET", &uri, "", b"").await.unwrap();
            if answer.code == 200 {
                for item in answer.json()["items"].as_array().unwrap() {
                    assert!(item.get("rules").is_some(), "a token reaches other objects: {item}");
                }
            }
        }
        let mut seen = BTreeSet::new();
        let mut token = String::new();
        loop {
            let uri = format!("{LIST}?limit={limit}&continue={token}");
            let page = send(&server, "GET", &uri, "", b"").await.unwrap().json();
            for item in page["items"].as_array().unwrap() {
                assert!(seen.insert(item["metadata"]["name"].to_string()), "twice: {item}");
            }
            token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        let all = send(&server, "GET", LIST, "", b"").await.unwrap().json();
        assert_eq!(all["items"].as_array().unwrap().len(), seen.len());
    });
}
