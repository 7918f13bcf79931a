//! The children of an owner: those that it controls, and orphans that its selector matches.

use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, ResourceExt, core::Selector, core::SelectorExt};
use operator::{
    Context, Failure, Key, Kind,
    adopt::{self, Adoption, Claim},
    cache::{Item, Undecodable, View},
};
use std::sync::Arc;

/// The index of objects without a controller, by their namespace.
const ORPHANS: &str = "orphans";

/// The objects that an owner may claim: those that it owns, and the orphans in its namespace.
pub(crate) fn candidates<C: Kind>(
    children: &View<C>,
    owner: &impl Resource,
) -> Result<Vec<Arc<C>>, Undecodable> {
    children.index_items(ORPHANS, orphan_in);
    let meta = owner.meta();
    let mut found = children.owned_by(meta.uid.as_deref().unwrap_or_default())?;
    let is_owned = |orphan: &C| orphan.owner_references().iter().any(|it| Some(&it.uid) == meta.uid.as_ref());
    let orphans = children.indexed(ORPHANS, meta.namespace.as_deref().unwrap_or_default())?;
    found.extend(orphans.into_iter().filter(|orphan| !is_owned(orphan)));
    Ok(found)
}

fn orphan_in(item: &Item) -> Vec<String> {
    let namespace = item.key().namespace().unwrap_or_default().to_owned();
    if item.controller_uid().is_none() { vec![namespace] } else { Vec::new() }
}

/// Adopts and releases among the candidates, and returns those that the owner controls.
pub(crate) async fn claim<S, O, C>(
    context: &Context<S>,
    owner: &O,
    selector: &Selector,
    candidates: Vec<Arc<C>>,
) -> Result<Vec<Arc<C>>, Failure>
where
    O: Kind + Resource<Scope = NamespaceResourceScope>,
    C: Kind + Resource<Scope = NamespaceResourceScope>,
{
    claim_with(context, owner, selector, candidates, None).await
}

/// [`claim`] with a finalizer that children get when they are adopted, and lose when they are released.
pub(crate) async fn claim_with<S, O, C>(
    context: &Context<S>,
    owner: &O,
    selector: &Selector,
    candidates: Vec<Arc<C>>,
    finalizer: Option<&str>,
) -> Result<Vec<Arc<C>>, Failure>
where
    O: Kind + Resource<Scope = NamespaceResourceScope>,
    C: Kind + Resource<Scope = NamespaceResourceScope>,
{
    let (mut kept, mut changed) = (Vec::with_capacity(candidates.len()), Vec::new());
    for candidate in candidates {
        let matches = !selector.selects_all() && selector.matches(candidate.labels());
        match adopt::claim(owner.meta(), candidate.meta(), matches) {
            Claim::Keep => kept.push(candidate),
            Claim::Adopt | Claim::Release => changed.push(C::clone(&candidate)),
            Claim::Ignore => {}
        }
    }
    if !changed.is_empty() {
        let key = Key::of(owner);
        let (owners, children) = (context.namespaced::<O>(&key), context.namespaced::<C>(&key));
        let adoption = Adoption { owner, owners: &owners, children: &children, selector };
        kept.extend(adoption.claim_with(changed, finalizer).await?.into_iter().map(Arc::new));
    }
    Ok(kept)
}

/// The keys of the owners that may adopt an orphan: those in its namespace whose selectors match.
pub(crate) fn claimants<O: Kind, C: Kind>(
    owners: &View<O>,
    child: &C,
    selector_of: impl Fn(&O) -> Option<Selector>,
) -> Vec<Key> {
    let has_controller = child.owner_references().iter().any(|owner| owner.controller == Some(true));
    if has_controller || child.labels().is_empty() {
        return Vec::new();
    }
    let namespace = child.meta().namespace.as_deref().unwrap_or_default();
    let owners = owners.in_namespace(namespace).unwrap_or_default();
    let matches = |owner: &&Arc<O>| {
        selector_of(owner).is_some_and(|selector| !selector.selects_all() && selector.matches(child.labels()))
    };
    owners.iter().filter(matches).map(|owner| Key::of(&**owner)).collect()
}
