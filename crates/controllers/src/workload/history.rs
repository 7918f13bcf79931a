//! ControllerRevisions: the history of an owner's pod template, for rollbacks.
//!
//! The data of a revision is a strategic merge patch that replaces `spec.template` of its owner; that is what
//! `kubectl rollout undo` and `kubectl rollout history` read.

use crate::{claim, workload::template_hash};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, runtime::RawExtension},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, PostParams},
    core::Selector,
};
use operator::{Context, Failure, Key, Kind, owner, retry};
use serde_json::{Value, json};
use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

/// Kubernetes: the label of a StatefulSet's revision with its hash.
pub(super) const HASH: &str = "controller.kubernetes.io/hash";
/// Kubernetes: the label of pods with their revision; also that of a DaemonSet's revision with its hash.
pub(super) const REVISION: &str = "controller-revision-hash";

/// Kubernetes: a longer name of the owner is cut, since a name has 253 characters at most.
const MAX_PREFIX: usize = 223;
/// More revisions of one owner with the same hash cannot be by chance.
const MAX_COLLISIONS: i32 = 1000;

/// A revision that does not exist yet.
#[derive(Clone, Debug)]
pub(super) struct RevisionDraft<'a, O> {
    pub(super) owner: &'a O,
    pub(super) template: &'a PodTemplateSpec,
    /// The label that gets the hash.
    pub(super) hash_label: &'static str,
    pub(super) number: i64,
}

/// What became of the create of a revision.
#[derive(Debug)]
pub(super) enum CreatedRevision {
    /// Now, or before by an attempt whose answer was lost.
    Done(Box<ControllerRevision>),
    /// Another revision has this name.
    Collision,
}

impl<O> RevisionDraft<'_, O>
where
    O: Kind + Resource<Scope = NamespaceResourceScope>,
{
    /// The revision for so many earlier collisions of its name.
    pub(super) fn revision(&self, collisions: i32) -> Result<ControllerRevision, Failure> {
        let data = data(self.template)?;
        let hash = template_hash::of(&data, collisions);
        let template_meta = self.template.metadata.as_ref();
        let mut labels = template_meta.and_then(|meta| meta.labels.clone()).unwrap_or_default();
        labels.insert(self.hash_label.to_owned(), hash.clone());
        let metadata = ObjectMeta {
            name: Some(name(&self.owner.name_any(), &hash)),
            namespace: self.owner.meta().namespace.clone(),
            labels: Some(labels),
            annotations: self.owner.meta().annotations.clone(),
            owner_references: Some(vec![owner::reference(self.owner)?]),
            ..ObjectMeta::default()
        };
        Ok(ControllerRevision { metadata, data: Some(RawExtension(data)), revision: self.number })
    }

    /// Creates the revision, unless another one has its name.
    pub(super) async fn create(
        &self,
        api: &Api<ControllerRevision>,
        collisions: i32,
    ) -> Result<CreatedRevision, Failure> {
        let draft = self.revision(collisions)?;
        match api.create(&PostParams::default(), &draft).await {
            Ok(created) => Ok(CreatedRevision::Done(Box::new(created))),
            Err(error) if retry::is_conflict(&error) => {
                // A live read: the revision may be one that the cache has not got yet.
                let present = api.get(&draft.name_any()).await?;
                Ok(match is_of(&present, self.template) {
                    true => CreatedRevision::Done(Box::new(present)),
                    false => CreatedRevision::Collision,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the revision under the first free name; returns it and the number of collisions.
    pub(super) async fn create_with_free_name(
        &self,
        api: &Api<ControllerRevision>,
        collisions: i32,
    ) -> Result<(ControllerRevision, i32), Failure> {
        for collisions in collisions..collisions.saturating_add(MAX_COLLISIONS) {
            if let CreatedRevision::Done(revision) = self.create(api, collisions).await? {
                return Ok((*revision, collisions));
            }
        }
        Err(Failure::transient("every name for the new revision is taken"))
    }
}

/// The revisions of an owner, oldest first: those that it controls, and matching orphans, which it adopts.
pub(super) async fn claimed<S, O>(
    context: &Context<S>,
    owner: &O,
    selector: &Selector,
) -> Result<Vec<Arc<ControllerRevision>>, Failure>
where
    O: Kind + Resource<Scope = NamespaceResourceScope>,
{
    let candidates = claim::candidates(&context.view::<ControllerRevision>()?, owner)?;
    let mut revisions = claim::claim(context, owner, selector, candidates).await?;
    revisions.sort_by(|first, second| compare(first, second));
    Ok(revisions)
}

fn compare(first: &ControllerRevision, second: &ControllerRevision) -> Ordering {
    let created = |revision: &ControllerRevision| revision.creation_timestamp().map(|time| time.0);
    let by_number = first.revision.cmp(&second.revision);
    by_number
        .then_with(|| created(first).cmp(&created(second)))
        .then_with(|| first.name_any().cmp(&second.name_any()))
}

/// The number of the next revision. The revisions must be sorted.
pub(super) fn next_number(revisions: &[Arc<ControllerRevision>]) -> i64 {
    revisions.last().map_or(1, |latest| latest.revision.saturating_add(1))
}

/// Makes an earlier revision the latest one.
pub(super) async fn renumber(
    api: &Api<ControllerRevision>,
    revision: &ControllerRevision,
    number: i64,
) -> Result<ControllerRevision, Failure> {
    let renumbered = ControllerRevision { revision: number, ..revision.clone() };
    Ok(api.replace(&revision.name_any(), &PostParams::default(), &renumbered).await?)
}

pub(super) async fn delete<S>(context: &Context<S>, revision: &ControllerRevision) -> Result<(), Failure> {
    let api = context.namespaced::<ControllerRevision>(&Key::of(revision));
    match api.delete(&revision.name_any(), &DeleteParams::default()).await {
        Err(error) if !retry::is_missing(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The oldest revisions that no pod has, beyond the limit. `live` are the names of those in use.
pub(super) fn excess(
    revisions: &[Arc<ControllerRevision>],
    live: &BTreeSet<String>,
    limit: Option<i32>,
) -> Vec<Arc<ControllerRevision>> {
    let unused: Vec<_> = revisions.iter().filter(|revision| !live.contains(&revision.name_any())).collect();
    // Kubernetes: a negative limit keeps all of them.
    let Ok(limit) = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)) else { return Vec::new() };
    let count = unused.len().saturating_sub(limit);
    unused.into_iter().take(count).cloned().collect()
}

/// Kubernetes: the default of `revisionHistoryLimit`.
const DEFAULT_LIMIT: i32 = 10;

/// The patch that gives an owner this template.
fn data(template: &PodTemplateSpec) -> Result<Value, Failure> {
    let mut template = serde_json::to_value(template)?;
    template["$patch"] = json!("replace");
    Ok(json!({ "spec": { "template": template } }))
}

/// The template that a revision holds; `None` if its data is not that of a pod template.
pub(super) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let template = revision.data.as_ref()?.0.get("spec")?.get("template")?;
    // Unknown fields, such as `$patch`, are ignored.
    serde_json::from_value(template.clone()).ok()
}

/// Whether a revision holds this template. The templates are compared, not the bytes: other programs may have
/// written the same template with other defaults, such as `creationTimestamp: null`.
pub(super) fn is_of(revision: &ControllerRevision, template: &PodTemplateSpec) -> bool {
    template_of(revision).is_some_and(|held| held == *template)
}

fn name(owner: &str, hash: &str) -> String {
    let prefix = owner.get(..MAX_PREFIX).unwrap_or(owner);
    format!("{prefix}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSet;

    fn template(image: &str) -> PodTemplateSpec {
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]}});
        serde_json::from_value(template).unwrap()
    }

    fn revision(name: &str, number: i64) -> Arc<ControllerRevision> {
        let revision = json!({"metadata": {"name": name}, "revision": number});
        Arc::new(serde_json::from_value(revision).unwrap())
    }

    #[test]
    fn a_revision_is_a_patch_that_replaces_the_template() {
        let owner = json!({"metadata": {"name": "web", "namespace": "ns", "uid": "u", "annotations": {"a": "1"}},
            "spec": {"selector": {}, "template": {}, "serviceName": ""}});
        let owner: StatefulSet = serde_json::from_value(owner).unwrap();
        let (first, second) = (template("nginx:1"), template("nginx:2"));
        let draft = |template| RevisionDraft { owner: &owner, template, hash_label: HASH, number: 3 };
        let revision = draft(&first).revision(0).unwrap();
        let hash = revision.labels()[HASH].clone();
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 3,
            "metadata": {
                "name": format!("web-{hash}"), "namespace": "ns", "annotations": {"a": "1"},
                "labels": {"app": "web", "controller.kubernetes.io/hash": hash},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u",
                    "controller": true, "blockOwnerDeletion": true}],
            },
            "data": {"spec": {"template": {"$patch": "replace", "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}},
        });
        assert_eq!(serde_json::to_value(&revision).unwrap(), expected);
        assert!(is_of(&revision, &first) && !is_of(&revision, &second));
        let names = [draft(&first).revision(1), draft(&second).revision(0)].map(|it| it.unwrap().name_any());
        assert!(!names.contains(&revision.name_any()) && names[0] != names[1]);
    }

    #[test]
    fn a_template_with_null_fields_is_the_same() {
        let written_by_go = json!({"metadata": {"name": "web-1"}, "revision": 1, "data": {"spec": {"template": {
            "$patch": "replace", "metadata": {"creationTimestamp": null, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}}});
        let revision: ControllerRevision = serde_json::from_value(written_by_go).unwrap();
        assert!(is_of(&revision, &template("nginx:1")));
    }

    #[test]
    fn long_names_of_owners_are_cut() {
        assert_eq!(name("web", "5d4f"), "web-5d4f");
        assert_eq!(name(&"w".repeat(253), "5d4f").len(), 223 + 5);
    }

    #[test]
    fn the_oldest_unused_revisions_go_first() {
        let all = ["a", "b", "c", "d", "e"].iter().zip(1..).map(|(name, number)| revision(name, number));
        let all: Vec<_> = all.collect();
        for (live, limit, expected) in [
            (vec!["e"], Some(10), vec![]),
            (vec!["e"], Some(2), vec!["a", "b"]),
            (vec!["e", "a"], Some(2), vec!["b"]),
            (vec!["e"], Some(0), vec!["a", "b", "c", "d"]),
            (vec!["e"], Some(-1), vec![]),
            (vec!["e"], None, vec![]),
        ] {
            let names = live.iter().map(|name| (*name).to_owned()).collect();
            let gone: Vec<_> = excess(&all, &names, limit).iter().map(|it| it.name_any()).collect();
            assert_eq!(gone, expected, "{live:?} {limit:?}");
        }
    }
}
