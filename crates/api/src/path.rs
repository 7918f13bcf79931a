//! The URL path of a resource, `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`: written and read.

use std::fmt;

/// A path to a collection, an object or a subresource. What is absent is empty.
///
/// ```
/// use api::path::ResourcePath;
///
/// let pods = ResourcePath::collection("", "v1", "pods").in_namespace("prod");
/// assert_eq!(pods.to_string(), "/api/v1/namespaces/prod/pods");
/// assert_eq!(ResourcePath::parse("/api/v1/namespaces/prod/pods/web"), Some(pods.named("web")));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    pub version: &'a str,
    /// Empty for cluster-scoped resources, and for all namespaces.
    pub namespace: &'a str,
    /// The plural, as `pods`.
    pub resource: &'a str,
    /// Empty for a collection.
    pub name: &'a str,
    /// May have several parts, as `log/previous`; of a proxy path only `proxy`.
    pub subresource: &'a str,
    /// Kubernetes: the deprecated `/api/v1/watch/…`, which is read but never written.
    pub is_old_watch: bool,
}

impl<'a> ResourcePath<'a> {
    pub fn collection(group: &'a str, version: &'a str, resource: &'a str) -> ResourcePath<'a> {
        ResourcePath { group, version, resource, ..ResourcePath::default() }
    }

    /// Empty for cluster-scoped resources, and for all namespaces.
    pub fn in_namespace(self, namespace: &'a str) -> ResourcePath<'a> {
        ResourcePath { namespace, ..self }
    }

    pub fn named(self, name: &'a str) -> ResourcePath<'a> {
        ResourcePath { name, ..self }
    }

    /// `None` for paths that name no resource, such as `/healthz` or `/apis/apps/v1`. The path must not
    /// have percent-encoded parts.
    pub fn parse(path: &'a str) -> Option<ResourcePath<'a>> {
        let path = path.trim_matches('/');
        if path.contains("//") {
            return None;
        }
        let (root, rest) = split(path);
        let (group, rest) = match root {
            "api" => ("", rest),
            "apis" => split(rest),
            _ => return None,
        };
        let (version, rest) = split(rest);
        let (is_old_watch, rest) = match split(rest) {
            ("", _) => return None,
            ("watch", rest) if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match split(rest) {
            ("namespaces", below) => match split(below) {
                // They are subresources of the namespace, not resources inside it.
                (_, "" | "status" | "finalize") => ("", rest),
                (namespace, inside) => (namespace, inside),
            },
            _ => ("", rest),
        };
        let (resource, rest) = split(rest);
        let (name, rest) = split(rest);
        // What follows `proxy` is a path of the proxied server.
        let subresource = if split(rest).0 == "proxy" { "proxy" } else { rest };
        Some(ResourcePath { group, version, namespace, resource, name, subresource, is_old_watch })
    }
}

impl fmt::Display for ResourcePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourcePath { group, version, namespace, resource, name, subresource, is_old_watch: _ } = self;
        write_version(out, group, version)?;
        if !namespace.is_empty() {
            write!(out, "/namespaces/{namespace}")?;
        }
        for part in [resource, name, subresource].into_iter().take_while(|part| !part.is_empty()) {
            write!(out, "/{part}")?;
        }
        Ok(())
    }
}

/// Where a version of a group lists its resources: `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionPath<'a> {
    pub group: &'a str,
    pub version: &'a str,
}

impl fmt::Display for VersionPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_version(out, self.group, self.version)
    }
}

fn write_version(out: &mut fmt::Formatter<'_>, group: &str, version: &str) -> fmt::Result {
    if group.is_empty() { write!(out, "/api/{version}") } else { write!(out, "/apis/{group}/{version}") }
}

/// The first part of a path, and the rest. Paths are short: a look at each byte is faster than a search.
fn split(path: &str) -> (&str, &str) {
    match path.bytes().position(|byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (path, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_back_as_written() {
        for (path, parts) in [
            ("/api/v1/pods", ["", "v1", "", "pods", "", ""]),
            ("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]),
            ("/api/v1/namespaces/a/finalize", ["", "v1", "", "namespaces", "a", "finalize"]),
            ("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]),
            ("/api/v1/namespaces/a/pods/b", ["", "v1", "a", "pods", "b", ""]),
            ("/api/v1/namespaces/a/pods/b/status", ["", "v1", "a", "pods", "b", "status"]),
            ("/api/v1/namespaces/a/pods/b/x/y", ["", "v1", "a", "pods", "b", "x/y"]),
            ("/apis/apps/v1/deployments", ["apps", "v1", "", "deployments", "", ""]),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                ["apps", "v1", "a", "deployments", "b", "scale"],
            ),
        ] {
            let [group, version, namespace, resource, name, subresource] = parts;
            let expected =
                ResourcePath { group, version, namespace, resource, name, subresource, is_old_watch: false };
            assert_eq!(ResourcePath::parse(path), Some(expected), "{path}");
            assert_eq!(expected.to_string(), path);
        }
    }

    #[test]
    fn proxies_and_old_watches_are_read() {
        let proxy = ResourcePath::parse("/api/v1/nodes/n/proxy/c/d").unwrap();
        assert_eq!((proxy.name, proxy.subresource), ("n", "proxy"));
        let watch = ResourcePath::parse("/api/v1/watch/namespaces/a/pods/").unwrap();
        assert_eq!((watch.namespace, watch.resource, watch.is_old_watch), ("a", "pods", true));
    }

    #[test]
    fn other_paths_name_no_resource() {
        for path in
            ["", "/", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1/", "/api//v1/pods"]
        {
            assert_eq!(ResourcePath::parse(path), None, "{path}");
        }
    }
}
