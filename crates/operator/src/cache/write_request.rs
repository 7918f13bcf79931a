//! What a request writes, by its method and path; and the metadata of its response.

use crate::Key;
use api::path::ResourcePath;
use http::{Method, Uri};
use serde::Deserialize;

/// A write of an object that may be cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteRequest {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    /// Absent for a create, whose response has it, and for the deletion of a collection.
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) is_delete: bool,
}

/// What is read of every response, be it an object, a list or a Status.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResponseHead {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    metadata: WrittenMetadata,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WrittenMetadata {
    uid: String,
    resource_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: String,
}

/// Subresources that open a stream instead of writing an object.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

impl WriteRequest {
    /// `None` for requests that write no object.
    pub(crate) fn of(method: &Method, uri: &Uri) -> Option<WriteRequest> {
        if !matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE) {
            return None;
        }
        let is_dry_run =
            uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("dryRun=")));
        if is_dry_run {
            return None;
        }
        let path = ResourcePath::parse(uri.path())?;
        if STREAMS.contains(&path.subresource) || path.subresource.contains('/') {
            return None;
        }
        let present = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Some(WriteRequest {
            group: path.group.to_owned(),
            plural: path.resource.to_owned(),
            namespace: present(path.namespace),
            name: present(path.name),
            subresource: present(path.subresource),
            is_delete: *method == Method::DELETE && path.subresource.is_empty(),
        })
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.name.as_ref().map(|name| Key::new(self.namespace.as_deref(), name))
    }
}

impl ResponseHead {
    pub(crate) fn read(body: &[u8]) -> Option<ResponseHead> {
        serde_json::from_slice(body).ok()
    }

    pub(crate) fn is_status(&self) -> bool {
        self.kind == "Status"
    }

    /// The UID and resourceVersion in its metadata.
    pub(crate) fn uid_and_version(&self) -> Option<(String, u64)> {
        Some((self.metadata.uid.clone(), self.metadata.resource_version.parse().ok()?))
    }

    // Kubernetes: the Status that answers a deletion has the UID of the deleted object.
    pub(crate) fn deleted_uid(&self) -> Option<&str> {
        self.details.as_ref().map(|details| details.uid.as_str()).filter(|uid| !uid.is_empty())
    }

    /// Whether it is an object of this kind, in any version.
    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        let own = self.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == kind && own == group
    }
}

/// The UIDs of the objects in the response to the deletion of a collection, and their versions before it.
pub(crate) fn listed_versions(list: &str) -> Vec<(String, u64)> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        items: Vec<ResponseHead>,
    }
    let list: Result<List, _> = serde_json::from_str(list);
    let versions = list.map(|list| list.items.iter().filter_map(ResponseHead::uid_and_version).collect());
    versions.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_the_object_that_is_written() {
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
            let write = WriteRequest::of(&method.parse().unwrap(), &uri.parse().unwrap());
            let found = write.map_or_else(String::new, |write| {
                let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                let deletes = if write.is_delete { " deletes" } else { "" };
                let WriteRequest { group, plural, namespace, name, subresource, .. } = write;
                format!("{group}/{plural} {} {} {}{deletes}", or(namespace), or(name), or(subresource))
            });
            assert_eq!(found, expected, "{request}");
        }
    }
}
