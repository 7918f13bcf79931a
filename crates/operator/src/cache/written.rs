//! What a request writes, read from its method and path; and what its answer says about that.

use crate::Key;
use http::{Method, Uri};
use serde::Deserialize;

/// A write to something that may be cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    /// Absent for a create, whose answer tells it, and for a deletion of many.
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) is_delete: bool,
}

/// What every answer says about itself, whatever it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Answer {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    metadata: Metadata,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: String,
}

/// Subresources that are conversations, not objects.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

impl Written {
    /// `None` for what writes nothing.
    pub(crate) fn by(method: &Method, uri: &Uri) -> Option<Written> {
        if !matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE) {
            return None;
        }
        let is_dry_run =
            uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("dryRun=")));
        if is_dry_run {
            return None;
        }
        let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, rest) = match *segments.as_slice() {
            ["api", _version, ref rest @ ..] => ("", rest),
            ["apis", group, _version, ref rest @ ..] => (group, rest),
            _ => return None,
        };
        let (namespace, rest) = match *rest {
            // A namespace is an object, too, with subresources of its own.
            ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, ref rest @ ..] => (Some(namespace), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match *rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] if !STREAMS.contains(&subresource) => {
                (plural, Some(name), Some(subresource))
            }
            _ => return None,
        };
        Some(Written {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            is_delete: *method == Method::DELETE && subresource.is_none(),
        })
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.name.as_ref().map(|name| Key::new(self.namespace.as_deref(), name))
    }
}

impl Answer {
    pub(crate) fn read(body: &[u8]) -> Option<Answer> {
        serde_json::from_slice(body).ok()
    }

    pub(crate) fn is_status(&self) -> bool {
        self.kind == "Status"
    }

    /// The object that it speaks of without being it, and the version that this has now.
    pub(crate) fn unclear(&self) -> Option<(String, u64)> {
        self.metadata.named()
    }

    // Kubernetes: the answer to a deletion names the UID of what is gone.
    pub(crate) fn deleted_uid(&self) -> Option<&str> {
        self.details.as_ref().map(|details| details.uid.as_str()).filter(|uid| !uid.is_empty())
    }

    /// Whether it is an object of this kind, in whatever version.
    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        let own = self.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == kind && own == group
    }
}

impl Metadata {
    fn named(&self) -> Option<(String, u64)> {
        Some((self.uid.clone(), self.resource_version.parse().ok()?))
    }
}

/// The objects in the answer to a deletion of many, with the versions that they had before.
pub(crate) fn named(list: &str) -> Vec<(String, u64)> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        items: Vec<Answer>,
    }
    let list: Result<List, _> = serde_json::from_str(list);
    list.map_or_else(|_| Vec::new(), |list| list.items.iter().filter_map(Answer::unclear).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_what_is_written() {
        for (request, expected) in [
            ("POST /api/v1/namespaces/prod/pods", "/pods prod - -"),
            ("PUT /api/v1/namespaces/prod/pods/web", "/pods prod web -"),
            ("PATCH /api/v1/namespaces/prod/pods/web/status?fieldManager=a", "/pods prod web status"),
            ("DELETE /apis/apps/v1/namespaces/prod/deployments/web", "apps/deployments prod web - deletes"),
            ("DELETE /api/v1/namespaces/prod/pods?labelSelector=a", "/pods prod - - deletes"),
            ("POST /api/v1/namespaces", "/namespaces - - -"),
            ("DELETE /api/v1/namespaces/prod", "/namespaces - prod - deletes"),
            ("PUT /api/v1/namespaces/prod/finalize", "/namespaces - prod finalize"),
            ("PATCH /api/v1/nodes/n1/status", "/nodes - n1 status"),
            ("POST /api/v1/namespaces/prod/pods/web/eviction", "/pods prod web eviction"),
            ("POST /api/v1/namespaces/prod/pods/web/exec", ""),
            ("POST /api/v1/namespaces/prod/pods?dryRun=All", ""),
            ("GET /api/v1/namespaces/prod/pods", ""),
            ("POST /healthz", ""),
        ] {
            let (method, uri) = request.split_once(' ').unwrap();
            let written = Written::by(&method.parse().unwrap(), &uri.parse().unwrap());
            let told = written.map_or_else(String::new, |written| {
                let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                let deletes = if written.is_delete { " deletes" } else { "" };
                let Written { group, plural, namespace, name, subresource, .. } = written;
                format!("{group}/{plural} {} {} {}{deletes}", or(namespace), or(name), or(subresource))
            });
            assert_eq!(told, expected, "{request}");
        }
    }
}
