//! Fields behind a feature that v1.36 ships switched off, or has given up: they are dropped without a word.

use serde_json::Value;

use super::{Path, Strategy};

/// Every item of a list, or every value of a map.
pub(crate) const EACH: &str = "*";

const OF_POD_SPECS: &[Path] = &[
    &["containers", EACH, "lifecycle", "stopSignal"],
    &["initContainers", EACH, "lifecycle", "stopSignal"],
    &["ephemeralContainers", EACH, "lifecycle", "stopSignal"],
    &["volumes", EACH, "projected", "sources", EACH, "clusterTrustBundle"],
    &["volumes", EACH, "projected", "sources", EACH, "podCertificate"],
    &["schedulingGroup"],
];

impl Strategy {
    pub(super) fn drop_disabled(&self, object: &mut Value) {
        self.disabled.iter().for_each(|path| remove(object, path));
        let Some(path) = self.pod_spec else { return };
        if let Some(spec) = path.iter().try_fold(object, |value, name| value.get_mut(name)) {
            OF_POD_SPECS.iter().for_each(|path| remove(spec, path));
        }
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    match (path, value) {
        ([EACH, rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| remove(item, rest)),
        ([EACH, rest @ ..], Value::Object(members)) => {
            members.values_mut().for_each(|value| remove(value, rest))
        }
        ([name], Value::Object(members)) => drop(members.remove(*name)),
        ([name, rest @ ..], Value::Object(members)) => {
            let Some(inner) = members.get_mut(*name) else { return };
            let before = inner.as_object().map_or(0, serde_json::Map::len);
            remove(inner, rest);
            // Kubernetes: hooks of which nothing is left are none.
            if *name == "lifecycle" && before > 0 && inner.as_object().is_some_and(serde_json::Map::is_empty)
            {
                members.remove(*name);
            }
        }
        _ => {}
    }
}
