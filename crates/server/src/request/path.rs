//! Parses the path of a request.

use super::Verb;
use http::Method;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The most parts of a resource's path; what follows `proxy` may be longer.
const USUAL_PARTS: usize = 9;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A resource: a collection or one object.
    Resource(Target),
    /// Anything else: discovery, health, documents.
    Other(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    /// Empty for cluster-scoped resources, and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// Under the deprecated `/watch/` paths.
    pub(crate) old_watch: bool,
}

/// Parses a path. `None` where it is malformed.
pub(crate) fn parse(path: &str) -> Option<Place> {
    // Kubernetes: an escaped slash is a slash.
    let path = decoded(path)?;
    let parts = split(path.trim_matches('/'));
    let (group, version, rest) = match parts[..] {
        _ if parts.contains(&"") => return Some(Place::Other(path.to_string())),
        ["api", version, ref rest @ ..] if !rest.is_empty() => ("", version, rest),
        ["apis", group, version, ref rest @ ..] if !rest.is_empty() => (group, version, rest),
        _ => return Some(Place::Other(path.to_string())),
    };
    let (old_watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        // `/namespaces/NAME/status` is a subresource of the namespace, not a resource in it.
        ["namespaces", name, sub @ ("status" | "finalize")] => {
            return Some(target(group, version, "", &["namespaces", name, sub], old_watch));
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    Some(target(group, version, namespace, rest, old_watch))
}

/// The parts between slashes. Paths are short: looking at each byte is faster than searching.
fn split(path: &str) -> SmallVec<[&str; USUAL_PARTS]> {
    let (mut parts, mut start) = (SmallVec::new(), 0);
    for (at, _) in path.bytes().enumerate().filter(|(_, byte)| *byte == b'/') {
        parts.push(&path[start..at]);
        start = at + 1;
    }
    parts.push(&path[start..]);
    parts
}

fn target(group: &str, version: &str, namespace: &str, rest: &[&str], old_watch: bool) -> Place {
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    Place::Resource(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: part(0),
        namespace: namespace.to_owned(),
        name: part(1),
        subresource: match rest.get(2) {
            // The rest is for the proxied server.
            Some(&"proxy") => "proxy".to_owned(),
            _ => rest.get(2..).unwrap_or_default().join("/"),
        },
        old_watch,
    })
}

impl Target {
    /// The verb of a method for this target.
    pub(crate) fn verb(&self, method: &Method, watch: bool) -> Option<Verb> {
        let single = !self.name.is_empty();
        match *method {
            Method::GET | Method::HEAD if self.old_watch => Some(Verb::Watch),
            _ if self.old_watch => None,
            Method::GET | Method::HEAD if single => Some(Verb::Get),
            Method::GET | Method::HEAD if watch => Some(Verb::Watch),
            Method::GET | Method::HEAD => Some(Verb::List),
            Method::POST => Some(Verb::Create),
            Method::PUT => Some(Verb::Update),
            Method::PATCH => Some(Verb::Patch),
            Method::DELETE if single => Some(Verb::Delete),
            Method::DELETE => Some(Verb::DeleteCollection),
            _ => None,
        }
    }
}

/// Percent-decodes. `None` where it is malformed or not UTF-8.
pub(crate) fn decode(part: &str) -> Option<String> {
    decoded(part).map(Cow::into_owned)
}

fn decoded(part: &str) -> Option<Cow<'_, str>> {
    if !part.contains('%') {
        return Some(Cow::Borrowed(part));
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push((digit()? * 16 + digit()?) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_parse_to_targets() {
        for (path, expected) in [
            ("/api/v1/pods", Some("//v1/pods////")),
            ("/api/v1/namespaces", Some("//v1/namespaces////")),
            ("/api/v1/namespaces/a", Some("//v1/namespaces//a//")),
            ("/api/v1/namespaces/a/status", Some("//v1/namespaces//a/status/")),
            ("/api/v1/namespaces/a/pods", Some("//v1/pods/a///")),
            ("/api/v1/namespaces/a/pods/b/status", Some("//v1/pods/a/b/status/")),
            ("/apis/apps/v1/deployments", Some("/apps/v1/deployments////")),
            ("/apis/apps/v1/namespaces/a/deployments/b%2Fscale", Some("/apps/v1/deployments/a/b/scale/")),
            ("/api/v1/%70ods/", Some("//v1/pods////")),
            ("/api/v1/namespaces/a/pods/b/proxy/c/d", Some("//v1/pods/a/b/proxy/")),
            ("/api//v1/pods", None),
            ("/api/v1/watch/pods", Some("//v1/pods////watch")),
            ("/api/v1", None),
            ("/apis/apps/v1", None),
            ("/healthz", None),
        ] {
            let found = match parse(path).unwrap() {
                Place::Resource(target) => Some(format!(
                    "/{}/{}/{}/{}/{}/{}/{}",
                    target.group,
                    target.version,
                    target.resource,
                    target.namespace,
                    target.name,
                    target.subresource,
                    if target.old_watch { "watch" } else { "" }
                )),
                Place::Other(_) => None,
            };
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        assert_eq!(parse("/api/v1/pods/%zz"), None);
        assert_eq!(parse("/%6Fpenapi/v3"), Some(Place::Other("/openapi/v3".to_owned())));
    }
}
