//! Without `allows_privileged`, no container may be privileged: neither of a pod nor of a template.

use crate::{admission::POD_TEMPLATES, call::Call};
use api::field::{Error, ErrorList, Path};
use serde_json::Value;

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Errors of a new object.
pub(super) fn new_object(call: &Call, draft: &Value) -> ErrorList {
    match pod_spec(call, draft) {
        Some((path, spec)) if !call.inner.allows_privileged => privileged(&path, spec),
        _ => ErrorList::new(),
    }
}

/// Errors of an update. The containers of a pod do not change, except for those that debug it.
pub(super) fn next_object(call: &Call, draft: &Value, current: &Value) -> ErrorList {
    match pod_spec(call, draft) {
        Some((path, spec)) if !call.inner.allows_privileged => {
            let before = pod_spec(call, current).map(|(_, spec)| spec);
            if before == Some(spec) { ErrorList::new() } else { privileged(&path, spec) }
        }
        _ => ErrorList::new(),
    }
}

/// The pod spec of an object, and its path.
fn pod_spec<'v>(call: &Call, object: &'v Value) -> Option<(String, &'v Value)> {
    if call.served.is("", "pods") {
        return Some(("spec".to_owned(), &object["spec"]));
    }
    let is_it = |(group, resource, _): &&(&str, &str, &str)| call.served.is(group, resource);
    let (.., template) = POD_TEMPLATES.iter().find(is_it)?;
    let path = format!("{template}/spec");
    let spec = object.pointer(&path)?;
    Some((path.trim_start_matches('/').replace('/', "."), spec))
}

fn privileged(path: &str, spec: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in CONTAINERS {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            if container["securityContext"]["privileged"] == true {
                let path = format!("{path}.{list}[{at}].securityContext.privileged");
                // Kubernetes: its text.
                errors.push(Error::forbidden(&Path::new(&path), "disallowed by cluster policy"));
            }
        }
    }
    errors
}
