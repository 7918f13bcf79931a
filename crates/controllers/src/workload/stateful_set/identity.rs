//! The identity of a pod in its StatefulSet: its ordinal, name, labels, host name and volumes.

use super::desired::StatefulSpec;
use crate::{pod, workload::history::REVISION};
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;
use std::collections::BTreeMap;

/// Kubernetes: the label that a Service selects a single pod by.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The ordinal of a pod of the set with this name; `None` if the pod has the name of another set's pod.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: i32 = digits.parse().ok()?;
    // Not `web-01`, nor `web-+1`.
    (ordinal.to_string() == digits).then_some(ordinal)
}

/// A pod that does not exist yet, with its revision.
pub(super) fn new_pod(
    desired: &StatefulSpec<'_>,
    template: &PodTemplateSpec,
    revision: &str,
    ordinal: i32,
    owner: OwnerReference,
) -> Pod {
    // Kubernetes: the pod keeps the prefix of generated names, which is not used.
    let mut pod = pod::from_template(template, &desired.name(), owner);
    let name = desired.pod_name(ordinal);
    pod.metadata.name = Some(name.clone());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = desired.spec.service_name.clone().filter(|service| !service.is_empty());
    set_identity(desired, &mut pod, ordinal);
    pod.metadata.labels.get_or_insert_default().insert(REVISION.to_owned(), revision.to_owned());
    pod
}

/// Gives a pod the labels of its ordinal, and the volumes of its claims.
pub(super) fn set_identity(desired: &StatefulSpec<'_>, pod: &mut Pod, ordinal: i32) {
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.to_owned(), desired.pod_name(ordinal));
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    if has_volumes(desired, pod, ordinal) {
        return;
    }
    let volumes = pod.spec.get_or_insert_default().volumes.get_or_insert_default();
    let templates = desired.claim_templates();
    // A volume of the pod with the name of a claim template is replaced.
    volumes.retain(|volume| templates.iter().all(|template| template.name_any() != volume.name));
    let claimed = templates.iter().map(|template| Volume {
        name: template.name_any(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: desired.claim_name(template, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    });
    volumes.splice(0..0, claimed.collect::<Vec<_>>());
}

/// Whether a pod has its name as a label, and its claims as volumes.
pub(super) fn has_identity(desired: &StatefulSpec<'_>, pod: &Pod, ordinal: i32) -> bool {
    pod.labels().get(POD_NAME) == Some(&pod.name_any()) && has_volumes(desired, pod, ordinal)
}

fn has_volumes(desired: &StatefulSpec<'_>, pod: &Pod, ordinal: i32) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let claims: BTreeMap<&str, &str> = volumes
        .iter()
        .filter_map(|volume| {
            let claim = volume.persistent_volume_claim.as_ref()?;
            Some((volume.name.as_str(), claim.claim_name.as_str()))
        })
        .collect();
    desired.claim_templates().iter().all(|template| {
        claims.get(template.name_any().as_str()) == Some(&desired.claim_name(template, ordinal).as_str())
    })
}

pub(super) fn revision(pod: &Pod) -> &str {
    pod.labels().get(REVISION).map(String::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSet;
    use serde_json::json;

    #[test]
    fn the_ordinal_is_the_number_after_the_name_of_the_set() {
        for (pod, expected) in [
            ("web-0", Some(0)),
            ("web-17", Some(17)),
            ("web-x", None),
            ("web-01", None),
            ("web-", None),
            ("web", None),
            ("web-a-0", None),
            ("web-99999999999", None),
            ("other-0", None),
        ] {
            assert_eq!(ordinal("web", pod), expected, "{pod}");
        }
    }

    #[test]
    fn a_pod_has_its_name_its_host_name_and_its_claims() {
        let set = json!({"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "serviceName": "headless",
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "containers": [{"name": "c", "image": "nginx"}],
                "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
        let set: StatefulSet = serde_json::from_value(set).unwrap();
        let desired = StatefulSpec::of(&set).unwrap();
        let pod = new_pod(&desired, &desired.spec.template, "web-5d4f", 3, OwnerReference::default());
        let expected = json!({
            "name": "web-3",
            "generateName": "web-",
            "labels": {"app": "web", "apps.kubernetes.io/pod-index": "3", "controller-revision-hash": "web-5d4f",
                "statefulset.kubernetes.io/pod-name": "web-3"},
            "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
        });
        assert_eq!(serde_json::to_value(&pod.metadata).unwrap(), expected);
        let expected = json!({
            "hostname": "web-3", "subdomain": "headless", "containers": [{"name": "c", "image": "nginx"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}},
                {"name": "tmp", "emptyDir": {}}],
        });
        assert_eq!(serde_json::to_value(&pod.spec).unwrap(), expected);
        assert!(has_identity(&desired, &pod, 3) && !has_identity(&desired, &pod, 4));
    }
}
