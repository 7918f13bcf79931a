//! The revisions of a DaemonSet: the one of its template, and the earlier ones.

use crate::workload::history::{self, CreatedRevision, REVISION, RevisionDraft};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetStatus},
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use operator::{Context, Failure, Key};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

/// The revisions of a set.
#[derive(Debug)]
pub(super) struct DaemonRevisions {
    /// The label of the pods that have the template.
    pub(super) hash: String,
    earlier: Vec<Arc<ControllerRevision>>,
}

/// Finds or creates the revision of the template, and makes it the latest one.
///
/// `known` must be sorted.
pub(super) async fn of_template<S>(
    context: &Context<S>,
    set: &DaemonSet,
    known: Vec<Arc<ControllerRevision>>,
    pods: &[Arc<Pod>],
) -> Result<DaemonRevisions, Failure> {
    let Some(spec) = &set.spec else { return Err(Failure::transient("the set has no spec")) };
    let api = context.namespaced::<ControllerRevision>(&Key::of(set));
    let mut labelled = Vec::with_capacity(known.len());
    for revision in known {
        labelled.push(with_hash(&api, revision).await?);
    }
    let (mut current, earlier): (Vec<_>, Vec<_>) =
        labelled.into_iter().partition(|revision| history::is_of(revision, &spec.template));
    let number = history::next_number(&earlier);
    let Some(latest) = current.pop() else {
        let created = create(context, set, &api, number).await?;
        return Ok(DaemonRevisions { hash: hash(&created), earlier });
    };
    for duplicate in current {
        relabel(context, pods, &hash(&duplicate), &hash(&latest)).await?;
        history::delete(context, &duplicate).await?;
    }
    if latest.revision < number {
        history::renumber(&api, &latest, number).await?;
    }
    Ok(DaemonRevisions { hash: hash(&latest), earlier })
}

/// Deletes the oldest of the earlier revisions that no pod has, beyond the limit.
pub(super) async fn truncate<S>(
    context: &Context<S>,
    set: &DaemonSet,
    revisions: &DaemonRevisions,
    pods: &[Arc<Pod>],
) -> Result<(), Failure> {
    let hashes: BTreeSet<&str> =
        pods.iter().filter_map(|pod| Some(pod.labels().get(REVISION)?.as_str())).collect();
    let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    for revision in excess(&revisions.earlier, &hashes, limit) {
        history::delete(context, &revision).await?;
    }
    Ok(())
}

/// Kubernetes: unlike those of a StatefulSet, the revisions in use count towards the limit.
fn excess(
    earlier: &[Arc<ControllerRevision>],
    hashes: &BTreeSet<&str>,
    limit: Option<i32>,
) -> Vec<Arc<ControllerRevision>> {
    let live: BTreeSet<String> = earlier
        .iter()
        .filter(|revision| hashes.contains(hash(revision).as_str()))
        .map(|revision| revision.name_any())
        .collect();
    let used = i32::try_from(live.len()).unwrap_or(i32::MAX);
    let limit = limit.map(|limit| limit.saturating_sub(used).max(0));
    history::excess(earlier, &live, limit)
}

async fn create<S>(
    context: &Context<S>,
    set: &DaemonSet,
    api: &Api<ControllerRevision>,
    number: i64,
) -> Result<ControllerRevision, Failure> {
    let template = &set.spec.as_ref().expect("checked by the caller").template;
    let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default();
    let draft = RevisionDraft { owner: set, template, hash_label: REVISION, number };
    match draft.create(api, collisions).await? {
        CreatedRevision::Done(revision) => Ok(*revision),
        CreatedRevision::Collision => {
            // The count must be stored before it is used: the name of the revision is found by it.
            let status = DaemonSetStatus {
                collision_count: Some(collisions.saturating_add(1)),
                ..set.status.clone().unwrap_or_default()
            };
            let sets = context.namespaced::<DaemonSet>(&Key::of(set));
            crate::status::replace(&sets, set, &status).await?;
            Err(Failure::Conflict("another revision has the name of the new one".into()))
        }
    }
}

/// A revision without the label of its hash gets its name as the hash.
async fn with_hash(
    api: &Api<ControllerRevision>,
    revision: Arc<ControllerRevision>,
) -> Result<Arc<ControllerRevision>, Failure> {
    if revision.labels().contains_key(REVISION) {
        return Ok(revision);
    }
    let mut labelled = ControllerRevision::clone(&revision);
    let name = revision.name_any();
    labelled.metadata.labels.get_or_insert_default().insert(REVISION.to_owned(), name.clone());
    Ok(Arc::new(api.replace(&name, &PostParams::default(), &labelled).await?))
}

/// Gives the pods of a revision that is deleted the hash of the one that stays.
async fn relabel<S>(context: &Context<S>, pods: &[Arc<Pod>], from: &str, to: &str) -> Result<(), Failure> {
    for pod in pods.iter().filter(|pod| pod.labels().get(REVISION).is_some_and(|hash| hash == from)) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { REVISION: to } } }));
        let api = context.namespaced::<Pod>(&Key::of(&**pod));
        api.patch(&pod.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

fn hash(revision: &ControllerRevision) -> String {
    revision.labels().get(REVISION).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_in_use_count_towards_the_limit() {
        let revision = |(name, number): (&&str, i64)| {
            let revision =
                json!({"metadata": {"name": name, "labels": {REVISION: name}}, "revision": number});
            Arc::new(serde_json::from_value::<ControllerRevision>(revision).unwrap())
        };
        let all: Vec<_> = ["a", "b", "c", "d"].iter().zip(1..).map(revision).collect();
        for (live, limit, expected) in [
            (vec![], Some(10), vec![]),
            (vec![], Some(2), vec!["a", "b"]),
            (vec!["a"], Some(2), vec!["b", "c"]),
            (vec!["a", "b", "c"], Some(2), vec!["d"]),
        ] {
            let hashes = live.iter().copied().collect();
            let gone: Vec<_> = excess(&all, &hashes, limit).iter().map(|it| it.name_any()).collect();
            assert_eq!(gone, expected, "{live:?} {limit:?}");
        }
    }
}
