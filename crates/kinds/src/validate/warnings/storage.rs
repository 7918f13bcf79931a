//! Warnings about volumes, claims and their classes.

use api::go;
use api::quantity::Quantity;
use serde_json::Value;

use super::super::at::At;
use super::pod::deprecated_label;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const OLD_CLASS: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";
/// Of a persistent volume.
const ANNOTATIONS: [(&str, &str); 2] = [
    (BETA_CLASS, OLD_CLASS),
    (
        "volume.beta.kubernetes.io/mount-options",
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    ),
];
/// Sources whose drivers are gone.
const SOURCES: [(&str, &str); 6] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn annotated(object: &At<'_, '_>, key: &str, problem: &str, warnings: &mut Vec<String>) {
    if api::object::annotation(object.value(), key).is_some() {
        warnings.push(format!("metadata.annotations[{key}]: {problem}"));
    }
}

pub(super) fn volume(object: &At<'_, '_>, warnings: &mut Vec<String>) {
    for (key, problem) in ANNOTATIONS {
        annotated(object, key, problem, warnings);
    }
    let spec = object.field("spec");
    if spec.text_of("persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the \
             recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let affinity = spec.field("nodeAffinity");
    let required = affinity.field("required");
    for term in required.field("nodeSelectorTerms").items() {
        node_term(&term, warnings);
    }
    for (source, problem) in SOURCES.iter().filter(|(source, _)| spec.has(source)) {
        let shown = if *source == "storageos" { "storageOS" } else { source };
        warnings.push(format!("{}: {problem}", spec.field(shown).path()));
    }
}

/// Old labels that a term wants nodes to have.
pub(super) fn node_term(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    for expression in term.field("matchExpressions").items() {
        let key = expression.field("key");
        if let Some(problem) = deprecated_label(key.text()) {
            warnings.push(format!("{}: {} is {problem}", key.path(), key.text()));
        }
    }
}

pub(super) fn claim(object: &At<'_, '_>, warnings: &mut Vec<String>) {
    annotated(object, BETA_CLASS, OLD_CLASS, warnings);
    claim_spec(&object.field("spec"), warnings);
}

pub(super) fn claim_spec(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let resources = spec.field("resources");
    for sort in ["requests", "limits"] {
        let amounts = resources.field(sort);
        let size = amounts.value().get("storage").and_then(Value::as_str);
        let size = size.and_then(|size| size.parse::<Quantity>().ok());
        if let Some(size) = size.filter(|size| !size.is_integer()) {
            warnings.push(format!(
                "{}: fractional byte value {} is invalid, must be an integer",
                amounts.path().key("storage"),
                go::quote(&size.to_string())
            ));
        }
    }
}

pub(super) fn driver(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    let requests = spec.field("tokenRequests");
    let is_new = old.is_none_or(|old| old["spec"].get("tokenRequests") != Some(requests.value()));
    if is_new && !requests.is_empty() && !spec.has("serviceAccountTokenInSecrets") {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}

pub(super) fn class(object: &At<'_, '_>, warnings: &mut Vec<String>) {
    for term in object.field("allowedTopologies").items() {
        for expression in term.field("matchLabelExpressions").items() {
            let key = expression.field("key");
            let problem = deprecated_label(key.text());
            warnings.extend(problem.map(|problem| format!("{}: {problem}", key.path())));
        }
    }
}
