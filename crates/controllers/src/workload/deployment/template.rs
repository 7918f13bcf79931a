//! Pod templates: the hash that names a ReplicaSet, and whether two templates are the same.

use crate::workload::template_hash;
use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::apis::meta::v1::ObjectMeta};

/// Kubernetes: tells the pods of the ReplicaSets of one Deployment apart.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// A hash of the template, and of how many ReplicaSets had the same hash by chance.
///
/// Nothing compares hashes; the ReplicaSet of a template is found by [`is_same`].
pub(super) fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let template = serde_json::to_value(template).unwrap_or_default();
    template_hash::of(&template, collisions.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::template_hash::ALPHABET;
    use serde_json::{Value, json};

    fn template(metadata: &Value, image: &str) -> PodTemplateSpec {
        let template = json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}]}});
        serde_json::from_value(template).unwrap()
    }

    #[test]
    fn a_hash_stays_the_same_from_release_to_release() {
        let web = template(&json!({"labels": {"app": "web"}}), "nginx");
        assert_eq!(hash(&web, None), HASH_OF_WEB);
        let others = [
            hash(&web, Some(1)),
            hash(&template(&json!({"labels": {"app": "web"}}), "nginx:2"), None),
            hash(&template(&json!({"labels": {"app": "we", "b": ""}}), "nginx"), None),
        ];
        for (place, other) in others.iter().enumerate() {
            assert_ne!(other, HASH_OF_WEB, "{place}");
            assert!(other.len() <= 10 && other.bytes().all(|letter| ALPHABET.contains(&letter)), "{other}");
        }
    }

    const HASH_OF_WEB: &str = "5c6cf7bc76";

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
