//! What a request asks for, by its method and URL: as faults and traces name it.

use api::path::ResourcePath;
use http::{Method, Uri};

/// The verb, resource and object of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    pub(crate) verb: &'static str,
    /// Empty for the core group.
    pub(crate) group: String,
    /// With the subresource: `pods`, `pods/status`; empty if the URL names no resource.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Who sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sender {
    /// The name of the user; empty if only the server knows it.
    pub(crate) user: String,
    /// The User-Agent.
    pub(crate) agent: String,
    /// Whether it is another process.
    pub(crate) is_outside: bool,
}

impl RequestInfo {
    pub(crate) fn of(method: &Method, uri: &Uri) -> RequestInfo {
        let path = ResourcePath::parse(uri.path()).unwrap_or_default();
        let resource = match path.subresource {
            "" => path.resource.to_owned(),
            subresource => format!("{}/{subresource}", path.resource),
        };
        let (namespace, name, group) =
            (path.namespace.to_owned(), path.name.to_owned(), path.group.to_owned());
        let verb = if path.is_old_watch { "watch" } else { verb(method, uri, !name.is_empty()) };
        RequestInfo { group, verb, resource, namespace, name }
    }

    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch" | "other")
    }

    /// Whether a container, a pod, a service or a node answers: a log that is followed, a proxied page.
    pub(crate) fn is_connection(&self) -> bool {
        let subresource = self.resource.split_once('/').map(|(_, subresource)| subresource);
        matches!(subresource, Some("attach" | "exec" | "log" | "portforward" | "proxy"))
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }
}

fn verb(method: &Method, uri: &Uri, is_single: bool) -> &'static str {
    // Kubernetes: everything but these two is true, also nothing.
    let is_true = |value: &str| value != "0" && !value.eq_ignore_ascii_case("false");
    let watches = || query(uri).any(|(name, value)| name == "watch" && is_true(value));
    match (method.as_str(), is_single) {
        ("GET", true) => "get",
        ("GET", false) if watches() => "watch",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "other",
    }
}

/// The parameters of a query, still percent-encoded.
pub(crate) fn query(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_containers_pods_services_and_nodes_are_told_apart() {
        for (url, expected) in [
            ("/api/v1/namespaces/a/pods/b/log?follow=true", true),
            ("/api/v1/namespaces/a/pods/b/proxy/page", true),
            ("/api/v1/namespaces/a/services/b/proxy", true),
            ("/api/v1/nodes/b/proxy/logs", true),
            ("/api/v1/namespaces/a/pods/b/exec", true),
            ("/api/v1/namespaces/a/pods/b/status", false),
            ("/api/v1/namespaces/a/pods/log", false),
        ] {
            let found = RequestInfo::of(&Method::GET, &url.parse().unwrap());
            assert_eq!(found.is_connection(), expected, "{url}");
        }
    }

    #[test]
    fn urls_name_verb_resource_and_object() {
        for (method, url, verb, resource, namespace, name) in [
            ("GET", "/api/v1/pods?watch=true", "watch", "pods", "", ""),
            ("GET", "/api/v1/namespaces/a/pods?watch=1&limit=1", "watch", "pods", "a", ""),
            ("GET", "/api/v1/pods?watch=yes", "watch", "pods", "", ""),
            ("GET", "/api/v1/pods?watch", "watch", "pods", "", ""),
            ("GET", "/api/v1/pods?watch=False", "list", "pods", "", ""),
            ("GET", "/api/v1/namespaces/a/pods/b?watch=0", "get", "pods", "a", "b"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/status",
                "patch",
                "deployments/status",
                "a",
                "b",
            ),
            ("GET", "/api/v1/namespaces/a", "get", "namespaces", "", "a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update", "namespaces/finalize", "", "a"),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "pods", "a", ""),
            ("GET", "/apis", "list", "", "", ""),
        ] {
            let found = RequestInfo::of(&method.parse().unwrap(), &url.parse().unwrap());
            let group = if url.contains("/apps/") { "apps" } else { "" };
            let expected = RequestInfo {
                verb,
                group: group.into(),
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
            };
            assert_eq!(found, expected, "{method} {url}");
        }
    }
}
