//! Manifests in, objects in the cluster out: any kinds, several documents, server-side apply.

use crate::Cluster;
use api::{kind::GroupVersionKind, object};
use http::{Request, header};
use serde_json::Value;
use std::time::Duration;

/// Under which name a test owns the fields that it applies.
pub(crate) const FIELD_MANAGER: &str = "testkit";
/// How long a kind is waited for whose definition has just been applied.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Cluster {
    /// Applies every document of a YAML text, in order. What names no namespace goes to `default`;
    /// a kind whose definition was applied before is waited for.
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

    /// Applies one object; `status` is left to its controller.
    pub async fn apply_object(&self, wanted: &Value) -> Value {
        let applied = self.try_apply_object(wanted).await;
        applied.unwrap_or_else(|error| {
            let (kind, name) = (object::kind(wanted), object::name(wanted));
            panic!("cannot apply {kind} {name}: {error}\n{wanted:#}")
        })
    }

    pub async fn try_apply_object(&self, wanted: &Value) -> kube::Result<Value> {
        let kind = object::group_version_kind(wanted);
        let kind = kind.unwrap_or_else(|error| panic!("{error}\n{wanted:#}"));
        let place = self.place(&kind, object::namespace(wanted)).await;
        let path = format!("{place}/{}?fieldManager={FIELD_MANAGER}&force=true", object::name(wanted));
        let request = Request::patch(path).header(header::CONTENT_TYPE, "application/apply-patch+yaml");
        let request = request.body(wanted.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
        self.inner.admin.request(request).await
    }

    /// The path of a kind's objects, as soon as the kind is served.
    async fn place(&self, kind: &GroupVersionKind, namespace: &str) -> String {
        let root = match &*kind.group {
            "" => format!("/api/{}", kind.version),
            group => format!("/apis/{group}/{}", kind.version),
        };
        let deadline = self.world().now() + PATIENCE;
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
                let namespace = if namespace.is_empty() { "default" } else { namespace };
                return match found["namespaced"] == true {
                    true => format!("{root}/namespaces/{namespace}/{plural}"),
                    false => format!("{root}/{plural}"),
                };
            }
            assert!(self.world().now() < deadline, "{kind:?} is not served after {PATIENCE:?}");
            self.world().sleep(LOOK_AGAIN).await;
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
