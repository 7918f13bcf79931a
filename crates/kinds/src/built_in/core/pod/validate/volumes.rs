//! The volumes of a pod: unique names, one source each, and what downward API and projections may hold.

use std::collections::HashMap;

use api::field::ErrorList;
use api::name::Format;

use super::environment;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::{file_path, selector, volume_source};

/// Volumes that containers may mount: names that are valid, and whether a block device can lie behind them.
#[derive(Debug, Default)]
pub(super) struct Mountable<'v>(HashMap<&'v str, bool>);

impl Mountable<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn is_claim(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|is_claim| *is_claim)
    }
}

/// `pod_name` is empty for a template.
pub(super) fn check<'v>(
    volumes: &At<'v, '_>,
    pod_name: &str,
    is_pod: bool,
    errors: &mut ErrorList,
) -> Mountable<'v> {
    let mut mountable = Mountable::default();
    let generated = volumes.items().filter(|volume| volume.has("ephemeral"));
    let generated: Taken<String> =
        generated.map(|volume| format!("{pod_name}-{}", volume.text_of("name"))).collect();
    for volume in volumes.items() {
        let (name, mut found) = (volume.field("name"), ErrorList::new());
        volume_source::check(&volume, volume_source::OF_POD, &mut found);
        if is_pod && volume.has("image") && volume.field("image").text_of("reference").is_empty() {
            volume.field("image").field("reference").required(&mut found, "");
        }
        if !pod_name.is_empty() && volume.has("ephemeral") && !name.text().is_empty() {
            let claim = format!("{pod_name}-{}", name.text());
            for problem in Format::Dns1123Subdomain.problems(&claim) {
                name.invalid_text(&mut found, format!("PVC name {}: {problem}", api::go::quote(&claim)));
            }
        }
        name.required_format(&mut found, Format::Dns1123Label);
        if mountable.has(name.text()) {
            name.duplicate(&mut found);
        }
        if found.is_empty() {
            let is_claim = volume.has("persistentVolumeClaim") || volume.has("ephemeral");
            mountable.0.insert(name.text(), is_claim);
        }
        errors.extend(found);
        generated_claim(&generated, &volume, pod_name, errors);
    }
    mountable
}

fn generated_claim(generated: &Taken<String>, volume: &At<'_, '_>, pod_name: &str, errors: &mut ErrorList) {
    let claim = volume.field("persistentVolumeClaim");
    let claim = claim.field("claimName");
    if !pod_name.is_empty() && claim.is_set() && generated.contains(claim.text()) {
        let problem = "must not reference a PVC that gets created for an ephemeral volume";
        claim.invalid_text(errors, problem);
    }
}

/// A volume of files that tell about the pod.
pub(crate) fn downward(volume: &At<'_, '_>, errors: &mut ErrorList) {
    file_path::mode(&volume.field("defaultMode"), errors);
    let items = volume.field("items");
    for item in items.items() {
        // Kubernetes: the errors name the volume, not the item.
        downward_file(&At::new(item.value(), *volume.path()), errors);
    }
}

fn downward_file(file: &At<'_, '_>, errors: &mut ErrorList) {
    let path = file.field("path");
    if path.text().is_empty() {
        path.required(errors, "");
    }
    file_path::not_reserved(&path, errors);
    let (field, resource) = (file.field("fieldRef"), file.field("resourceFieldRef"));
    if field.is_set() {
        environment::field_selector(&field, environment::VOLUME_FIELDS, errors);
        if resource.is_set() {
            let problem = "fieldRef and resourceFieldRef can not be specified simultaneously";
            file.invalid_as(errors, "resource", problem);
        }
    } else if resource.is_set() {
        environment::resource_selector(&resource, true, errors);
    } else {
        file.required(errors, "one of fieldRef and resourceFieldRef is required");
    }
    file_path::mode(&file.field("mode"), errors);
}

/// A volume that several sources share.
pub(crate) fn projected<'v>(volume: &At<'v, '_>, errors: &mut ErrorList) {
    file_path::mode(&volume.field("defaultMode"), errors);
    let mut taken = Taken::default();
    let sources = volume.field("sources");
    for source in sources.items() {
        let given = ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle"];
        for (field, part) in given.into_iter().map(|field| (field, source.field(field))) {
            if !part.is_set() {
                continue;
            }
            match field {
                "secret" | "configMap" => keys(volume, &part, &mut taken, errors),
                "downwardAPI" => {
                    let items = part.field("items");
                    for item in items.items() {
                        downward_file(&At::new(item.value(), *part.path()), errors);
                        claim_path(volume, item.text_of("path"), item.text_of("path"), &mut taken, errors);
                    }
                }
                "serviceAccountToken" => token(volume, &part, errors),
                _ => {
                    trust_bundle(&part, errors);
                    claim_path(volume, part.text_of("path"), part.text_of("path"), &mut taken, errors);
                }
            }
        }
        let count = given.iter().filter(|field| source.has(field)).count();
        if count > 1 {
            source.forbidden(errors, "may not specify more than 1 volume type per source");
        }
    }
}

fn keys<'v>(volume: &At<'v, '_>, part: &At<'v, '_>, taken: &mut Taken<&'v str>, errors: &mut ErrorList) {
    if part.text_of("name").is_empty() {
        part.field("name").required(errors, "");
    }
    let items = part.field("items");
    for item in items.items() {
        file_path::key_to_path(&item, errors);
        claim_path(volume, item.text_of("path"), part.text_of("name"), taken, errors);
    }
}

fn claim_path<'v>(
    volume: &At<'v, '_>,
    path: &'v str,
    shown: &str,
    taken: &mut Taken<&'v str>,
    errors: &mut ErrorList,
) {
    if path.is_empty() {
        return;
    }
    if taken.contains(&path) {
        volume.invalid_as(errors, shown, "conflicting duplicate paths");
    } else {
        taken.push(path);
    }
}

fn token(volume: &At<'_, '_>, token: &At<'_, '_>, errors: &mut ErrorList) {
    let expiration = token.field("expirationSeconds");
    if expiration.int() < 10 * 60 {
        expiration.invalid_int(errors, "may not specify a duration less than 10 minutes");
    }
    if expiration.int() > 1 << 32 {
        expiration.invalid_int(errors, "may not specify a duration larger than 2^32 seconds");
    }
    // Kubernetes: the error names the volume's path, not the token's.
    let path = token.field("path");
    let path = At::new(path.value(), volume.path().child("path"));
    if path.text().is_empty() {
        path.required(errors, "");
    } else {
        file_path::not_reserved(&path, errors);
    }
}

fn trust_bundle(bundle: &At<'_, '_>, errors: &mut ErrorList) {
    let (name, signer) = (bundle.field("name"), bundle.field("signerName"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            let shown = crate::validate::internal::shown_core("ClusterTrustBundleProjection", bundle);
            bundle.invalid_as(errors, shown, "only one of name and signerName may be used");
        }
        (true, false) => {
            if name.text().is_empty() {
                name.required(errors, "must be a valid object name");
            }
            if bundle.has("labelSelector") {
                let problem = "labelSelector must be unset if name is specified";
                bundle.field("labelSelector").invalid(errors, problem);
            }
        }
        (false, true) => {
            if signer.text().is_empty() {
                signer.required(errors, "must be a valid signer name");
            }
            selector::check(&bundle.field("labelSelector"), errors);
        }
        (false, false) => bundle.required(errors, "either name or signerName must be specified"),
    }
    let path = bundle.field("path");
    if path.text().is_empty() {
        path.required(errors, "");
    }
    file_path::not_reserved(&path, errors);
}
