//! A method and a URL in, what is asked for out: as rules and traces speak of it.

use http::{Method, Uri};

/// What a request asks for, in Kubernetes' words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    /// With the subresource: `pods`, `pods/status`; empty where it is no resource.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Asked {
    pub(crate) fn of(method: &Method, uri: &Uri) -> Asked {
        let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let rest = match parts[..] {
            ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
            _ => &[],
        };
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            _ => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default();
        let resource = match (part(0), part(2)) {
            (resource, "") => resource.to_owned(),
            (resource, subresource) => format!("{resource}/{subresource}"),
        };
        let (namespace, name) = (namespace.to_owned(), part(1).to_owned());
        Asked { verb: verb(method, uri, !name.is_empty()), resource, namespace, name }
    }

    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch" | "other")
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }
}

fn verb(method: &Method, uri: &Uri, is_single: bool) -> &'static str {
    let watches = || query(uri).any(|(name, value)| name == "watch" && (value == "true" || value == "1"));
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

/// Names and values of a query, still encoded.
pub(crate) fn query(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_the_server_reads_them() {
        for (method, url, verb, resource, namespace, name) in [
            ("GET", "/api/v1/pods?watch=true", "watch", "pods", "", ""),
            ("GET", "/api/v1/namespaces/a/pods?watch=1&limit=1", "watch", "pods", "a", ""),
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
            let asked = Asked::of(&method.parse().unwrap(), &url.parse().unwrap());
            let expected =
                Asked { verb, resource: resource.into(), namespace: namespace.into(), name: name.into() };
            assert_eq!(asked, expected, "{method} {url}");
        }
    }
}
