//! What the graph keeps of an object: its identity in ownerReferences, its own ownerReferences, and its deletion finalizers.

use operator::{
    Key,
    cache::{Item, Undecodable},
};
use serde::{Deserialize, de::IgnoredAny};
use std::{fmt, sync::Arc};

/// The UID of an object. Cheap to clone.
pub(super) type Uid = Arc<str>;

/// The finalizer of an object that is deleted after its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents stay.
pub(super) const ORPHAN: &str = "orphan";

/// An apiVersion and a kind. Objects of one kind share it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindName(Arc<(String, String)>);

/// How an owner reference names an object, with the namespace that belongs to it. Two identities may mean the
/// same object: in another version of its API group, or by mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    // Kubernetes: kinds are compared before namespaces and names, when another identity is tried.
    pub(super) kind: KindName,
    pub(super) key: Key,
}

/// A reference to an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerRef {
    pub(super) uid: Uid,
    pub(super) kind: KindName,
    pub(super) name: Box<str>,
    /// Whether the deletion of the owner in the foreground waits for this object.
    pub(super) blocks: bool,
}

/// An object as a watch reports it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) uid: Uid,
    pub(super) identity: Identity,
    pub(super) owners: Vec<OwnerRef>,
    pub(super) deletion: Deletion,
}

/// How far the deletion of an object is, and what it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deletion {
    #[default]
    NotDeleted,
    /// It waits for something that is no business of the garbage collector.
    Deleting,
    /// Until all dependents that block it are deleted.
    AwaitsDependents,
    /// Until no dependent refers to it.
    OrphansDependents,
}

impl KindName {
    pub(super) fn new(api_version: &str, kind: &str) -> KindName {
        KindName(Arc::new((api_version.to_owned(), kind.to_owned())))
    }

    pub(super) fn api_version(&self) -> &str {
        &self.0.0
    }

    pub(super) fn kind(&self) -> &str {
        &self.0.1
    }
}

impl fmt::Debug for KindName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.api_version(), self.kind())
    }
}

impl Identity {
    pub(super) fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// The text in events.
    // Kubernetes: this is how its references are printed.
    pub(super) fn text(&self, uid: &str) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.key.name());
        format!("[{:?}, namespace: {namespace}, name: {name}, uid: {uid}]", self.kind)
    }
}

impl OwnerRef {
    /// The owner's identity if it is in this namespace.
    pub(super) fn identity_in(&self, namespace: Option<&str>) -> Identity {
        Identity { kind: self.kind.clone(), key: Key::new(namespace, &self.name) }
    }

    /// Whether it names the object of this identity, apart from the namespace.
    pub(super) fn names(&self, identity: &Identity) -> bool {
        self.kind == identity.kind && *self.name == *identity.key.name()
    }
}

/// The metadata that matters here.
#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    owner_references: Vec<Reference>,
    #[serde(default)]
    finalizers: Vec<String>,
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    block_owner_deletion: Option<bool>,
}

impl Observed {
    /// `known_uid` and `known_kind` return what is already in memory, to keep each text once.
    pub(super) fn read(
        item: &Item,
        kind: &KindName,
        known_uid: impl Fn(&str) -> Option<Uid>,
        known_kind: impl Fn(&str, &str) -> Option<KindName>,
    ) -> Result<Observed, Undecodable> {
        let Object { metadata } = item.decode()?;
        let uid_of = |uid: &str| known_uid(uid).unwrap_or_else(|| Uid::from(uid));
        let owner = |reference: Reference| OwnerRef {
            uid: uid_of(&reference.uid),
            kind: known_kind(&reference.api_version, &reference.kind)
                .unwrap_or_else(|| KindName::new(&reference.api_version, &reference.kind)),
            name: reference.name.into(),
            blocks: reference.block_owner_deletion == Some(true),
        };
        Ok(Observed {
            uid: uid_of(item.uid()),
            identity: Identity { kind: kind.clone(), key: item.key().clone() },
            deletion: Deletion::read(metadata.deletion_timestamp.is_some(), &metadata.finalizers),
            owners: metadata.owner_references.into_iter().map(owner).collect(),
        })
    }
}

impl Deletion {
    pub(super) fn read(is_deleting: bool, finalizers: &[String]) -> Deletion {
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        match is_deleting {
            false => Deletion::NotDeleted,
            // Kubernetes: orphaning goes first.
            true if has(ORPHAN) => Deletion::OrphansDependents,
            true if has(FOREGROUND) => Deletion::AwaitsDependents,
            true => Deletion::Deleting,
        }
    }
}
