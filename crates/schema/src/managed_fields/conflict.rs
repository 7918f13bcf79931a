//! Conflicts: fields that an applier would change although another manager owns them.

use std::fmt;

use super::owner::Owner;
use crate::field_set::{FieldSet, Path};

/// A field and the manager that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub owner: Owner,
    pub path: Path,
}

/// All conflicts of an apply, grouped by owner. Prints as kube-apiserver's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflict {
    /// The message of its status cause; the field is the path.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner.title())
    }
}

impl Conflicts {
    pub(super) fn new(mut conflicts: Vec<Conflict>) -> Self {
        conflicts.sort_by_cached_key(|conflict| conflict.owner.identifier());
        Conflicts(conflicts)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Conflict> {
        self.0.iter()
    }

    /// The conflicts outside a set; `None` if all are inside.
    pub(super) fn outside(&self, allowed: &FieldSet) -> Option<Conflicts> {
        let outside: Vec<_> =
            self.0.iter().filter(|conflict| !allowed.has(&conflict.path)).cloned().collect();
        (!outside.is_empty()).then_some(Conflicts(outside))
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.path);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        for (at, conflicts) in self.0.chunk_by(|left, right| left.owner == right.owner).enumerate() {
            let owner = conflicts.first().map(|conflict| conflict.owner.title()).unwrap_or_default();
            write!(f, "{}conflicts with {owner}:", if at > 0 { "\n" } else { "" })?;
            conflicts.iter().try_for_each(|conflict| write!(f, "\n- {}", conflict.path))?;
        }
        Ok(())
    }
}
