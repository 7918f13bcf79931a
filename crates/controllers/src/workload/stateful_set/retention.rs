//! The owners of the claims of a pod: they decide whether a claim is deleted with the set or by a scale-down.

use super::desired::StatefulSpec;
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Resource, ResourceExt};
use operator::owner;

/// What to do about the owners of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClaimOwners {
    /// They are as the policy wants them, or the claim must not be touched.
    Keep,
    Set(Vec<OwnerReference>),
}

/// The pod of a claim: one that exists, or the ordinal of one that does not yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimUser<'a> {
    pub(super) ordinal: i32,
    pub(super) pod: Option<&'a Pod>,
}

/// What the policy says about the owners of `claim`.
///
/// The set owns it if it is deleted with the set; the pod owns it if a scale-down is about to delete the pod and
/// the claim with it.
pub(super) fn owners(
    desired: &StatefulSpec<'_>,
    user: ClaimUser<'_>,
    claim: &PersistentVolumeClaim,
) -> Result<ClaimOwners, owner::OwnerError> {
    let pod_name = desired.pod_name(user.ordinal);
    let is_set = |it: &OwnerReference| {
        it.api_version == "apps/v1" && it.kind == "StatefulSet" && it.name == desired.name()
    };
    let is_pod = |it: &OwnerReference| it.api_version == "v1" && it.kind == "Pod" && it.name == pod_name;
    // An owner of that name that no longer exists: the garbage collector decides.
    if is_stale(claim, is_set, Some(&desired.set.metadata)) || is_stale_pod(desired, user, claim) {
        return Ok(ClaimOwners::Keep);
    }
    let present = claim.owner_references();
    let others: Vec<_> = present.iter().filter(|it| !is_set(it) && !is_pod(it)).cloned().collect();
    if has_other_controller(desired, user, claim) {
        let is_clean = others.len() == present.len();
        return Ok(if is_clean { ClaimOwners::Keep } else { ClaimOwners::Set(others) });
    }
    let is_scaled_down = !desired.has_ordinal(user.ordinal);
    let (retention, pod) = (desired.retention, user.pod.filter(|_| is_scaled_down));
    let is_of_pod = retention.deletes_with_scale_down && is_scaled_down;
    let is_of_set = retention.deletes_with_set && !is_of_pod;
    let mut wanted = others;
    if is_of_set {
        wanted.push(owner::reference(desired.set)?);
    }
    if let Some(pod) = pod.filter(|_| is_of_pod) {
        wanted.push(owner::reference(pod)?);
    }
    Ok(if is_same(present, &wanted) { ClaimOwners::Keep } else { ClaimOwners::Set(wanted) })
}

/// Whether a claim belongs to an earlier pod of this name: it is about to be deleted, and no new pod may use it.
pub(super) fn is_left_over(desired: &StatefulSpec<'_>, ordinal: i32, claim: &PersistentVolumeClaim) -> bool {
    desired.retention.deletes_with_scale_down
        && is_stale_pod(desired, ClaimUser { ordinal, pod: None }, claim)
}

/// Whether something else than the set and the pod controls the claim, so that the policy cannot be followed.
pub(super) fn has_other_controller(
    desired: &StatefulSpec<'_>,
    user: ClaimUser<'_>,
    claim: &PersistentVolumeClaim,
) -> bool {
    let retention = desired.retention;
    if !retention.deletes_with_set && !retention.deletes_with_scale_down {
        return false;
    }
    let pod_uid = user.pod.and_then(|pod| pod.metadata.uid.as_ref());
    let set_uid = desired.set.metadata.uid.as_ref();
    let is_ours = |uid: &String| Some(uid) == pod_uid || Some(uid) == set_uid;
    claim.owner_references().iter().any(|it| it.controller == Some(true) && !is_ours(&it.uid))
}

fn is_stale_pod(desired: &StatefulSpec<'_>, user: ClaimUser<'_>, claim: &PersistentVolumeClaim) -> bool {
    let name = desired.pod_name(user.ordinal);
    let is_pod = |it: &OwnerReference| it.api_version == "v1" && it.kind == "Pod" && it.name == name;
    is_stale(claim, is_pod, user.pod.map(Resource::meta))
}

/// Whether the claim names an owner that is not the present object of that name.
fn is_stale(
    claim: &PersistentVolumeClaim,
    is_named: impl Fn(&OwnerReference) -> bool,
    present: Option<&ObjectMeta>,
) -> bool {
    let uid = present.and_then(|meta| meta.uid.as_ref());
    claim.owner_references().iter().find(|it| is_named(it)).is_some_and(|it| Some(&it.uid) != uid)
}

/// The order of owners does not matter.
fn is_same(present: &[OwnerReference], wanted: &[OwnerReference]) -> bool {
    let has = |all: &[OwnerReference], one: &OwnerReference| {
        all.iter().any(|it| it.uid == one.uid && it.controller == one.controller)
    };
    present.len() == wanted.len() && wanted.iter().all(|one| has(present, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSet;
    use serde_json::{Value, json};

    fn set(when_deleted: &str, when_scaled: &str) -> StatefulSet {
        let set = json!({"metadata": {"name": "web", "uid": "set"}, "spec": {
            "replicas": 2, "selector": {}, "template": {}, "serviceName": "",
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": when_deleted, "whenScaled": when_scaled}}});
        serde_json::from_value(set).unwrap()
    }

    fn reference(kind: &str, name: &str, uid: &str, controls: bool) -> Value {
        let version = if kind == "Pod" { "v1" } else { "apps/v1" };
        json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controls})
    }

    fn check(policy: (&str, &str), ordinal: i32, owners_before: Value, expected: &str) {
        let set = set(policy.0, policy.1);
        let name = format!("web-{ordinal}");
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": name, "uid": "pod"}})).unwrap();
        let claim =
            json!({"metadata": {"name": format!("data-web-{ordinal}"), "ownerReferences": owners_before}});
        let claim = serde_json::from_value(claim).unwrap();
        let user = ClaimUser { ordinal, pod: Some(&pod) };
        let owners = match owners(&StatefulSpec::of(&set).unwrap(), user, &claim).unwrap() {
            ClaimOwners::Keep => "keep".to_owned(),
            ClaimOwners::Set(owners) => owners.iter().map(|it| it.uid.as_str()).collect::<Vec<_>>().join(" "),
        };
        assert_eq!(owners, expected, "{policy:?} {ordinal} {claim:?}");
    }

    #[test]
    fn the_owners_of_a_claim_follow_the_policy() {
        let (none, ours, pods) = (
            json!([]),
            json!([reference("StatefulSet", "web", "set", true)]),
            json!([reference("Pod", "web-3", "pod", true)]),
        );
        for (policy, ordinal, before, expected) in [
            (("Retain", "Retain"), 0, &none, "keep"),
            (("Retain", "Retain"), 0, &ours, ""),
            (("Retain", "Retain"), 3, &pods, ""),
            (("Delete", "Retain"), 0, &none, "set"),
            (("Delete", "Retain"), 0, &ours, "keep"),
            (("Delete", "Retain"), 3, &none, "set"),
            (("Retain", "Delete"), 0, &none, "keep"),
            (("Retain", "Delete"), 0, &ours, ""),
            (("Retain", "Delete"), 3, &none, "pod"),
            (("Retain", "Delete"), 3, &pods, "keep"),
            (("Delete", "Delete"), 0, &none, "set"),
            (("Delete", "Delete"), 3, &ours, "pod"),
            (("Delete", "Delete"), 3, &pods, "keep"),
        ] {
            check(policy, ordinal, before.clone(), expected);
        }
    }

    #[test]
    fn claims_of_others_are_left_alone() {
        let delete = ("Delete", "Delete");
        let other = || reference("Backup", "nightly", "other", true);
        let friend = || reference("Backup", "nightly", "other", false);
        let ours = || reference("StatefulSet", "web", "set", true);
        check(delete, 0, json!([other()]), "keep");
        check(delete, 0, json!([ours(), other()]), "other");
        check(delete, 0, json!([friend()]), "other set");
        check(("Retain", "Retain"), 0, json!([other()]), "keep");
        // ClaimOwners of that name with other UIDs.
        check(delete, 0, json!([reference("StatefulSet", "web", "old", true)]), "keep");
        check(delete, 3, json!([reference("Pod", "web-3", "old", true)]), "keep");
        // A reference of ours that does not control is replaced.
        check(delete, 0, json!([reference("StatefulSet", "web", "set", false)]), "set");
    }

    #[test]
    fn a_claim_of_an_earlier_pod_is_left_over() {
        let claim = json!({"metadata": {"ownerReferences": [reference("Pod", "web-1", "old", true)]}});
        let claim = serde_json::from_value(claim).unwrap();
        for (policy, expected) in [(("Retain", "Delete"), true), (("Retain", "Retain"), false)] {
            let set = set(policy.0, policy.1);
            assert_eq!(is_left_over(&StatefulSpec::of(&set).unwrap(), 1, &claim), expected, "{policy:?}");
        }
    }
}
