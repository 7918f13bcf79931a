//! The fields that the server may change by itself, without the checks of a client's write.

use serde_json::Value;

/// The part of an object that a write of the server changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OwnPart {
    Status,
    /// deletionTimestamp, grace period, finalizers, and the conditions that explain the deletion.
    Deletion,
    /// The node of a pod, and the labels and annotations of its Binding.
    Binding,
}

impl OwnPart {
    /// Top-level fields, or fields one level below.
    const fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            OwnPart::Status => &[("", "status"), ("metadata", "managedFields")],
            OwnPart::Deletion => &[
                ("", "status"),
                ("metadata", "managedFields"),
                ("metadata", "finalizers"),
                ("metadata", "generation"),
                ("metadata", "deletionTimestamp"),
                ("metadata", "deletionGracePeriodSeconds"),
            ],
            OwnPart::Binding => {
                &[("", "status"), ("metadata", "annotations"), ("metadata", "labels"), ("spec", "nodeName")]
            }
        }
    }

    /// Restores every other field to its value before.
    pub(super) fn restrict(self, before: &Value, after: &mut Value) {
        let own = self.fields();
        put_back(before, after, |name| own.iter().any(|own| own.0 == name || *own == ("", name)));
        for parent in ["metadata", "spec"] {
            if own.iter().any(|own| own.0 == parent) {
                put_back(&before[parent], &mut after[parent], |name| own.contains(&(parent, name)));
            }
        }
    }
}

fn put_back(before: &Value, after: &mut Value, is_own: impl Fn(&str) -> bool) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) else { return };
    after.retain(|name, _| is_own(name) || before.contains_key(name));
    for (name, value) in before.iter().filter(|(name, _)| !is_own(name)) {
        if after.get(name) != Some(value) {
            after.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_write_changes_only_its_part() {
        let before = json!({
            "metadata": {"name": "p", "labels": {"a": "1"}, "finalizers": ["x"]},
            "spec": {"hostname": "h"}, "status": {"phase": "Pending"},
        });
        let all_changed = json!({
            "metadata": {"name": "q", "labels": {"a": "2"}, "deletionTimestamp": "now", "managedFields": []},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running"}, "data": {},
        });
        for (part, expected) in [
            (
                OwnPart::Status,
                json!({
                    "metadata": {"name": "p", "labels": {"a": "1"}, "finalizers": ["x"], "managedFields": []},
                    "spec": {"hostname": "h"}, "status": {"phase": "Running"},
                }),
            ),
            (
                OwnPart::Deletion,
                json!({
                    "metadata": {"name": "p", "labels": {"a": "1"}, "deletionTimestamp": "now", "managedFields": []},
                    "spec": {"hostname": "h"}, "status": {"phase": "Running"},
                }),
            ),
            (
                OwnPart::Binding,
                json!({
                    "metadata": {"name": "p", "labels": {"a": "2"}, "finalizers": ["x"]},
                    "spec": {"hostname": "h", "nodeName": "n"}, "status": {"phase": "Running"},
                }),
            ),
        ] {
            let mut after = all_changed.clone();
            part.restrict(&before, &mut after);
            assert_eq!(after, expected, "{part:?}");
        }
    }
}
