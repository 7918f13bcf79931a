//! The template of a daemon set has a generation of its own.

use serde_json::Value;

use super::{Circumstances, prepare::same};
use crate::defaults::member::{self, Members};
use crate::defaults::workload::TEMPLATE_GENERATION;

pub(super) fn create(set: &mut Members, _: &Circumstances<'_>) {
    let generation = template_generation(set).max(1);
    set_template_generation(set, generation);
}

pub(super) fn update(set: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let changed = i64::from(!same(template(set), template(old)));
    set_template_generation(set, template_generation(old) + changed);
}

/// Kubernetes holds the count in the spec, which a write to the status leaves alone, and shows it as an annotation.
pub(super) fn status(set: &mut Members, old: &Members, _: &Circumstances<'_>) {
    set_template_generation(set, template_generation(old));
}

fn template(set: &Members) -> Option<&Value> {
    set.get("spec")?.get("template")
}

fn template_generation(set: &Members) -> i64 {
    let annotations = set.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let text = annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION)?.as_str());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(set: &mut Members, generation: i64) {
    let annotations = member::made(member::made(set, "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
}
