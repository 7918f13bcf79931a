//! Which attachments of a node are missing, which are left over, and what the node's status says of them.

use aws_lc_rs::digest::{SHA256, digest};
use k8s_openapi::{
    api::{
        core::v1::{AttachedVolume, PersistentVolume},
        storage::v1::{VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttachableVolume {
    pub(super) name: String,
    pub(super) driver: String,
    pub(super) handle: String,
}

/// A node, the volumes that its pods use, and what is attached to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeVolumes<'a> {
    pub(super) node: &'a str,
    /// By the names of their attachments.
    pub(super) wanted: &'a BTreeMap<String, AttachableVolume>,
    pub(super) attachments: &'a [Arc<VolumeAttachment>],
    /// What its kubelet has mounted.
    pub(super) in_use: &'a [String],
    pub(super) reported: &'a [AttachedVolume],
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AttachmentPlan {
    pub(super) create: Vec<VolumeAttachment>,
    pub(super) delete: Vec<Arc<VolumeAttachment>>,
    /// What the status of the node shall show, if that changes.
    pub(super) report: Option<Vec<AttachedVolume>>,
}

impl AttachableVolume {
    pub(super) fn of(volume: &PersistentVolume) -> Option<AttachableVolume> {
        let source = volume.spec.as_ref()?.csi.as_ref()?;
        let (driver, handle) = (source.driver.clone(), source.volume_handle.clone());
        Some(AttachableVolume { name: volume.name_any(), driver, handle })
    }

    /// Kubernetes: kubelets compute the same name.
    pub(super) fn attachment_name(&self, node: &str) -> String {
        let hash = digest(&SHA256, format!("{}{}{node}", self.handle, self.driver).as_bytes());
        hash.as_ref().iter().fold("csi-".to_owned(), |mut name, byte| {
            write!(name, "{byte:02x}").expect("a string can be written to");
            name
        })
    }

    /// Kubernetes: how a node names it.
    fn unique_name(&self) -> String {
        format!("kubernetes.io/csi/{}^{}", self.driver, self.handle)
    }

    fn attachment(&self, name: &str, node: &str) -> VolumeAttachment {
        VolumeAttachment {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: VolumeAttachmentSpec {
                attacher: self.driver.clone(),
                node_name: node.to_owned(),
                source: VolumeAttachmentSource {
                    persistent_volume_name: Some(self.name.clone()),
                    inline_volume_spec: None,
                },
            },
            status: None,
        }
    }
}

pub(super) fn plan(state: &NodeVolumes<'_>) -> AttachmentPlan {
    let present = |name: &String| state.attachments.iter().any(|it| it.name_any() == *name);
    let missing = state.wanted.iter().filter(|(name, _)| !present(name));
    let create = missing.map(|(name, volume)| volume.attachment(name, state.node)).collect();
    // Kubernetes: not before the kubelet has unmounted it.
    let is_in_use = |it: &Arc<VolumeAttachment>| {
        let prefix = format!("kubernetes.io/csi/{}^", it.spec.attacher);
        let mounted = state.in_use.iter().filter_map(|name| name.strip_prefix(&prefix));
        mounted.into_iter().any(|handle| {
            let volume = AttachableVolume {
                name: String::new(),
                driver: it.spec.attacher.clone(),
                handle: handle.to_owned(),
            };
            volume.attachment_name(state.node) == it.name_any()
        })
    };
    let is_left_over = |it: &&Arc<VolumeAttachment>| {
        let is_ours = it.name_any().starts_with("csi-");
        let is_kept = state.wanted.contains_key(&it.name_any()) || it.metadata.deletion_timestamp.is_some();
        is_ours && !is_kept && !is_in_use(it)
    };
    let delete = state.attachments.iter().filter(is_left_over).cloned().collect();
    AttachmentPlan { create, delete, report: report(state) }
}

/// The wanted volumes that are attached, in the order of their names.
fn report(state: &NodeVolumes<'_>) -> Option<Vec<AttachedVolume>> {
    let is_attached = |name: &String| {
        let attachment = state.attachments.iter().find(|it| it.name_any() == *name);
        attachment.is_some_and(|it| {
            it.metadata.deletion_timestamp.is_none() && it.status.as_ref().is_some_and(|it| it.attached)
        })
    };
    let attached = state.wanted.iter().filter(|(name, _)| is_attached(name));
    let mut names: Vec<String> = attached.map(|(_, volume)| volume.unique_name()).collect();
    names.sort();
    let is_reported = names.iter().eq(state.reported.iter().map(|it| &it.name));
    let volume = |name: String| AttachedVolume { name, device_path: String::new() };
    (!is_reported).then(|| names.into_iter().map(volume).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn disk(name: &str) -> AttachableVolume {
        AttachableVolume { name: name.to_owned(), driver: "d".to_owned(), handle: name.to_owned() }
    }

    fn attachment(volume: &AttachableVolume, is_attached: bool) -> Arc<VolumeAttachment> {
        let mut attachment = volume.attachment(&volume.attachment_name("n"), "n");
        attachment.status = Some(serde_json::from_value(json!({ "attached": is_attached })).unwrap());
        Arc::new(attachment)
    }

    #[test]
    fn names_are_those_that_kubelets_compute() {
        // `printf vol-1example.comnode-0 | sha256sum`
        let volume =
            AttachableVolume { name: "pv".into(), driver: "example.com".into(), handle: "vol-1".into() };
        let expected = "csi-7bb1e658a9b7c0b5104cae5754c43043689cd9a3ff704bc9b4d402ddb087953e";
        assert_eq!(volume.attachment_name("node-0"), expected);
    }

    #[test]
    fn a_node_has_the_attachments_that_its_pods_need() {
        let (a, b) = (disk("a"), disk("b"));
        let unique =
            |names: &[&str]| names.iter().map(|it| format!("kubernetes.io/csi/d^{it}")).collect::<Vec<_>>();
        for (wanted, present, in_use, reported, expected) in [
            (vec![], vec![], vec![], vec![], (vec![], vec![], None)),
            (vec![&a, &b], vec![attachment(&a, false)], vec![], vec![], (vec!["b"], vec![], None)),
            (vec![&a], vec![attachment(&a, true)], vec![], vec![], (vec![], vec![], Some(vec!["a"]))),
            (vec![&a], vec![attachment(&a, true)], vec![], vec!["a"], (vec![], vec![], None)),
            (vec![&a], vec![attachment(&a, false)], vec![], vec!["a"], (vec![], vec![], Some(vec![]))),
            (vec![], vec![attachment(&a, true)], vec![], vec!["a"], (vec![], vec!["a"], Some(vec![]))),
            (vec![], vec![attachment(&a, true)], vec!["a"], vec![], (vec![], vec![], None)),
            (vec![&b], vec![attachment(&a, true)], vec!["b"], vec![], (vec!["b"], vec!["a"], None)),
        ] {
            let wanted: BTreeMap<_, _> =
                wanted.into_iter().map(|it| (it.attachment_name("n"), it.clone())).collect();
            let reported = unique(&reported).into_iter();
            let reported: Vec<AttachedVolume> =
                reported.map(|name| AttachedVolume { name, device_path: String::new() }).collect();
            let plan = plan(&NodeVolumes {
                node: "n",
                wanted: &wanted,
                attachments: &present,
                in_use: &unique(&in_use),
                reported: &reported,
            });
            let volume = |it: &VolumeAttachment| it.spec.source.persistent_volume_name.clone().unwrap();
            let created: Vec<String> = plan.create.iter().map(volume).collect();
            let deleted: Vec<String> = plan.delete.iter().map(|it| volume(it)).collect();
            assert_eq!(created, expected.0, "{wanted:?} {present:?}");
            assert_eq!(deleted, expected.1, "{wanted:?} {present:?}");
            let report = plan.report.map(|it| it.into_iter().map(|it| it.name).collect::<Vec<_>>());
            assert_eq!(report, expected.2.map(|names| unique(&names)), "{wanted:?} {present:?}");
        }
    }
}
