//! What simulated storage does for a claim: makes a volume, lets it grow, or nothing.

use super::PROVISIONER;
use api::quantity::Quantity;
use k8s_openapi::{
    api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::api::resource,
};
use kube::ResourceExt;
use std::collections::BTreeMap;

/// Kubernetes: who is asked for the volume, with the name of the annotation today and before.
const ASKED: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
/// Kubernetes: the node of the pod that needs the volume.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Kubernetes: what a claim may be filled from without the help of another controller.
const KNOWN_SOURCES: [&str; 2] = ["PersistentVolumeClaim", "VolumeSnapshot"];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClaimPlan {
    Nothing,
    /// On this node, if the class waits for one.
    Provision {
        node: Option<String>,
    },
    /// It asks for something that a provisioner cannot do.
    Refuse(&'static str),
    /// The volume or the status of the claim is smaller than what the claim asks for.
    Resize(resource::Quantity),
}

/// `volume` is the one that the claim is bound to.
pub(super) fn plan(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    volume: Option<&PersistentVolume>,
) -> ClaimPlan {
    let Some(spec) = &claim.spec else { return ClaimPlan::Nothing };
    if spec.volume_name.as_ref().is_some_and(|name| !name.is_empty()) {
        return plan_bound(claim, volume);
    }
    let class = class.filter(|class| class.provisioner == PROVISIONER);
    let asked = ASKED.iter().find_map(|name| claim.annotations().get(*name));
    let (Some(class), true) = (class, asked.is_some_and(|it| it == PROVISIONER)) else {
        return ClaimPlan::Nothing;
    };
    let has_populator =
        spec.data_source_ref.as_ref().is_some_and(|source| !KNOWN_SOURCES.contains(&source.kind.as_str()));
    if claim.metadata.deletion_timestamp.is_some() || has_populator {
        return ClaimPlan::Nothing;
    }
    if spec.selector.is_some() {
        return ClaimPlan::Refuse("claim Selector is not supported");
    }
    let node = claim.annotations().get(SELECTED_NODE).filter(|node| !node.is_empty()).cloned();
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if waits && node.is_none() { ClaimPlan::Nothing } else { ClaimPlan::Provision { node } }
}

fn plan_bound(claim: &PersistentVolumeClaim, volume: Option<&PersistentVolume>) -> ClaimPlan {
    let driver = volume.and_then(|volume| Some(volume.spec.as_ref()?.csi.as_ref()?.driver.as_str()));
    let is_bound = claim.status.as_ref().is_some_and(|it| it.phase.as_deref() == Some("Bound"));
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let wanted = requests.and_then(|requests| requests.get("storage"));
    let (Some(wanted), true) = (wanted, driver == Some(PROVISIONER) && is_bound) else {
        return ClaimPlan::Nothing;
    };
    let present = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    match size(Some(wanted)) > size(present.and_then(|it| it.get("storage"))) {
        true => ClaimPlan::Resize(wanted.clone()),
        false => ClaimPlan::Nothing,
    }
}

fn size(quantity: Option<&resource::Quantity>) -> Option<Quantity> {
    quantity?.0.parse().ok()
}

/// Whether the volume has less than this.
pub(super) fn is_smaller(volume: &PersistentVolume, wanted: &resource::Quantity) -> bool {
    let capacity: Option<&BTreeMap<_, _>> = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    size(capacity.and_then(|it| it.get("storage"))) < size(Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn claim(metadata: &Value, spec: &Value, status: &Value) -> PersistentVolumeClaim {
        let claim = json!({"metadata": metadata, "spec": spec, "status": status});
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn a_volume_is_made_for_claims_that_ask_this_provisioner() {
        let class = |provisioner: &str, mode: &str| -> Option<StorageClass> {
            let class =
                json!({"metadata": {"name": "c"}, "provisioner": provisioner, "volumeBindingMode": mode});
            Some(serde_json::from_value(class).unwrap())
        };
        let asked = |name: &str| json!({"annotations": {ASKED[0]: name}});
        let selected = json!({"annotations": {ASKED[1]: PROVISIONER, SELECTED_NODE: "node-0"}});
        let (now, later) = (class(PROVISIONER, "Immediate"), class(PROVISIONER, "WaitForFirstConsumer"));
        let provision = |node: Option<&str>| ClaimPlan::Provision { node: node.map(str::to_owned) };
        let source = |kind: &str| json!({"dataSourceRef": {"kind": kind, "name": "x"}});
        let none = json!({});
        for (metadata, spec, class, expected) in [
            (&none, none.clone(), &now, ClaimPlan::Nothing),
            (&asked("other"), none.clone(), &now, ClaimPlan::Nothing),
            (&asked(PROVISIONER), none.clone(), &None, ClaimPlan::Nothing),
            (&asked(PROVISIONER), none.clone(), &class("other", "Immediate"), ClaimPlan::Nothing),
            (&asked(PROVISIONER), none.clone(), &now, provision(None)),
            (&asked(PROVISIONER), none.clone(), &later, ClaimPlan::Nothing),
            (&selected, none.clone(), &later, provision(Some("node-0"))),
            (&asked(PROVISIONER), source("VolumeSnapshot"), &now, provision(None)),
            (&asked(PROVISIONER), source("Backup"), &now, ClaimPlan::Nothing),
            (
                &asked(PROVISIONER),
                json!({"selector": {}}),
                &now,
                ClaimPlan::Refuse("claim Selector is not supported"),
            ),
        ] {
            let claim = claim(metadata, &spec, &json!({"phase": "Pending"}));
            assert_eq!(plan(&claim, class.as_ref(), None), expected, "{claim:?} {class:?}");
        }
    }

    #[test]
    fn a_bound_claim_grows_to_what_it_asks_for() {
        let volume = |driver: &str| -> Option<PersistentVolume> {
            let volume = json!({"spec": {"csi": {"driver": driver, "volumeHandle": "v"}}});
            Some(serde_json::from_value(volume).unwrap())
        };
        for (wanted, present, phase, volume, expected) in [
            ("2Gi", "1Gi", "Bound", volume(PROVISIONER), Some("2Gi")),
            ("1Gi", "1024Mi", "Bound", volume(PROVISIONER), None),
            ("1Gi", "2Gi", "Bound", volume(PROVISIONER), None),
            ("2Gi", "1Gi", "Lost", volume(PROVISIONER), None),
            ("2Gi", "1Gi", "Bound", volume("other"), None),
            ("2Gi", "1Gi", "Bound", None, None),
        ] {
            let spec = json!({"volumeName": "pv", "resources": {"requests": {"storage": wanted}}});
            let claim = claim(&json!({}), &spec, &json!({"phase": phase, "capacity": {"storage": present}}));
            let expected = expected
                .map_or(ClaimPlan::Nothing, |it| ClaimPlan::Resize(resource::Quantity(it.to_owned())));
            assert_eq!(plan(&claim, None, volume.as_ref()), expected, "{claim:?} {volume:?}");
        }
    }
}
