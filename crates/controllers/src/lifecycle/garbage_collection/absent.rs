//! Owners that do not exist, as the server has said: their other dependents need no further request.

use super::identity::{Identity, Uid};
use std::collections::BTreeMap;

/// Kubernetes: so many, the least recently used is forgotten first. One that is forgotten costs a request.
const MOST: usize = 500;

/// A UID never comes back, so what is absent once stays absent.
#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    last_used: BTreeMap<(Uid, Identity), u64>,
    by_use: BTreeMap<u64, (Uid, Identity)>,
    uses: u64,
}

impl AbsentOwners {
    pub(super) fn add(&mut self, uid: &Uid, identity: &Identity) {
        self.touch((Uid::clone(uid), identity.clone()));
        if self.by_use.len() > MOST
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.last_used.remove(&oldest);
        }
    }

    pub(super) fn contains(&mut self, uid: &Uid, identity: &Identity) -> bool {
        let owner = (Uid::clone(uid), identity.clone());
        let is_known = self.last_used.contains_key(&owner);
        if is_known {
            self.touch(owner);
        }
        is_known
    }

    fn touch(&mut self, owner: (Uid, Identity)) {
        self.uses += 1;
        if let Some(before) = self.last_used.insert(owner.clone(), self.uses) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::garbage_collection::identity::KindName;
    use operator::Key;

    #[test]
    fn the_least_recently_used_is_forgotten_first() {
        let identity = Identity { kind: KindName::new("v1", "Pod"), key: Key::parse("a/b") };
        let uid = |number: usize| Uid::from(format!("u{number}"));
        let mut absent = AbsentOwners::default();
        (0..MOST).for_each(|number| absent.add(&uid(number), &identity));
        assert!(absent.contains(&uid(0), &identity));
        absent.add(&uid(MOST), &identity);
        assert!(absent.contains(&uid(0), &identity), "it was used after the others");
        assert!(!absent.contains(&uid(1), &identity));
        let elsewhere = Identity { key: Key::parse("c/b"), ..identity };
        assert!(!absent.contains(&uid(0), &elsewhere));
    }
}
