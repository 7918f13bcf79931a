//! The objects of one cache, merged from lists, watches and this process's own writes in any order.
//!
//! Three rules keep reads from going back in time. An object is never replaced by an earlier version
//! of itself. An object that this process has deleted stays away, by its UID, until the watch confirms
//! the deletion. The answer to an own write is ignored once the watch has passed its version: if the
//! object is not in the cache by then, it has been deleted since.

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;
mod tombstones;

use crate::{
    Key,
    cache::{
        Delta, Item, Origin,
        index::{Index, IndexFunction, Indexes},
        items::Items,
    },
    watch::CacheUpdate,
};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::{collections::VecDeque, mem};
use tombstones::Tombstones;

/// Pure: an update goes in, the deltas that it makes come out.
#[derive(Debug)]
pub(crate) struct Contents {
    items: Items,
    owners: Index,
    indexes: Indexes,
    reflectors: Vec<Reflector>,
    deleted_uids: Tombstones,
    deleted_keys: Tombstones,
    /// The UIDs whose deletion lists and watches have reported, the latest last.
    reported_deletions: VecDeque<Box<str>>,
}

/// What the contents know of one list and watch that fills them.
#[derive(Debug)]
struct Reflector {
    /// `None` is all namespaces.
    namespace: Option<String>,
    /// The cache has seen everything up to this resourceVersion.
    caught_up_to: u64,
    /// How many lists have started.
    lists: u64,
    /// The number of the latest list that is complete; 0 before the first.
    complete_list: u64,
    /// The cache is fresh when the list of this number, or a later one, is complete.
    wanted_list: u64,
    /// The keys that the current list has contained so far.
    listed: Option<HashSet<Key, FixedState>>,
    /// Listed objects that the watch had passed without showing them: taken in at the end of the
    /// list, unless that turns out to be a stale one.
    unconfirmed: Vec<Item>,
    /// How many complete lists in a row were stale.
    stale_lists: u32,
    /// The server has lost its history: the versions of cached objects are not comparable with new ones.
    ignores_versions: bool,
}

impl Reflector {
    fn is_synced(&self) -> bool {
        self.complete_list > 0
    }
}

/// The index of a reflector in its contents.
pub(crate) type ReflectorId = usize;

/// A server that lags behind others catches up; one whose lists are still stale after so many of
/// them has lost its history.
const MOST_STALE_LISTS: u32 = 3;

/// How many deletions are remembered that the watch has reported, so that the answer to the same
/// deletion by this process needs no further request.
const MOST_REPORTED_DELETIONS: usize = 256;

/// A complete list is older than what the cache has already seen: it must be requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaleList;

impl Contents {
    pub(crate) fn new(namespaces: Vec<Option<String>>) -> Contents {
        let reflectors = namespaces.into_iter().map(|namespace| Reflector {
            namespace,
            caught_up_to: 0,
            lists: 0,
            complete_list: 0,
            wanted_list: 1,
            listed: None,
            unconfirmed: Vec::new(),
            stale_lists: 0,
            ignores_versions: false,
        });
        Contents {
            items: Items::default(),
            owners: Index::owners(),
            indexes: Indexes::default(),
            reflectors: reflectors.collect(),
            deleted_uids: Tombstones::default(),
            deleted_keys: Tombstones::default(),
            reported_deletions: VecDeque::new(),
        }
    }

    pub(crate) fn items(&self) -> &Items {
        &self.items
    }

    pub(crate) fn owned_by<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Item> {
        self.owners.find(uid)
    }

    pub(crate) fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// If there is an index of this name, it stays as it is.
    pub(crate) fn add_index(&mut self, name: &'static str, values: IndexFunction) {
        self.indexes.add(name, values, &self.items);
    }

    pub(crate) fn add_label_index(&mut self, label: &str) {
        self.indexes.add_label(label, &self.items);
    }

    /// The objects with this value of a label.
    pub(crate) fn labelled<'a>(
        &'a self,
        label: &str,
        value: &'a str,
        namespace: Option<&'a str>,
    ) -> Vec<&'a Item> {
        self.indexes.labelled(label, value, namespace, &self.items)
    }

    /// Whether the first list is complete.
    pub(crate) fn is_synced(&self) -> bool {
        self.reflectors.iter().all(Reflector::is_synced)
    }

    /// Whether a list is complete that started after the last call of [`Contents::want_list`].
    pub(crate) fn is_fresh(&self) -> bool {
        self.reflectors.iter().all(|reflector| reflector.complete_list >= reflector.wanted_list)
    }

    /// What the cache holds now may be old: it is fresh again after another list.
    pub(crate) fn want_list(&mut self) {
        self.reflectors.iter_mut().for_each(|reflector| reflector.wanted_list = reflector.lists + 1);
    }

    /// The reflector that fills this namespace, if there is one.
    pub(crate) fn reflector_of(&self, namespace: Option<&str>) -> Option<ReflectorId> {
        self.reflectors.iter().position(|reflector| match &reflector.namespace {
            None => true,
            Some(own) => namespace == Some(own),
        })
    }

    /// Whether the watch of this namespace has come to this version, or there is none to wait for.
    pub(crate) fn has_caught_up(&self, namespace: Option<&str>, version: u64) -> bool {
        let reflector = self.reflector_of(namespace).map(|id| &self.reflectors[id]);
        reflector.is_none_or(|reflector| reflector.caught_up_to >= version)
    }

    // ------------------------------------------------------------------- updates by lists and watches

    /// Carries out an update, and returns what it changed.
    pub(crate) fn apply(&mut self, id: ReflectorId, update: CacheUpdate) -> Result<Vec<Delta>, StaleList> {
        let origin = if self.reflectors[id].is_synced() { Origin::Watch } else { Origin::InitialList };
        match update {
            CacheUpdate::ListStarted => self.start_list(id),
            CacheUpdate::Listed(item) => return Ok(self.put(id, item, origin)),
            CacheUpdate::ListComplete(version) => return self.complete_list(id, version, origin),
            CacheUpdate::Applied(item) => {
                let version = item.resource_version();
                let deltas = self.put(id, item, origin);
                self.catch_up(id, version);
                return Ok(deltas);
            }
            CacheUpdate::Deleted(item) => {
                let deltas = self.remove(&item, origin);
                self.catch_up(id, item.resource_version());
                return Ok(deltas);
            }
            CacheUpdate::CaughtUpTo(version) => self.catch_up(id, version),
        }
        Ok(Vec::new())
    }

    fn start_list(&mut self, id: ReflectorId) {
        let reflector = &mut self.reflectors[id];
        reflector.lists += 1;
        reflector.listed = Some(HashSet::default());
        reflector.unconfirmed.clear();
    }

    fn put(&mut self, id: ReflectorId, item: Item, origin: Origin) -> Vec<Delta> {
        let Reflector { lists, listed, unconfirmed, ignores_versions, caught_up_to, .. } =
            &mut self.reflectors[id];
        let is_listing = listed.is_some();
        if let Some(listed) = listed {
            listed.insert(item.key().clone());
        } else if item.resource_version() <= *caught_up_to {
            // A repeated event: the object may have been deleted since.
            return Vec::new();
        }
        let (uid, key, version) = (item.uid(), item.key().as_str(), item.resource_version());
        // A list that started after a deletion and contains the object shows that it was not deleted.
        let disproved = |deleted: &Tombstones, name| is_listing && deleted.is_before(name, id, *lists);
        let hides = |deleted: &Tombstones, name| deleted.hides(name, version) && !disproved(deleted, name);
        let is_hidden = hides(&self.deleted_uids, uid) || hides(&self.deleted_keys, key);
        let known = self.items.get(item.key().as_str());
        match known.map(Item::resource_version) {
            _ if is_hidden => Vec::new(),
            Some(known) if known >= version && !*ignores_versions => Vec::new(),
            None if version <= *caught_up_to && !*ignores_versions => {
                unconfirmed.push(item);
                Vec::new()
            }
            _ => {
                self.deleted_uids.forget(item.uid());
                self.deleted_keys.forget(item.key().as_str());
                self.replace(item, origin)
            }
        }
    }

    fn remove(&mut self, item: &Item, origin: Origin) -> Vec<Delta> {
        self.deleted_uids.confirm(item.uid(), item.resource_version());
        self.deleted_keys.confirm(item.key().as_str(), item.resource_version());
        self.remember_reported_deletion(item.uid());
        match self.items.by_uid(item.uid()) {
            Some(known) if known.resource_version() <= item.resource_version() => {
                let key = known.key().clone();
                self.discard(&key, origin)
            }
            _ => Vec::new(),
        }
    }

    fn catch_up(&mut self, id: ReflectorId, version: u64) {
        let reflector = &mut self.reflectors[id];
        if reflector.listed.is_none() {
            reflector.caught_up_to = reflector.caught_up_to.max(version);
        }
    }

    /// Objects that the list does not contain did not exist at `version`.
    fn complete_list(
        &mut self,
        id: ReflectorId,
        version: u64,
        origin: Origin,
    ) -> Result<Vec<Delta>, StaleList> {
        let reflector = &mut self.reflectors[id];
        let ignores_versions = mem::take(&mut reflector.ignores_versions);
        let listed = reflector.listed.take().unwrap_or_default();
        if version < reflector.caught_up_to && !ignores_versions {
            reflector.stale_lists += 1;
            reflector.ignores_versions = reflector.stale_lists >= MOST_STALE_LISTS;
            return Err(StaleList);
        }
        reflector.stale_lists = 0;
        reflector.caught_up_to = version;
        reflector.complete_list = reflector.lists;
        self.deleted_uids.complete_list(id, reflector.lists);
        self.deleted_keys.complete_list(id, reflector.lists);
        let (namespace, unconfirmed) = (reflector.namespace.clone(), mem::take(&mut reflector.unconfirmed));
        let is_deleted = |item: &&Item| {
            (item.resource_version() <= version || ignores_versions) && !listed.contains(item.key())
        };
        let deleted: Vec<Key> = match &namespace {
            None => self.items.iter().filter(is_deleted).map(|item| item.key().clone()).collect(),
            Some(name) => {
                self.items.in_namespace(name).filter(is_deleted).map(|item| item.key().clone()).collect()
            }
        };
        let mut deltas: Vec<Delta> = deleted.iter().flat_map(|key| self.discard(key, origin)).collect();
        for deleted in deltas.iter().filter_map(|delta| delta.before.clone()) {
            self.remember_reported_deletion(deleted.uid());
        }
        for item in unconfirmed {
            let is_known = self.items.get(item.key().as_str()).is_some();
            if !is_known && !self.is_deleted(&item) {
                deltas.extend(self.replace(item, origin));
            }
        }
        Ok(deltas)
    }

    // ------------------------------------------------------------------- own writes

    /// This process has created or updated the object.
    pub(crate) fn wrote(&mut self, item: Item) -> Vec<Delta> {
        let Some(id) = self.reflector_of(item.key().namespace()) else { return Vec::new() };
        let is_deleted = self.is_deleted(&item);
        let reflector = &mut self.reflectors[id];
        let is_newer = match self.items.get(item.key().as_str()) {
            Some(known) => reflector.ignores_versions || known.resource_version() < item.resource_version(),
            None => reflector.ignores_versions || reflector.caught_up_to < item.resource_version(),
        };
        if !is_newer || is_deleted {
            return Vec::new();
        }
        if let (true, Some(listed)) = (reflector.ignores_versions, &mut reflector.listed) {
            listed.insert(item.key().clone());
        }
        self.replace(item, Origin::OwnWrite)
    }

    /// Whether a list or the watch has shown the object or its deletion. Otherwise they may still show
    /// earlier objects of the same name, and [`Contents::absent`] must say up to which version.
    pub(crate) fn has_seen(&self, uid: &str) -> bool {
        self.items.by_uid(uid).is_some() || self.is_reported_deletion(uid)
    }

    /// At `version` there was no object of this name in the scope.
    pub(crate) fn absent(&mut self, key: &Key, version: u64) -> Vec<Delta> {
        let Some(id) = self.reflector_of(key.namespace()) else { return Vec::new() };
        let reflector = &self.reflectors[id];
        if reflector.caught_up_to < version {
            self.deleted_keys.add(key.as_str(), version, id, reflector.lists);
        }
        match self.items.get(key.as_str()) {
            Some(known) if known.resource_version() <= version => self.discard(key, Origin::OwnWrite),
            _ => Vec::new(),
        }
    }

    /// This process has deleted the object with this UID, which had this key.
    pub(crate) fn deleted(&mut self, key: &Key, uid: &str) -> Vec<Delta> {
        let Some(id) = self.reflector_of(key.namespace()) else { return Vec::new() };
        if !self.is_reported_deletion(uid) {
            self.deleted_uids.add(uid, u64::MAX, id, self.reflectors[id].lists);
        }
        match self.items.by_uid(uid).map(Item::resource_version) {
            Some(version) => self.absent(key, version),
            None => Vec::new(),
        }
    }

    // ------------------------------------------------------------------- every change ends in one of these

    fn replace(&mut self, item: Item, origin: Origin) -> Vec<Delta> {
        let before = self.items.put(item.clone());
        self.update_indexes(before.as_ref(), Some(&item));
        match before {
            // Another object of the same name: the deletion of the one before went unseen.
            Some(before) if before.uid() != item.uid() => vec![
                Delta { before: Some(before), after: None, origin },
                Delta { before: None, after: Some(item), origin },
            ],
            before => vec![Delta { before, after: Some(item), origin }],
        }
    }

    fn discard(&mut self, key: &Key, origin: Origin) -> Vec<Delta> {
        let Some(before) = self.items.take(key) else { return Vec::new() };
        self.update_indexes(Some(&before), None);
        vec![Delta { before: Some(before), after: None, origin }]
    }

    fn update_indexes(&mut self, before: Option<&Item>, after: Option<&Item>) {
        self.owners.update(before, after);
        self.indexes.update(before, after);
    }

    /// Whether this process knows that this version of the object is gone.
    fn is_deleted(&self, item: &Item) -> bool {
        self.deleted_uids.hides(item.uid(), item.resource_version())
            || self.deleted_keys.hides(item.key().as_str(), item.resource_version())
    }

    fn is_reported_deletion(&self, uid: &str) -> bool {
        self.reported_deletions.iter().any(|deleted| **deleted == *uid)
    }

    fn remember_reported_deletion(&mut self, uid: &str) {
        if self.reported_deletions.len() >= MOST_REPORTED_DELETIONS {
            self.reported_deletions.pop_front();
        }
        self.reported_deletions.push_back(uid.into());
    }
}
