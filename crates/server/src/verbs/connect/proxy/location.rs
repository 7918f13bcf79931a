//! Redirects of a pod: its paths are below that of the proxy for the client.

use http::{HeaderMap, HeaderValue, header};

/// Changes a redirect that stays within the pod. `backend` is the pod as in its URL, `host` the one that the client asked.
pub(super) fn rewrite(headers: &mut HeaderMap, prefix: &str, backend: &str, host: &str) {
    let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
    let rewritten = location.and_then(|location| rewritten(location, prefix, backend, host));
    if let Some(location) = rewritten.and_then(|location| HeaderValue::from_str(&location).ok()) {
        headers.insert(header::LOCATION, location);
    }
}

/// `None` if the redirect stays as it is.
pub(super) fn rewritten(location: &str, prefix: &str, backend: &str, host: &str) -> Option<String> {
    let (scheme, rest) = scheme_and_rest(location);
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let is_elsewhere = !authority.is_empty() && authority != backend && authority != host;
    if is_elsewhere || !path.starts_with('/') || (authority.is_empty() && !scheme.is_empty()) {
        return None;
    }
    // Kubernetes: the host that the client knows stays, that of the pod does not.
    let kept = match authority {
        "" => String::new(),
        known if known == host => format!("{scheme}//{host}"),
        _ => String::new(),
    };
    let prefix = if path.starts_with(prefix) { "" } else { prefix };
    Some(format!("{kept}{prefix}{path}"))
}

/// The scheme with its colon; empty if there is none.
fn scheme_and_rest(location: &str) -> (&str, &str) {
    let is_scheme = |text: &str| {
        text.starts_with(|it: char| it.is_ascii_alphabetic())
            && text.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.'))
    };
    match location.find(':') {
        Some(colon) if is_scheme(&location[..colon]) => location.split_at(colon + 1),
        _ => ("", location),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_within_a_pod_lead_through_the_proxy() {
        const PREFIX: &str = "/api/v1/namespaces/a/pods/web/proxy";
        for (location, expected) in [
            ("/login?a=b#c", Some("/api/v1/namespaces/a/pods/web/proxy/login?a=b#c")),
            ("/", Some("/api/v1/namespaces/a/pods/web/proxy/")),
            ("http://10.0.0.1:80/x", Some("/api/v1/namespaces/a/pods/web/proxy/x")),
            ("//10.0.0.1:80/x", Some("/api/v1/namespaces/a/pods/web/proxy/x")),
            ("https://server:6443/x", Some("https://server:6443/api/v1/namespaces/a/pods/web/proxy/x")),
            ("/api/v1/namespaces/a/pods/web/proxy/x", Some("/api/v1/namespaces/a/pods/web/proxy/x")),
            ("login", None),
            ("../x", None),
            ("?a=b", None),
            ("https://example.com/x", None),
            ("http://10.0.0.1:81/x", None),
            ("http://user@10.0.0.1:80/x", None),
            ("//example.com/x", None),
            ("http://10.0.0.1:80", None),
            ("javascript:/x", None),
            ("mailto:a@example.com", None),
            ("", None),
        ] {
            let found = rewritten(location, PREFIX, "10.0.0.1:80", "server:6443");
            assert_eq!(found.as_deref(), expected, "{location}");
        }
    }
}
