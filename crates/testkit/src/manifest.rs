//! Applies manifests: any kinds, several documents.

use crate::Cluster;
use api::{
    kind::GroupVersionKind,
    object,
    path::{ResourcePath, VersionPath},
};
use http::{Request, header};
use serde_json::Value;
use std::time::Duration;

/// The field manager of applied objects.
pub(crate) const FIELD_MANAGER: &str = "testkit";
/// How long to wait until the kind of a new definition is served.
const SERVED_LIMIT: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(100);

impl Cluster {
    /// Applies every document of a YAML text, in order. Objects without a namespace go to `default`. Waits
    /// until the kind is served if its definition has just been applied.
    pub async fn apply(&self, yaml: &str) -> Vec<Value> {
        let mut applied = Vec::new();
        for text in documents(yaml) {
            let read = schema::yaml::to_json(text.as_bytes());
            let read = read.unwrap_or_else(|error| panic!("this is no YAML: {error}\n{text}"));
            let document =
                serde_json::from_slice(&read.json).unwrap_or_else(|error| panic!("{error}\n{text}"));
            if document != Value::Null {
                applied.push(self.apply_object(&document).await);
            }
        }
        applied
    }

    /// Applies one object, without its status.
    pub async fn apply_object(&self, wanted: &Value) -> Value {
        let applied = self.try_apply_object(wanted).await;
        applied.unwrap_or_else(|error| {
            let (kind, name) = (object::kind(wanted), object::name(wanted));
            panic!("cannot apply {kind} {name}: {error}\n{wanted:#}")
        })
    }

    /// As [`Cluster::apply_object`], with the refusal as an error.
    pub async fn try_apply_object(&self, wanted: &Value) -> kube::Result<Value> {
        let kind = object::group_version_kind(wanted);
        let kind = kind.unwrap_or_else(|error| panic!("{error}\n{wanted:#}"));
        let (plural, is_namespaced) = self.resource(&kind).await;
        let namespace = match (is_namespaced, object::namespace(wanted)) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        let collection =
            ResourcePath::collection(&kind.group, &kind.version, &plural).in_namespace(namespace);
        let path = collection.named(object::name(wanted));
        let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
        let request = Request::patch(path).header(header::CONTENT_TYPE, "application/apply-patch+yaml");
        let request = request.body(wanted.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
        self.inner.admin.request(request).await
    }

    /// The plural of a kind and whether it is namespaced, as soon as the kind is served.
    async fn resource(&self, kind: &GroupVersionKind) -> (String, bool) {
        let root = VersionPath { group: &kind.group, version: &kind.version }.to_string();
        let deadline = self.world().now() + SERVED_LIMIT;
        loop {
            let request = Request::get(&root).body(Vec::new()).map_err(kube::Error::HttpError);
            let listed: kube::Result<Value> = match request {
                Ok(request) => self.inner.admin.request(request).await,
                Err(error) => Err(error),
            };
            let listed = listed.unwrap_or_default();
            let resources = listed["resources"].as_array().into_iter().flatten();
            let is_it = |it: &&Value| {
                it["kind"] == *kind.kind && !it["name"].as_str().is_none_or(|it| it.contains('/'))
            };
            if let Some(found) = resources.into_iter().find(is_it) {
                let plural = found["name"].as_str().unwrap_or_default();
                return (plural.to_owned(), found["namespaced"] == true);
            }
            assert!(self.world().now() < deadline, "{kind:?} is not served after {SERVED_LIMIT:?}");
            self.world().sleep(INTERVAL).await;
        }
    }
}

/// The documents of a text, between lines of three dashes.
fn documents(yaml: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in yaml.lines() {
        if line == "---" || line.starts_with("--- ") {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.retain(|document| !document.trim().is_empty());
    documents
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn documents_are_split_at_lines_of_dashes() {
        for (text, expected) in [
            ("a: 1\n", vec!["a: 1\n"]),
            ("---\na: 1\n---\nb: |\n  ---\n--- # c\nc: 1", vec!["a: 1\n", "b: |\n  ---\n", "c: 1\n"]),
            ("\n---\n\n", vec![]),
        ] {
            assert_eq!(documents(text), expected, "{text}");
        }
    }
}
