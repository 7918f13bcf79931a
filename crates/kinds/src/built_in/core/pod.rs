//! Pod: containers that run together on a node.

mod affinity;
mod columns;
mod container_image;
mod defaults;
mod resources;
mod strategy;
mod subresource;
pub(crate) mod validate;
mod volume_paths;
pub(crate) mod warnings;

use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::workload::warn_of_name;
use crate::cells::row::text;
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::builder::SPEC;
use crate::strategy::disabled::EACH;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

/// Columns and rules of the pod lie in the files beside this one; what kinds with a template of pods need of it, too.
pub(crate) static POD: BuiltIn = BuiltIn::new(GROUP, "Pod", "pods")
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .counts_generation_of(SPEC)
            .takes_status()
            .status_metadata(StatusMetadata::AllBut(&["ownerReferences"]))
            .status_resets(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
            .on_create(strategy::prepare_create)
            .on_update(strategy::prepare_update)
            .on_status(strategy::prepare_status)
            .graceful(strategy::grace_period)
            .subresources(subresource::SUBRESOURCES)
            .pod_spec_at(&["spec"])
            .disabled_fields(&[
                &["status", "containerStatuses", EACH, "volumeMounts", EACH, "volumeStatus"],
                &["status", "initContainerStatuses", EACH, "volumeMounts", EACH, "volumeStatus"],
                &["status", "ephemeralContainerStatuses", EACH, "volumeMounts", EACH, "volumeStatus"],
                &["status", "nodeAllocatableResourceClaimStatuses"],
            ]),
    )
    .validation(
        Validation::new(validate::check).update(UpdateChecks::CHANGE.compare(validate::change)).subresources(
            &[
                ("status", validate::status),
                ("ephemeralcontainers", validate::ephemeral_containers),
                ("resize", validate::resize),
            ],
        ),
    )
    .warnings(warn)
    .defaults(defaults::DEFAULTS)
    .columns(columns::COLUMNS)
    .row_conditions(columns::row_conditions)
    .selectable(
        Selectable::new(&[
            SelectableField::NAME,
            SelectableField::NAMESPACE,
            SelectableField::flag("spec.hostNetwork"),
            SelectableField::text("spec.nodeName"),
            SelectableField::text("spec.restartPolicy"),
            SelectableField::text("spec.schedulerName"),
            SelectableField::text("spec.serviceAccountName"),
            SelectableField::text("status.nominatedNodeName"),
            SelectableField::text("status.phase"),
            SelectableField::computed("status.podIP", |_, pod| text(&pod["status"]["podIPs"][0]["ip"])),
            // Kubernetes: accepted, but never set.
            SelectableField::computed("status.podIPs", |_, _| ""),
        ])
        // Kubernetes: clients from before v1 send this.
        .alias(&[("spec.host", "spec.nodeName")]),
    );

fn warn(pod: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() {
        warn_of_name(pod, "the Pod's hostname", warnings);
        warnings::check(pod, warnings);
    }
}
