//! The graph of owners and dependents: changes go in, the objects that must be looked at come out.
//!
//! It is synchronous and sends no requests. A reference to an object that no watch has reported makes a *virtual* node:
//! the server is asked whether the object exists, and [`Graph::confirm_absent`] removes what does not.

#[cfg(test)]
mod tests;

use super::{
    absent::AbsentOwners,
    identity::{Deletion, Identity, KindName, Observed, OwnerRef, Uid},
};
use std::collections::{BTreeMap, BTreeSet};

/// All objects of the cluster, by their UIDs.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    absent: AbsentOwners,
    /// The kinds that are watched, to keep their names once.
    kinds: BTreeSet<KindName>,
}

/// Small: there is one for every object of the cluster.
#[derive(Debug)]
struct Node {
    identity: Identity,
    owners: Box<[OwnerRef]>,
    dependents: BTreeSet<Uid>,
    deletion: Deletion,
    /// Known from a reference only.
    is_virtual: bool,
}

/// What follows from a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Consequences {
    /// The objects to look at: to delete them, to orphan their dependents, or to ask whether they exist.
    pub(super) attempts: BTreeSet<Uid>,
    pub(super) invalid_owners: Vec<InvalidOwner>,
}

/// A reference to an owner in another namespace, and the object that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidOwner {
    pub(super) dependent: Uid,
    pub(super) dependent_identity: Identity,
    pub(super) owner: Uid,
    /// As the reference has it, in the namespace of the dependent.
    pub(super) owner_identity: Identity,
}

/// A node as an attempt sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) identity: Identity,
    pub(super) deletion: Deletion,
    pub(super) is_virtual: bool,
    pub(super) dependents: Dependents,
}

/// What its dependents mean for the deletion of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependents {
    None,
    Some,
    /// One of them waits for its own dependents: perhaps for this very object.
    SomeAwaitTheirs,
}

impl Graph {
    pub(super) fn known_uid(&self, uid: &str) -> Option<Uid> {
        self.nodes.get_key_value(uid).map(|(uid, _)| Uid::clone(uid))
    }

    pub(super) fn is_virtual(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(|node| node.is_virtual)
    }

    pub(super) fn known_kind(&self, kind: &KindName) -> Option<KindName> {
        self.kinds.get(kind).cloned()
    }

    pub(super) fn add_kind(&mut self, kind: &KindName) {
        self.kinds.insert(kind.clone());
    }

    pub(super) fn remove_kind(&mut self, kind: &KindName) {
        self.kinds.remove(kind);
    }

    /// A watch has reported that the object exists.
    pub(super) fn observe(&mut self, object: Observed) -> Consequences {
        let mut then = Consequences::default();
        let Observed { uid, identity, owners, deletion } = object;
        let before = match self.nodes.get(&uid) {
            None => {
                let node = Node {
                    identity,
                    owners: Box::default(),
                    dependents: BTreeSet::new(),
                    deletion,
                    is_virtual: false,
                };
                self.nodes.insert(Uid::clone(&uid), node);
                Deletion::NotDeleted
            }
            Some(node) => {
                if node.is_virtual && node.identity != identity {
                    self.question_dependents(&uid, &identity, &mut then);
                }
                let node = self.nodes.get_mut(&uid).expect("it was there a line ago");
                let before = node.deletion;
                (node.identity, node.deletion, node.is_virtual) = (identity, deletion, false);
                before
            }
        };
        self.replace_owners(&uid, owners, &mut then);
        self.begin_deletion(&uid, before, &mut then);
        then
    }

    /// A watch has reported that the object is deleted.
    pub(super) fn delete(&mut self, uid: &str) -> Consequences {
        let mut then = Consequences::default();
        if let Some(node) = self.nodes.get(uid) {
            let identity = node.identity.clone();
            self.remove(uid, &identity, &mut then);
        }
        then
    }

    /// Its kind is no longer served. An owner may come back with its kind: its dependents are not touched.
    pub(super) fn forget(&mut self, uid: &str, kind: &KindName) -> Consequences {
        let mut then = Consequences::default();
        let Some(node) = self.nodes.get_mut(uid).filter(|node| node.identity.kind == *kind) else {
            return then;
        };
        (node.is_virtual, node.deletion) = (true, Deletion::NotDeleted);
        let is_owner = !node.dependents.is_empty();
        let owners = std::mem::take(&mut node.owners);
        let uid = self.known_uid(uid).expect("its node is there");
        self.detach(&uid, &owners, &mut then);
        if !is_owner {
            self.nodes.remove(&uid);
        }
        then
    }

    /// The server has said that there is no object with this UID and identity.
    pub(super) fn confirm_absent(&mut self, uid: &Uid, identity: &Identity) -> Consequences {
        let mut then = Consequences::default();
        let Some(node) = self.nodes.get(uid) else { return then };
        let (matching, others) = self.split_dependents(uid, identity);
        let stays = if node.is_virtual { !others.is_empty() } else { node.identity != *identity };
        if !stays {
            self.remove(uid, identity, &mut then);
            return then;
        }
        let (is_virtual, is_same) = (node.is_virtual, node.identity == *identity);
        if !matching.is_empty() {
            self.absent.add(uid, identity);
            then.attempts.extend(matching);
        }
        // Some dependents name it in another way: perhaps that exists.
        if is_virtual
            && is_same
            && let Some(other) = self.other_identity(uid, identity, &others)
        {
            self.nodes.get_mut(uid).expect("it was there a line ago").identity = other;
            then.attempts.insert(Uid::clone(uid));
        }
        then
    }

    /// Whether the server has said that this owner does not exist, in the namespace of its dependent or without one.
    pub(super) fn is_known_absent(&mut self, owner: &OwnerRef, namespace: Option<&str>) -> bool {
        self.absent.contains(&owner.uid, &owner.identity_in(None))
            || self.absent.contains(&owner.uid, &owner.identity_in(namespace))
    }

    pub(super) fn add_absent(&mut self, uid: &Uid, identity: &Identity) {
        self.absent.add(uid, identity);
    }

    pub(super) fn subject(&self, uid: &str) -> Option<Subject> {
        let node = self.nodes.get(uid)?;
        let mut dependents = self.dependents_of(node);
        let dependents = match node.dependents.is_empty() {
            true => Dependents::None,
            false if dependents.any(|(_, it)| it.deletion == Deletion::AwaitsDependents) => {
                Dependents::SomeAwaitTheirs
            }
            false => Dependents::Some,
        };
        let Node { identity, deletion, is_virtual, .. } = node;
        Some(Subject { identity: identity.clone(), deletion: *deletion, is_virtual: *is_virtual, dependents })
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<(Uid, Identity)> {
        let node = self.nodes.get(uid).into_iter();
        let dependents = node.flat_map(|node| self.dependents_of(node));
        dependents.map(|(uid, node)| (Uid::clone(uid), node.identity.clone())).collect()
    }

    /// The dependents that an object in foreground deletion waits for, and which of them are to be deleted.
    pub(super) fn blocking_dependents(&self, uid: &str) -> Vec<(Uid, Deletion)> {
        let Some(node) = self.nodes.get(uid) else { return Vec::new() };
        let blocks = |node: &Node| node.owners.iter().any(|owner| *owner.uid == *uid && owner.blocks);
        let blocking = self.dependents_of(node).filter(|(_, node)| blocks(node));
        blocking.map(|(uid, node)| (Uid::clone(uid), node.deletion)).collect()
    }

    // ------------------------------------------------------------------- parts of the changes above

    fn dependents_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a Uid, &'a Node)> {
        node.dependents.iter().filter_map(|uid| Some((uid, self.nodes.get(uid)?)))
    }

    /// The object turned out to have another identity than its first dependent has named.
    fn question_dependents(&self, uid: &Uid, observed: &Identity, then: &mut Consequences) {
        let (_, others) = self.split_dependents(uid, observed);
        for dependent in others {
            let namespace = self.nodes.get(&dependent).and_then(|node| node.identity.namespace());
            if observed.namespace().is_some() && namespace != observed.namespace() {
                then.invalid_owners.extend(self.invalid_owner(&dependent, uid));
            }
            then.attempts.insert(dependent);
        }
    }

    fn replace_owners(&mut self, uid: &Uid, owners: Vec<OwnerRef>, then: &mut Consequences) {
        let node = self.nodes.get_mut(uid).expect("the caller has it");
        let before = std::mem::replace(&mut node.owners, owners.clone().into());
        let owner_in = |list: &[OwnerRef], uid: &Uid| list.iter().rfind(|owner| owner.uid == *uid).cloned();
        let removed: Vec<OwnerRef> =
            before.iter().filter(|owner| owner_in(&owners, &owner.uid).is_none()).cloned().collect();
        for owner in before.iter().filter(|owner| owner.blocks) {
            let blocks_still = owner_in(&owners, &owner.uid).is_some_and(|owner| owner.blocks);
            if !blocks_still && self.nodes.contains_key(&owner.uid) {
                then.attempts.insert(Uid::clone(&owner.uid));
            }
        }
        let added = owners.into_iter().filter(|owner| owner_in(&before, &owner.uid).is_none());
        self.add_to_owners(uid, added.collect(), then);
        for owner in removed {
            if let Some(node) = self.nodes.get_mut(&owner.uid) {
                node.dependents.remove(uid);
            }
        }
    }

    /// Adds it to the dependents of its owners. An owner that is unknown becomes a virtual node.
    fn add_to_owners(&mut self, uid: &Uid, owners: Vec<OwnerRef>, then: &mut Consequences) {
        let namespace = self.nodes.get(uid).and_then(|node| node.identity.namespace()).map(str::to_owned);
        let namespace = namespace.as_deref();
        let mut is_questionable = false;
        for owner in owners {
            let Some(node) = self.nodes.get_mut(&owner.uid) else {
                let node = Node {
                    identity: owner.identity_in(namespace),
                    owners: Box::default(),
                    dependents: BTreeSet::from([Uid::clone(uid)]),
                    deletion: Deletion::NotDeleted,
                    is_virtual: true,
                };
                then.attempts.insert(Uid::clone(&owner.uid));
                self.nodes.insert(owner.uid, node);
                continue;
            };
            node.dependents.insert(Uid::clone(uid));
            let (owner_namespace, is_virtual) = (node.identity.namespace(), node.is_virtual);
            let is_elsewhere = owner_namespace.is_some() && owner_namespace != namespace;
            let is_named = owner.names(&node.identity);
            // A virtual owner without a namespace may be of a namespaced kind, named by an object of the cluster.
            let is_doubtful = is_virtual && owner_namespace.is_none() && namespace.is_some();
            if is_elsewhere && !is_virtual && !is_questionable {
                then.invalid_owners.extend(self.invalid_owner(uid, &owner.uid));
            }
            is_questionable |= is_elsewhere || !is_named || is_doubtful;
        }
        if is_questionable {
            then.attempts.insert(Uid::clone(uid));
        }
    }

    fn begin_deletion(&self, uid: &Uid, before: Deletion, then: &mut Consequences) {
        let Some(node) = self.nodes.get(uid).filter(|node| node.deletion != before) else { return };
        match node.deletion {
            Deletion::NotDeleted | Deletion::Deleting => {}
            Deletion::OrphansDependents => {
                then.attempts.insert(Uid::clone(uid));
            }
            Deletion::AwaitsDependents => {
                then.attempts.extend(node.dependents.iter().cloned());
                then.attempts.insert(Uid::clone(uid));
            }
        }
    }

    fn remove(&mut self, uid: &str, identity: &Identity, then: &mut Consequences) {
        let Some((uid, node)) = self.nodes.remove_entry(uid) else { return };
        if !node.dependents.is_empty() {
            self.absent.add(&uid, identity);
        }
        self.detach(&uid, &node.owners, then);
        then.attempts.extend(node.dependents);
    }

    /// Removes it from its owners; those that wait for their dependents may go on.
    fn detach(&mut self, uid: &Uid, owners: &[OwnerRef], then: &mut Consequences) {
        for owner in owners {
            let Some(node) = self.nodes.get_mut(&owner.uid) else { continue };
            node.dependents.remove(uid);
            if node.deletion == Deletion::AwaitsDependents {
                then.attempts.insert(Uid::clone(&owner.uid));
            }
        }
    }

    /// The dependents that name the owner by this identity, and those that name it in another way.
    fn split_dependents(&self, uid: &Uid, identity: &Identity) -> (Vec<Uid>, Vec<Uid>) {
        let (mut matching, mut others) = (Vec::new(), Vec::new());
        let Some(owner) = self.nodes.get(uid) else { return (matching, others) };
        for (dependent, node) in self.dependents_of(owner) {
            let is_elsewhere =
                identity.namespace().is_some() && identity.namespace() != node.identity.namespace();
            let names = |owner: &&OwnerRef| !is_elsewhere && owner.names(identity);
            let references = || node.owners.iter().filter(|owner| owner.uid == *uid);
            if references().any(|owner| names(&owner)) {
                matching.push(Uid::clone(dependent));
            }
            if is_elsewhere || references().any(|owner| !names(&owner)) {
                others.push(Uid::clone(dependent));
            }
        }
        (matching, others)
    }

    /// The next identity after `absent` that these dependents give to their owner, or the first one.
    fn other_identity(&self, uid: &Uid, absent: &Identity, dependents: &[Uid]) -> Option<Identity> {
        let mut others: BTreeSet<Identity> = BTreeSet::new();
        for node in dependents.iter().filter_map(|dependent| self.nodes.get(dependent)) {
            for owner in node.owners.iter().filter(|owner| owner.uid == *uid) {
                // Of this kind it is known that it has no namespaces.
                let is_of_cluster = absent.namespace().is_none() && owner.kind == absent.kind;
                let namespace = if is_of_cluster { None } else { node.identity.namespace() };
                others.insert(owner.identity_in(namespace));
            }
        }
        others.remove(absent);
        others.range(absent..).next().or(others.first()).cloned()
    }

    fn invalid_owner(&self, dependent: &Uid, owner: &Uid) -> Option<InvalidOwner> {
        let node = self.nodes.get(dependent)?;
        let reference = node.owners.iter().find(|reference| reference.uid == *owner)?;
        Some(InvalidOwner {
            dependent: Uid::clone(dependent),
            dependent_identity: node.identity.clone(),
            owner: Uid::clone(owner),
            owner_identity: reference.identity_in(node.identity.namespace()),
        })
    }
}
