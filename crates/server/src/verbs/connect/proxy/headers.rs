//! The headers of a request and of its answer that a proxy passes on.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::SocketAddr;

/// What belongs to one connection only.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
];
/// A pod must not decide which sites may use the server.
// Kubernetes: the same four.
const CROSS_ORIGIN: [&str; 4] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
];
/// Kubernetes: a WebSocket protocol with this prefix is a bearer token of a browser.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";
const IMPERSONATION: &str = "impersonate-";

/// All headers of a client except those with which it has shown who it is.
pub(in crate::verbs::connect) fn without_credentials(all: &HeaderMap) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(all.len());
    for (name, value) in all {
        let is_credential = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION].contains(name);
        if is_credential || name.as_str().starts_with(IMPERSONATION) {
            continue;
        }
        if *name != header::SEC_WEBSOCKET_PROTOCOL {
            passed.append(name, value.clone());
        } else if let Some(protocols) = without_tokens(value) {
            passed.append(name, protocols);
        }
    }
    passed
}

/// The protocols of a WebSocket without tokens; `None` if no others are offered.
fn without_tokens(protocols: &HeaderValue) -> Option<HeaderValue> {
    let Ok(text) = protocols.to_str() else { return None };
    if !text.contains(TOKEN_PROTOCOL) {
        return Some(protocols.clone());
    }
    let others = text.split(',').map(str::trim).filter(|protocol| !protocol.starts_with(TOKEN_PROTOCOL));
    let others = others.collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&others).ok().filter(|others| !others.is_empty())
}

/// Removes what is between two neighbours, and what they say is; never the host, which every request has.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let named: Vec<HeaderName> = named.collect();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // It counts, whatever this says.
        headers.remove(header::CONTENT_LENGTH);
    }
    for name in HOP_BY_HOP.iter().chain(named.iter().filter(|name| **name != header::HOST)) {
        headers.remove(name);
    }
}

/// As [`remove_hop_by_hop`], but the request stays one for an upgrade: without a body, since what comes after it is none.
pub(super) fn keep_upgrade(headers: &mut HeaderMap) {
    let protocols: Vec<HeaderValue> = headers.get_all(header::UPGRADE).iter().cloned().collect();
    remove_hop_by_hop(headers);
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    for protocol in protocols {
        headers.append(header::UPGRADE, protocol);
    }
}

pub(super) fn remove_cross_origin(headers: &mut HeaderMap) {
    for name in CROSS_ORIGIN {
        headers.remove(name);
    }
}

/// Tells the pod who asks, and under which path.
pub(super) fn add_forwarded(headers: &mut HeaderMap, client: Option<SocketAddr>, path: &str) {
    const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
    const URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
    if let Some(client) = client {
        let known = headers.get_all(FOR).iter().filter_map(|value| value.to_str().ok().map(str::to_owned));
        let all: Vec<String> = known.chain([client.ip().to_string()]).collect();
        if let Ok(all) = HeaderValue::from_str(&all.join(", ")) {
            headers.insert(FOR, all);
        }
    }
    if let Ok(path) = HeaderValue::from_str(path) {
        headers.insert(URI, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn credentials_are_not_passed_on() {
        let passed = without_credentials(&map(&[
            ("authorization", "Bearer a"),
            ("impersonate-user", "root"),
            ("impersonate-extra-x", "y"),
            ("sec-websocket-protocol", "chat, base64url.bearer.authorization.k8s.io.c2VjcmV0"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0"),
            ("accept", "a"),
            ("accept", "b"),
        ]));
        assert_eq!(passed, map(&[("sec-websocket-protocol", "chat"), ("accept", "a"), ("accept", "b")]));
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let mut headers = map(&[
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("x-other", "2"),
        ]);
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers, map(&[("x-other", "2")]));
        let mut headers = map(&[
            ("connection", "upgrade, X-Mine, Host"),
            ("upgrade", "websocket"),
            ("x-mine", "1"),
            ("host", "h"),
            ("content-length", "7"),
        ]);
        keep_upgrade(&mut headers);
        let expected = map(&[("host", "h"), ("connection", "Upgrade"), ("upgrade", "websocket")]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn the_address_of_the_client_is_added_to_those_before() {
        let mut headers = map(&[("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2")]);
        add_forwarded(&mut headers, Some(([192, 0, 2, 3], 1).into()), "/a/proxy/");
        let expected =
            map(&[("x-forwarded-for", "192.0.2.1, 192.0.2.2, 192.0.2.3"), ("x-forwarded-uri", "/a/proxy/")]);
        assert_eq!(headers, expected);
    }
}
