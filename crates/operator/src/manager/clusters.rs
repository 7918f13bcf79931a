//! The clusters of a manager: its own, and others by their names.

use crate::cache::Caches;
use kube::Client;
use std::collections::BTreeMap;

/// The caches of each cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    own: Caches,
    others: BTreeMap<String, Caches>,
}

impl Clusters {
    /// `open` makes the caches around a client.
    pub(crate) fn open(
        own: Client,
        others: BTreeMap<String, Client>,
        open: impl Fn(Client) -> Caches,
    ) -> Clusters {
        let others = others.into_iter().map(|(name, client)| (name, open(client))).collect();
        Clusters { own: open(own), others }
    }

    /// The caches of the cluster in which the manager elects its leader.
    pub(crate) fn own(&self) -> &Caches {
        &self.own
    }

    pub(crate) fn get(&self, name: Option<&str>) -> Option<&Caches> {
        match name {
            None => Some(&self.own),
            Some(name) => self.others.get(name),
        }
    }

    pub(crate) fn start(&self) {
        self.all().for_each(Caches::start);
    }

    /// A kind, and the name of an index of it that was given to two functions.
    pub(crate) fn contested_index(&self) -> Option<(String, &'static str)> {
        self.all().find_map(Caches::contested_index)
    }

    pub(crate) fn refresh(&self) {
        self.all().for_each(Caches::refresh);
    }

    fn all(&self) -> impl Iterator<Item = &Caches> {
        std::iter::once(&self.own).chain(self.others.values())
    }
}
