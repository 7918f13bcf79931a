//! Pod templates: the hash that names a ReplicaSet, and whether two templates are the same.

use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde_json::Value;
use std::collections::BTreeMap;

/// Kubernetes: tells the pods of the ReplicaSets of one Deployment apart.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// Kubernetes: no vowels and no digits that look like them, so that no words come about.
const SAFE_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A hash of the template, and of how many ReplicaSets had the same hash by chance.
///
/// It has the shape of that of Kubernetes, but another value: that one depends on how Go prints structs. Nothing
/// compares hashes; the ReplicaSet of a template is found by [`is_same`].
pub(super) fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut hash = Fnv::new();
    hash.value(&serde_json::to_value(template).unwrap_or_default());
    if let Some(collisions) = collisions {
        hash.bytes(&collisions.to_le_bytes());
    }
    let letter = |digit: u8| char::from(SAFE_LETTERS[usize::from(digit) % SAFE_LETTERS.len()]);
    hash.0.to_string().bytes().map(letter).collect()
}

/// Whether two templates are the same but for the label of the hash.
pub(super) fn is_same(one: &PodTemplateSpec, other: &PodTemplateSpec) -> bool {
    one.spec == other.spec && metadata(one) == metadata(other)
}

/// The part of the metadata that pods get from their template. An empty map is the same as none.
fn metadata(template: &PodTemplateSpec) -> ObjectMeta {
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut labels = metadata.labels.unwrap_or_default();
    labels.remove(HASH_LABEL);
    ObjectMeta {
        name: metadata.name,
        labels: Some(labels),
        annotations: Some(metadata.annotations.unwrap_or_default()),
        finalizers: Some(metadata.finalizers.unwrap_or_default()),
        ..ObjectMeta::default()
    }
}

/// FNV-1a of 32 bits.
struct Fnv(u32);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0x811c_9dc5)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// Independent of the order of fields. Every value ends with a byte that JSON texts do not have, so that
    /// neighbours cannot exchange letters.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
                self.bytes(b"{");
                for (name, value) in sorted {
                    self.bytes(name.as_bytes());
                    self.bytes(&[0]);
                    self.value(value);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                items.iter().for_each(|item| self.value(item));
                self.bytes(b"]");
            }
            scalar => self.bytes(scalar.to_string().as_bytes()),
        }
        self.bytes(&[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(metadata: &Value, image: &str) -> PodTemplateSpec {
        let template = json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}]}});
        serde_json::from_value(template).unwrap()
    }

    #[test]
    fn a_hash_stays_the_same_from_release_to_release() {
        let web = template(&json!({"labels": {"app": "web"}}), "nginx");
        assert_eq!(hash(&web, None), HASH_OF_WEB);
        let others = [
            hash(&web, Some(0)),
            hash(&web, Some(1)),
            hash(&template(&json!({"labels": {"app": "web"}}), "nginx:2"), None),
            hash(&template(&json!({"labels": {"app": "we", "b": ""}}), "nginx"), None),
        ];
        for (place, other) in others.iter().enumerate() {
            assert_ne!(other, HASH_OF_WEB, "{place}");
            assert!(
                other.len() <= 10 && other.bytes().all(|letter| SAFE_LETTERS.contains(&letter)),
                "{other}"
            );
        }
    }

    const HASH_OF_WEB: &str = "7fc7c6998b";

    #[test]
    fn templates_are_compared_without_the_hash() {
        let web = template(&json!({"labels": {"app": "web"}}), "nginx");
        for (metadata, image, expected) in [
            (json!({"labels": {"app": "web"}}), "nginx", true),
            (json!({"labels": {"app": "web", HASH_LABEL: "5d59d67564"}}), "nginx", true),
            (json!({"labels": {"app": "web"}, "annotations": {}}), "nginx", true),
            (json!({"labels": {"app": "web"}, "annotations": {"a": "1"}}), "nginx", false),
            (json!({"labels": {"app": "db"}}), "nginx", false),
            (json!({"labels": {"app": "web"}}), "nginx:2", false),
        ] {
            assert_eq!(is_same(&web, &template(&metadata, image)), expected, "{metadata} {image}");
        }
    }
}
