//! The path of a request for a proxy, split behind `/proxy`.

/// A path of the server, and what of it the node or pod is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProxyPath {
    /// `/api/v1/nodes/NAME/proxy`, for example; it begins with one slash.
    pub(super) prefix: String,
    /// As the client has written it; empty if there is nothing.
    pub(super) rest: String,
}

impl ProxyPath {
    /// Of `/api/v1/nodes/NAME/proxy/…`.
    pub(super) fn of_node(path: &str) -> ProxyPath {
        ProxyPath::split(path, 5)
    }

    /// Of `/api/v1/namespaces/NAMESPACE/pods/NAME/proxy/…` and that of a service.
    pub(super) fn in_namespace(path: &str) -> ProxyPath {
        ProxyPath::split(path, 7)
    }

    /// Splits before the slash that has so many before it.
    fn split(path: &str, slashes: usize) -> ProxyPath {
        let path = format!("/{}", path.trim_start_matches('/'));
        let bytes = path.as_bytes();
        // An escaped slash is a slash, as for the name in the path.
        let is_slash = |at: &usize| {
            bytes[*at] == b'/' || bytes[*at..].get(..3).is_some_and(|it| it.eq_ignore_ascii_case(b"%2f"))
        };
        let end = (0..bytes.len()).filter(is_slash).nth(slashes).unwrap_or(bytes.len());
        let (prefix, rest) = path.split_at(end);
        let unescaped = rest.get(3..).filter(|_| rest.starts_with('%'));
        let rest = unescaped.map_or_else(|| rest.to_owned(), |rest| format!("/{rest}"));
        ProxyPath { prefix: prefix.to_owned(), rest }
    }

    /// What the node or pod is asked for, with its slash.
    pub(super) fn target(&self, query: Option<&str>) -> String {
        let slash = if self.rest.starts_with('/') { "" } else { "/" };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{slash}{}{query}", self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_behind_the_word_proxy() {
        const WEB: &str = "/api/v1/namespaces/a/pods/web:80/proxy";
        const NODE: &str = "/api/v1/nodes/n/proxy";
        for (path, prefix, rest) in [
            (WEB.to_owned(), WEB, ""),
            (format!("{WEB}/"), WEB, "/"),
            (format!("{WEB}/x/y%2Fz//"), WEB, "/x/y%2Fz//"),
            (format!("{WEB}//elsewhere"), WEB, "//elsewhere"),
            (format!("{WEB}%2Fx"), WEB, "/x"),
            (format!("//{WEB}/x"), WEB, "/x"),
            (
                "/api/v1/namespaces/a/pods/web%2fproxy/x".to_owned(),
                "/api/v1/namespaces/a/pods/web%2fproxy",
                "/x",
            ),
            (NODE.to_owned(), NODE, ""),
            (format!("{NODE}/"), NODE, "/"),
            (format!("{NODE}/stats/summary"), NODE, "/stats/summary"),
            (format!("{NODE}//evil"), NODE, "//evil"),
            (format!("{NODE}%2fhealthz"), NODE, "/healthz"),
            (format!("/{NODE}/healthz"), NODE, "/healthz"),
            ("/api/v1/nodes/n%2fproxy/healthz".to_owned(), "/api/v1/nodes/n%2fproxy", "/healthz"),
        ] {
            let expected = ProxyPath { prefix: prefix.to_owned(), rest: rest.to_owned() };
            let found = match path.contains("namespaces") {
                true => ProxyPath::in_namespace(&path),
                false => ProxyPath::of_node(&path),
            };
            assert_eq!(found, expected, "{path}");
        }
    }
}
