//! Adopts orphans that match the selector of an owner, and releases its children that no longer match.
//!
//! As Kubernetes' own controllers do it: objects with another controller are left alone, and before the
//! first adoption the owner is read from the server, since a cached one may be deleted.

use crate::{owner, retry};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::{ObjectMeta, Selector, SelectorExt},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// What to do with a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The owner controls it, and it matches.
    Keep,
    /// It has no controller, and matches.
    Adopt,
    /// The owner controls it, and it no longer matches.
    Release,
    /// It belongs to another controller, or does not match.
    Ignore,
}

/// Why children could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It would adopt every orphan.
    #[error("the selector of {owner:?} selects everything")]
    SelectsEverything {
        /// The name of the owner.
        owner: String,
    },
    /// The owner cannot own these children.
    #[error(transparent)]
    Owner(#[from] owner::OwnerError),
    /// A request failed.
    #[error("the owner or a child could not be read or written")]
    Kube(#[from] kube::Error),
}

/// An owner, its selector, and the APIs of its kind and of its children's kind.
#[derive(Debug)]
pub struct Adoption<'a, O, C> {
    /// The object that claims children.
    pub owner: &'a O,
    /// The API of the owner's kind, to read it again.
    pub owners: &'a Api<O>,
    /// The API of the children's kind.
    pub children: &'a Api<C>,
    /// The labels of the children.
    pub selector: &'a Selector,
}

impl<O, C> Adoption<'_, O, C>
where
    O: Resource + Clone + Debug + DeserializeOwned,
    O::DynamicType: Default,
    C: Resource + Clone + Debug + DeserializeOwned,
{
    /// Adopts and releases among the candidates, and returns the children of the owner.
    ///
    /// Candidates that were changed or deleted meanwhile are left out: that will trigger another reconcile.
    /// All candidates are tried before the first error is returned.
    pub async fn claim(&self, candidates: impl IntoIterator<Item = C>) -> Result<Vec<C>, Error> {
        self.claim_with(candidates, None).await
    }

    /// [`Adoption::claim`] with a finalizer that children get when they are adopted, and lose when they are
    /// released.
    pub async fn claim_with(
        &self,
        candidates: impl IntoIterator<Item = C>,
        finalizer: Option<&str>,
    ) -> Result<Vec<C>, Error> {
        let reference = owner::reference(self.owner)?;
        if self.selector.selects_all() {
            return Err(Error::SelectsEverything { owner: reference.name });
        }
        let (mut claimed, mut failure, mut may_adopt) = (Vec::new(), None, None);
        for candidate in candidates {
            let matches = self.selector.matches(candidate.labels());
            let done = match claim(self.owner.meta(), candidate.meta(), matches) {
                Claim::Ignore => Ok(None),
                Claim::Keep => Ok(Some(candidate)),
                Claim::Release => {
                    let operations = release(candidate.meta(), &reference.uid, finalizer);
                    self.send(&candidate, operations).await.map(|_| None)
                }
                Claim::Adopt => {
                    let may_adopt = match may_adopt {
                        Some(known) => known,
                        None => *may_adopt.insert(self.owner_exists().await?),
                    };
                    match may_adopt {
                        true => {
                            let operations = adoption(candidate.meta(), &reference, finalizer);
                            self.send(&candidate, operations).await
                        }
                        false => Ok(None),
                    }
                }
            };
            match done {
                Ok(child) => claimed.extend(child),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(claimed), |error| Err(error.into()))
    }

    /// Releases all candidates that the owner controls: they are not deleted with it.
    pub async fn release(&self, candidates: impl IntoIterator<Item = C>) -> Result<(), Error> {
        let reference = owner::reference(self.owner)?;
        for candidate in candidates.into_iter().filter(|child| owner::is_controlled_by(child, self.owner)) {
            self.send(&candidate, release(candidate.meta(), &reference.uid, None)).await?;
        }
        Ok(())
    }

    /// Whether the owner still exists, by its UID, and is not being deleted.
    async fn owner_exists(&self) -> Result<bool, kube::Error> {
        let live = self.owners.get_opt(&self.owner.name_any()).await?;
        Ok(live
            .is_some_and(|live| live.uid() == self.owner.uid() && live.meta().deletion_timestamp.is_none()))
    }

    /// The child after the patch; `None` if it was deleted or changed since it was read.
    async fn send(&self, child: &C, operations: Value) -> Result<Option<C>, kube::Error> {
        let patch = serde_json::from_value(operations).expect("operations are a JSON patch");
        let name = child.name_any();
        match self.children.patch(&name, &PatchParams::default(), &Patch::<()>::Json(patch)).await {
            Ok(child) => Ok(Some(child)),
            Err(error) if retry::is_missing(&error) || retry::is_conflict(&error) => Ok(None),
            Err(error) if retry::is_invalid(&error) => {
                // Either a test of the patch failed, or the result is invalid.
                let live = self.children.get_opt(&name).await?;
                match live.is_some_and(|live| is_as_read(live.meta(), child.meta())) {
                    true => Err(error),
                    false => Ok(None),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// What an owner should do with a candidate.
/// ```
/// use kube::core::ObjectMeta;
/// use operator::adopt::{Claim, claim};
///
/// let owner = ObjectMeta { uid: Some("1".into()), ..ObjectMeta::default() };
/// let orphan = ObjectMeta::default();
/// assert_eq!(claim(&owner, &orphan, true), Claim::Adopt);
/// assert_eq!(claim(&owner, &orphan, false), Claim::Ignore);
/// ```
pub fn claim(owner: &ObjectMeta, candidate: &ObjectMeta, matches: bool) -> Claim {
    let is_owner_deleting = owner.deletion_timestamp.is_some();
    let controller = candidate.owner_references.iter().flatten().find(|r| r.controller == Some(true));
    match controller {
        Some(other) if Some(&other.uid) != owner.uid.as_ref() => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        // The garbage collector decides about the children of an owner that is being deleted.
        Some(_) if is_owner_deleting => Claim::Ignore,
        Some(_) => Claim::Release,
        None => {
            let is_same_namespace = owner.namespace.is_none() || owner.namespace == candidate.namespace;
            let is_candidate_deleting = candidate.deletion_timestamp.is_some();
            match matches && is_same_namespace && !is_owner_deleting && !is_candidate_deleting {
                true => Claim::Adopt,
                false => Claim::Ignore,
            }
        }
    }
}

fn adoption(candidate: &ObjectMeta, reference: &OwnerReference, finalizer: Option<&str>) -> Value {
    let references = candidate.owner_references.iter().flatten();
    let mut references: Vec<_> = references.filter(|present| present.uid != reference.uid).collect();
    references.push(reference);
    let finalizers = finalizer.map(|finalizer| {
        let others = candidate.finalizers.iter().flatten().map(String::as_str);
        others.filter(|present| *present != finalizer).chain([finalizer]).collect()
    });
    rewrite(candidate, json!(references), finalizers)
}

fn release(child: &ObjectMeta, uid: &str, finalizer: Option<&str>) -> Value {
    let references = child.owner_references.iter().flatten();
    let references = references.filter(|present| present.uid != uid).collect::<Vec<_>>();
    let finalizers = finalizer.map(|finalizer| {
        let others = child.finalizers.iter().flatten().map(String::as_str);
        others.filter(|present| *present != finalizer).collect()
    });
    rewrite(child, json!(references), finalizers)
}

/// Tests that the object and its owners have not changed since they were read, so that no reference is lost.
fn rewrite(meta: &ObjectMeta, references: Value, finalizers: Option<Vec<&str>>) -> Value {
    let mut operations = vec![
        json!({ "op": "test", "path": "/metadata/uid", "value": meta.uid }),
        json!({ "op": "test", "path": "/metadata/ownerReferences", "value": meta.owner_references }),
        json!({ "op": "add", "path": "/metadata/ownerReferences", "value": references }),
    ];
    if let Some(finalizers) = finalizers {
        operations.extend([
            json!({ "op": "test", "path": "/metadata/finalizers", "value": meta.finalizers }),
            json!({ "op": "add", "path": "/metadata/finalizers", "value": finalizers }),
        ]);
    }
    Value::Array(operations)
}

fn is_as_read(live: &ObjectMeta, read: &ObjectMeta) -> bool {
    live.uid == read.uid
        && live.owner_references == read.owner_references
        && live.finalizers == read.finalizers
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn meta(namespace: &str, uid: &str, is_deleting: bool) -> ObjectMeta {
        ObjectMeta {
            namespace: (!namespace.is_empty()).then(|| namespace.into()),
            uid: Some(uid.into()),
            deletion_timestamp: is_deleting.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        }
    }

    fn owned(child: ObjectMeta, uid: &str) -> ObjectMeta {
        let reference =
            OwnerReference { uid: uid.into(), controller: Some(true), ..OwnerReference::default() };
        ObjectMeta { owner_references: Some(vec![reference]), ..child }
    }

    #[test]
    fn controller_and_selector_decide_the_claim() {
        let (live, deleting) = (meta("a", "1", false), meta("a", "1", true));
        let orphan = meta("a", "c", false);
        let ours = owned(orphan.clone(), "1");
        let cases = [
            (&live, &orphan, true, Claim::Adopt),
            (&live, &orphan, false, Claim::Ignore),
            (&live, &ours, true, Claim::Keep),
            (&live, &ours, false, Claim::Release),
            (&live, &owned(orphan.clone(), "2"), true, Claim::Ignore),
            (&live, &owned(orphan.clone(), "2"), false, Claim::Ignore),
            (&live, &meta("a", "c", true), true, Claim::Ignore),
            (&live, &meta("b", "c", false), true, Claim::Ignore),
            (&meta("", "1", false), &meta("b", "c", false), true, Claim::Adopt),
            (&deleting, &orphan, true, Claim::Ignore),
            (&deleting, &ours, true, Claim::Keep),
            (&deleting, &ours, false, Claim::Ignore),
        ];
        for (place, (owner, candidate, matches, expected)) in cases.into_iter().enumerate() {
            assert_eq!(claim(owner, candidate, matches), expected, "case {place}");
        }
    }

    #[test]
    fn other_owners_keep_their_references() {
        let reference = |uid: &str| OwnerReference { uid: uid.into(), ..OwnerReference::default() };
        let child = ObjectMeta {
            owner_references: Some(vec![reference("2"), reference("1")]),
            ..meta("a", "c", false)
        };
        let left = |patch: Value| {
            let uids = patch[2]["value"].as_array().unwrap().iter().map(|r| r["uid"].clone());
            Value::Array(uids.collect())
        };
        assert_eq!(left(adoption(&child, &reference("1"), None)), json!(["2", "1"]));
        assert_eq!(left(adoption(&child, &reference("3"), None)), json!(["2", "1", "3"]));
        assert_eq!(left(release(&child, "1", None)), json!(["2"]));
    }

    #[test]
    fn children_get_the_finalizer_with_adoption_and_lose_it_with_release() {
        let reference = OwnerReference { uid: "1".into(), ..OwnerReference::default() };
        let with = |finalizers: &[&str]| ObjectMeta {
            finalizers: Some(finalizers.iter().map(|it| (*it).to_owned()).collect()),
            ..meta("a", "c", false)
        };
        let left = |patch: Value| patch[4]["value"].clone();
        assert_eq!(left(adoption(&with(&["other"]), &reference, Some("ours"))), json!(["other", "ours"]));
        assert_eq!(left(adoption(&with(&["ours"]), &reference, Some("ours"))), json!(["ours"]));
        assert_eq!(left(release(&with(&["ours", "other"]), "1", Some("ours"))), json!(["other"]));
        assert_eq!(left(release(&with(&["ours"]), "1", None)), json!(null));
    }
}
