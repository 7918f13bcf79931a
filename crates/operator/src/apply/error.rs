//! Why a set was not applied.

use crate::owner::OwnerError;

/// Why a set was not applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The owner cannot own a child.
    #[error("{0}")]
    Owner(#[from] OwnerError),
    /// The owner is being deleted.
    #[error("owner {owner:?} is being deleted: what is made for it now may outlive it")]
    OwnerDeleting {
        /// The name of the owner.
        owner: String,
    },
    /// A child has no name.
    #[error("a {kind} of the set has no name")]
    Nameless {
        /// The kind of the child.
        kind: String,
    },
    /// Two children have the same kind and name.
    #[error("{kind} {name:?} is in the set twice")]
    Twice {
        /// The kind of the child.
        kind: String,
        /// The name of the child.
        name: String,
    },
    /// A request failed.
    #[error("{kind} {name:?} was not written")]
    Kube {
        /// The kind of the child.
        kind: String,
        /// The name of the child.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
}
