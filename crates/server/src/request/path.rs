//! What the path of a URL names: a resource, or something else.

use super::Verb;
use api::path::ResourcePath;
use http::Method;
use std::borrow::Cow;

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

/// Parses a path. `None` if its percent-encoding is broken.
pub(crate) fn parse(path: &str) -> Option<Place> {
    // Kubernetes: an escaped slash is a slash.
    let path = decoded(path)?;
    Some(match proxied(&path).or_else(|| ResourcePath::parse(&path)) {
        Some(resource) => Place::Resource(Target::from(resource)),
        None => Place::Other(path.to_string()),
    })
}

/// The resource of a path whose end is for a pod or node, which may have any form.
fn proxied(path: &str) -> Option<ResourcePath<'_>> {
    let ends = path.match_indices("/proxy/").map(|(at, _)| at + "/proxy".len());
    let mut whole = ends.filter_map(|end| ResourcePath::parse(&path[..end]));
    whole.find(|resource| resource.subresource == "proxy")
}

impl From<ResourcePath<'_>> for Target {
    fn from(path: ResourcePath<'_>) -> Target {
        let ResourcePath { group, version, namespace, resource, name, subresource, is_old_watch } = path;
        Target {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            old_watch: is_old_watch,
        }
    }
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
            ("/api/v1/namespaces/a/pods/b/proxy/c//d", Some("//v1/pods/a/b/proxy/")),
            ("/api/v1/namespaces/proxy/pods/proxy/proxy//", Some("//v1/pods/proxy/proxy/proxy/")),
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
