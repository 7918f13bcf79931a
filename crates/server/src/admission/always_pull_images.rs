//! AlwaysPullImages: every container of a pod pulls its image, so that no pod runs a private image that
//! another pod has brought to the node.

use super::{Operation, Review};
use crate::refusal::Refusal;
use api::field::{Error, Path};
use serde_json::Value;
use std::collections::BTreeSet;

const ALWAYS: &str = "Always";
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub(super) fn fill(review: &mut Review<'_>) {
    if !concerns(review) {
        return;
    }
    let spec = &mut review.object["spec"];
    for list in CONTAINERS {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["imagePullPolicy"] = ALWAYS.into();
        }
    }
    for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
        if let Some(image) = volume.get_mut("image").filter(|image| image.is_object()) {
            image["pullPolicy"] = ALWAYS.into();
        }
    }
}

pub(super) fn check(review: &Review<'_>) -> Result<(), Refusal> {
    if !concerns(review) {
        return Ok(());
    }
    let spec = &review.object["spec"];
    let mut problem = None;
    let mut demand = |path: String, policy: &Value| {
        if policy != ALWAYS && problem.is_none() {
            let policy = policy.as_str().unwrap_or_default();
            problem = Some(Error::not_supported(&Path::new(&path), policy, [ALWAYS]).to_string());
        }
    };
    for list in CONTAINERS {
        for (at, container) in items(&spec[list]).enumerate() {
            demand(format!("spec.{list}[{at}].imagePullPolicy"), &container["imagePullPolicy"]);
        }
    }
    for (at, volume) in items(&spec["volumes"]).enumerate() {
        if let Some(image) = volume.get("image").filter(|image| image.is_object()) {
            demand(format!("spec.volumes[{at}].image.pullPolicy"), &image["pullPolicy"]);
        }
    }
    problem.map_or(Ok(()), |problem| Err(review.forbidden(problem)))
}

/// Creates of pods, and updates that bring in an image.
fn concerns(review: &Review<'_>) -> bool {
    if review.operation == Operation::Delete || !review.is_on("", "pods") {
        return false;
    }
    let Some(old) = review.old else { return true };
    let before = images(old);
    images(&review.object).iter().any(|image| !before.contains(image))
}

fn images(pod: &Value) -> BTreeSet<&str> {
    let containers = CONTAINERS.iter().flat_map(|list| items(&pod["spec"][list])).map(|it| &it["image"]);
    let volumes = items(&pod["spec"]["volumes"]).map(|volume| &volume["image"]["reference"]);
    containers.chain(volumes).filter_map(Value::as_str).collect()
}

fn items(list: &Value) -> std::slice::Iter<'_, Value> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter()
}
