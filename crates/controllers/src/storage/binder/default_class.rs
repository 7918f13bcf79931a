//! The default StorageClass.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use std::cmp::Reverse;

/// Kubernetes: annotations that mark it.
const MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// The newest of the classes that are marked as default; among equals the first by name.
pub(super) fn name<C: AsRef<StorageClass>>(classes: &[C]) -> Option<String> {
    let is_default = |class: &&StorageClass| {
        MARKS.iter().any(|mark| class.annotations().get(*mark).is_some_and(|value| value == "true"))
    };
    let classes = classes.iter().map(AsRef::as_ref).filter(is_default);
    let newest = classes.min_by_key(|class| (Reverse(class.creation_timestamp()), class.name_any()));
    newest.map(ResourceExt::name_any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn the_newest_default_class_counts() {
        let class = |name: &str, mark: &str, value: &str, second: u32| -> Arc<StorageClass> {
            let class = json!({"provisioner": "p", "metadata": {"name": name, "annotations": {mark: value},
                "creationTimestamp": format!("2026-01-01T00:00:0{second}Z")}});
            Arc::new(serde_json::from_value(class).unwrap())
        };
        let (old, new) = (class("old", MARKS[0], "true", 1), class("new", MARKS[1], "true", 2));
        for (classes, expected) in [
            (vec![], None),
            (vec![class("a", MARKS[0], "false", 1), class("b", "other", "true", 1)], None),
            (vec![old.clone()], Some("old")),
            (vec![old.clone(), new.clone()], Some("new")),
            (vec![class("z", MARKS[0], "true", 2), new, old], Some("new")),
        ] {
            assert_eq!(name(&classes).as_deref(), expected);
        }
    }
}
