//! URLs, one per line: each gets a response, and the same one however its characters are escaped.

use super::{
    control_plane::{send, with_server},
    texts,
};
use crate::Target;

pub(super) const TARGET: Target = Target { name: "url", check, seeds, words: WORDS };

/// Starting a control plane takes a while, so one serves several lines.
const MAX_LINES: usize = 50;

const WORDS: &[&str] = &[
    "/",
    "//",
    "?",
    "&",
    "=",
    "%2F",
    "%00",
    "%ff",
    "%",
    "+",
    "..",
    "/namespaces/",
    "/watch/",
    "/status",
    "/scale",
    "/api/v1",
    "/apis/apps/v1",
    "/deployments",
    "/pods",
    "watch=true",
    "limit=1",
    "continue=",
    "resourceVersion=",
    "resourceVersionMatch=Exact",
    "labelSelector=",
    "fieldSelector=metadata.name%3D",
    "timeoutSeconds=1",
    "sendInitialEvents=true",
    "allowWatchBookmarks=1",
    "pretty=1",
    "\n",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "/api/v1/namespaces/default/pods?limit=2&labelSelector=a%3Db,c+in+(d,e)&watch=0",
        "/apis/apps/v1/deployments?fieldSelector=metadata.name!%3Dx&resourceVersion=0",
        "/apis/apps/v1/namespaces/default/deployments/a/scale\n/api/v1/nodes/x/proxy/y",
        "/api/v1/namespaces/default\n/api/v1/namespaces/kube-system/status\n/api/v1/namespaces?limit=1",
        "/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1&resourceVersion=1",
        "/api/v1/pods?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
        "/api\n/apis\n/apis/apps\n/apis/apps/v1\n/healthz?verbose\n/readyz/etcd\n/version\n/openapi/v3\n/metrics",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin?pretty=true",
    ])
}

fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    with_server(|server| async move {
        for line in text.lines().filter(|line| line.starts_with('/')).take(MAX_LINES) {
            let Some(answer) = send(&server, "GET", line, "", b"").await else { continue };
            let again = send(&server, "GET", &respelled(line), "", b"").await;
            assert_eq!(again.map(|it| it.code), Some(answer.code), "{line} and {}", respelled(line));
        }
    });
}

/// The same URL with every letter of its values and names percent-encoded.
fn respelled(line: &str) -> String {
    let mut escaped = 0_usize;
    line.bytes()
        .map(|byte| {
            // The characters after a percent sign are part of an escape already.
            escaped = if byte == b'%' { 3 } else { escaped.saturating_sub(1) };
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' if escaped == 0 => format!("%{byte:02X}"),
                _ => char::from(byte).to_string(),
            }
        })
        .collect()
}
