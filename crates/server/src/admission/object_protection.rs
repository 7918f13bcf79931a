//! StorageObjectInUseProtection: adds finalizers to volumes and claims, so that they are removed only when
//! unused.

use super::{Operation, Review};
use api::object;

// Kubernetes: finalizers that its controllers remove.
const FINALIZERS: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

pub(super) fn fill(review: &mut Review<'_>) {
    if review.operation != Operation::Create {
        return;
    }
    let Some((_, _, own)) = FINALIZERS.iter().find(|(group, resource, _)| review.is_on(group, resource))
    else {
        return;
    };
    let mut finalizers: Vec<String> = object::finalizers(&review.object).map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == own) {
        finalizers.push((*own).to_owned());
        object::set_finalizers(&mut review.object, finalizers.iter().map(String::as_str));
    }
}
