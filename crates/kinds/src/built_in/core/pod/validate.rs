//! Pods: what a new one must fulfil, and what may change afterwards.

mod annotations;
mod change;
mod containers;
mod environment;
mod mounts;
mod placement;
mod probes;
mod qos;
mod requirements;
mod resize;
mod security;
mod spec;
mod status;
mod system;
mod volumes;

use api::field::ErrorList;

use crate::validate::at::At;

pub(crate) use annotations::check as annotations;
pub(crate) use annotations::profiles_match;
pub(crate) use change::{change, ephemeral_containers};
pub(crate) use containers::PROTOCOLS;
pub(crate) use placement::{node_selector, taint_effect, tolerations};
pub(crate) use requirements::overhead;
pub(crate) use resize::resize;
pub(crate) use spec::check as spec;
pub(crate) use status::status;
pub(crate) use volumes::{downward as downward_volume, projected as projected_volume};

/// A new pod.
pub(super) fn check(pod: &At<'_, '_>, errors: &mut ErrorList) {
    content(pod, errors);
    let (metadata, spec) = (pod.field("metadata"), pod.field("spec"));
    if !spec.field("ephemeralContainers").is_empty() {
        spec.field("ephemeralContainers").forbidden(errors, "cannot be set on create");
    }
    if !spec.text_of("nodeName").is_empty() && !spec.field("schedulingGates").is_empty() {
        let problem = "cannot be set until all schedulingGates have been cleared";
        spec.field("nodeName").forbidden(errors, problem);
    }
    profiles_match(&metadata.field("annotations"), &spec, errors);
}

/// What holds for a pod at any time.
fn content(pod: &At<'_, '_>, errors: &mut ErrorList) {
    let (metadata, spec) = (pod.field("metadata"), pod.field("spec"));
    annotations(&metadata.field("annotations"), &spec, errors);
    self::spec(&spec, Some(&metadata), errors);
    let volumes = spec.field("volumes");
    for volume in volumes.items().filter(|_| spec.text_of("serviceAccountName").is_empty()) {
        let projected = volume.field("projected");
        let sources = projected.field("sources");
        for source in sources.items().filter(|source| source.has("serviceAccountToken")) {
            let problem = "must not be specified when serviceAccountName is not set";
            source.field("serviceAccountToken").forbidden(errors, problem);
        }
    }
    for list in ["containers", "initContainers"] {
        let list = spec.field(list);
        for container in list.items() {
            containers::unpadded_image(&container, errors);
        }
    }
}
