//! The revisions of a StatefulSet: the current one, and the one that its pods are updated to.

use crate::workload::history::{self, RevisionDraft};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{Pod, PodTemplateSpec},
};
use kube::ResourceExt;
use operator::{Context, Failure, Key};
use std::{collections::BTreeSet, sync::Arc};

/// The two revisions of a set; they are the same if no update is going on.
#[derive(Debug)]
pub(super) struct StatefulRevisions {
    pub(super) current: Arc<ControllerRevision>,
    pub(super) update: Arc<ControllerRevision>,
    pub(super) collisions: i32,
}

/// Where the update revision comes from.
#[derive(Clone, Debug, PartialEq)]
enum UpdateSource {
    /// The latest revision has the template.
    Latest(Arc<ControllerRevision>),
    /// An earlier one has it: a rollback.
    Earlier(Arc<ControllerRevision>),
    New,
}

fn choose(revisions: &[Arc<ControllerRevision>], template: &PodTemplateSpec) -> UpdateSource {
    let with_template = revisions.iter().rposition(|revision| history::is_of(revision, template));
    match with_template {
        Some(index) if index + 1 == revisions.len() => UpdateSource::Latest(Arc::clone(&revisions[index])),
        Some(index) => UpdateSource::Earlier(Arc::clone(&revisions[index])),
        None => UpdateSource::New,
    }
}

/// The revisions of the set, after a new one is created if the template has changed; `None` if the set is being
/// deleted and its revisions with it.
///
/// `revisions` must be sorted.
pub(super) async fn current_and_update(
    context: &Context<()>,
    set: &StatefulSet,
    template: &PodTemplateSpec,
    revisions: &[Arc<ControllerRevision>],
) -> Result<Option<StatefulRevisions>, Failure> {
    let status = set.status.as_ref();
    let mut collisions = status.and_then(|status| status.collision_count).unwrap_or_default();
    let api = context.namespaced::<ControllerRevision>(&Key::of(set));
    let number = history::next_number(revisions);
    let update = match choose(revisions, template) {
        UpdateSource::Latest(latest) => latest,
        // The garbage collector deletes the revisions of such a set: none is written.
        _ if set.metadata.deletion_timestamp.is_some() => return Ok(None),
        UpdateSource::Earlier(earlier) => Arc::new(history::renumber(&api, &earlier, number).await?),
        UpdateSource::New => {
            let draft = RevisionDraft { owner: set, template, hash_label: history::HASH, number };
            let (created, after) = draft.create_with_free_name(&api, collisions).await?;
            collisions = after;
            Arc::new(created)
        }
    };
    let name = status.and_then(|status| status.current_revision.as_deref()).unwrap_or_default();
    let current = revisions.iter().find(|revision| revision.name_any() == name);
    let current = current.filter(|current| current.name_any() != update.name_any()).unwrap_or(&update);
    Ok(Some(StatefulRevisions { current: Arc::clone(current), update: Arc::clone(&update), collisions }))
}

/// Deletes the oldest revisions beyond the limit of the set.
pub(super) async fn truncate(
    context: &Context<()>,
    set: &StatefulSet,
    known: &[Arc<ControllerRevision>],
    in_use: &StatefulRevisions,
    pods: &[Arc<Pod>],
) -> Result<(), Failure> {
    let mut live: BTreeSet<String> =
        pods.iter().map(|pod| super::identity::revision(pod).to_owned()).collect();
    live.extend([in_use.current.name_any(), in_use.update.name_any()]);
    let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    for revision in history::excess(known, &live, limit) {
        history::delete(context, &revision).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(image: &str) -> PodTemplateSpec {
        serde_json::from_value(json!({"spec": {"containers": [{"name": "c", "image": image}]}})).unwrap()
    }

    fn revision(number: i64, image: &str) -> Arc<ControllerRevision> {
        let revision = json!({"metadata": {"name": format!("web-{number}")}, "revision": number,
            "data": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}});
        Arc::new(serde_json::from_value(revision).unwrap())
    }

    #[test]
    fn a_template_that_is_known_gets_no_new_revision() {
        let known = [revision(1, "a"), revision(2, "b"), revision(3, "a"), revision(4, "c")];
        for (revisions, image, expected) in [
            (&known[..0], "a", UpdateSource::New),
            (&known[..], "d", UpdateSource::New),
            (&known[..], "c", UpdateSource::Latest(Arc::clone(&known[3]))),
            (&known[..], "b", UpdateSource::Earlier(Arc::clone(&known[1]))),
            (&known[..], "a", UpdateSource::Earlier(Arc::clone(&known[2]))),
        ] {
            assert_eq!(choose(revisions, &template(image)), expected, "{image}");
        }
    }
}
