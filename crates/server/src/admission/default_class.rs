//! DefaultStorageClass and DefaultIngressClass: set the default class where none is named.

use super::{AdmissionPlugin, Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::object;
use serde_json::Value;
use std::cmp::Reverse;

/// A kind of object that has a class.
struct Classed {
    plugin: AdmissionPlugin,
    group: &'static str,
    resource: &'static str,
    /// The field in `spec` that names the class.
    field: &'static str,
    /// The older annotation that names it.
    annotation: &'static str,
    classes: (&'static str, &'static str, &'static str),
    /// Annotations that mark the default class.
    marks: &'static [&'static str],
}

const CLASSED: [Classed; 2] = [
    Classed {
        plugin: AdmissionPlugin::DefaultStorageClass,
        group: "",
        resource: "persistentvolumeclaims",
        field: "storageClassName",
        annotation: "volume.beta.kubernetes.io/storage-class",
        classes: ("storage.k8s.io", "v1", "storageclasses"),
        marks: &[
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ],
    },
    Classed {
        plugin: AdmissionPlugin::DefaultIngressClass,
        group: "networking.k8s.io",
        resource: "ingresses",
        field: "ingressClassName",
        annotation: "kubernetes.io/ingress.class",
        classes: ("networking.k8s.io", "v1", "ingressclasses"),
        marks: &["ingressclass.kubernetes.io/is-default-class"],
    },
];

pub(super) async fn fill(review: &mut Review<'_>) -> Result<(), Refusal> {
    if review.operation != Operation::Create {
        return Ok(());
    }
    let is_it = |it: &&Classed| review.runs(it.plugin) && review.is_on(it.group, it.resource);
    let Some(it) = CLASSED.iter().find(is_it) else { return Ok(()) };
    let is_named = !review.object["spec"][it.field].is_null()
        || review.object["metadata"]["annotations"].get(it.annotation).is_some();
    if is_named {
        return Ok(());
    }
    let classes = lookup::objects(&review.call.inner, it.classes, "").await?;
    let is_default =
        |class: &&Value| it.marks.iter().any(|mark| class["metadata"]["annotations"][mark] == "true");
    // The newest default class; among equals the first by name.
    let chosen = classes
        .iter()
        .filter(is_default)
        .min_by_key(|class| (Reverse(object::creation_timestamp(class)), object::name(class).to_owned()));
    if let Some(class) = chosen {
        review.object["spec"][it.field] = object::name(class).into();
    }
    Ok(())
}
