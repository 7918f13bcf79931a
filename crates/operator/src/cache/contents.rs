//! What a cache knows: objects, told by lists, watches and this process's own writes, in any order.
//!
//! Three rules keep reads from going back in time. A version never takes the place of a later one.
//! What this process has deleted stays away, by its UID, until the watch has said the same.
//! An answer that comes after the watch has passed its version says nothing new: what the watch
//! has left out since is gone.

mod departed;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;

use crate::{
    Key,
    cache::{
        Item,
        index::{Index, Values},
        items::Items,
    },
};
use departed::Departed;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

/// A pure thing: it is told what happened, and answers which objects changed by that.
#[derive(Debug)]
pub(crate) struct Contents {
    items: Items,
    owners: Index,
    indexes: BTreeMap<&'static str, Index>,
    feeds: Vec<Feed>,
    departed_uids: Departed,
    departed_keys: Departed,
    /// The UIDs that lists and watches have told of as gone, the last one last.
    gone: VecDeque<Box<str>>,
}

/// One list-and-watch that fills the contents.
#[derive(Debug)]
struct Feed {
    /// `None` is all of them.
    namespace: Option<String>,
    /// Everything up to this version has been told.
    reached: u64,
    /// How many lists have begun.
    round: u64,
    /// The keys that the list under way has named.
    listed: Option<HashSet<Key, FixedState>>,
    /// Those that should have gone: believed when the list turns out not to be an old one.
    doubtful: Vec<Item>,
    is_synced: bool,
    /// How many complete lists in a row were older than what had been told.
    backwards: u32,
    /// The server's history was set back: versions from before mean nothing.
    starts_over: bool,
}

/// The number of a feed.
pub(crate) type FeedId = usize;

/// One object became another; one of the two is absent when it came or went.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) before: Option<Item>,
    pub(crate) after: Option<Item>,
}

/// A server that lags behind catches up; one that still answers with older lists after so many of
/// them has lost its history.
const MOST_BACKWARDS: u32 = 3;

/// How many of those who went are remembered, so that an answer that comes after the watch has told
/// the same needs no second look.
const MOST_GONE: usize = 256;

/// A complete list was older than what had been told before: it must be asked for once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backwards;

impl Contents {
    pub(crate) fn new(namespaces: Vec<Option<String>>) -> Contents {
        let feeds = namespaces.into_iter().map(|namespace| Feed {
            namespace,
            reached: 0,
            round: 0,
            listed: None,
            doubtful: Vec::new(),
            is_synced: false,
            backwards: 0,
            starts_over: false,
        });
        Contents {
            items: Items::default(),
            owners: Index::owners(),
            indexes: BTreeMap::new(),
            feeds: feeds.collect(),
            departed_uids: Departed::default(),
            departed_keys: Departed::default(),
            gone: VecDeque::new(),
        }
    }

    pub(crate) fn items(&self) -> &Items {
        &self.items
    }

    pub(crate) fn owned_by<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Item> {
        self.owners.find(uid)
    }

    pub(crate) fn indexed<'a>(&'a self, index: &str, value: &'a str) -> impl Iterator<Item = &'a Item> {
        self.indexes.get(index).into_iter().flat_map(move |index| index.find(value))
    }

    /// An index of this name that is there already stays as it is.
    pub(crate) fn add_index(&mut self, name: &'static str, values: Values) {
        self.indexes.entry(name).or_insert_with(|| {
            let mut index = Index::new(values);
            self.items.iter().for_each(|item| index.follow(None, Some(item)));
            index
        });
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.feeds.iter().all(|feed| feed.is_synced)
    }

    pub(crate) fn has_synced(&self, feed: FeedId) -> bool {
        self.feeds[feed].is_synced
    }

    pub(crate) fn feed_of(&self, namespace: Option<&str>) -> Option<FeedId> {
        self.feeds.iter().position(|feed| match &feed.namespace {
            None => true,
            Some(own) => namespace == Some(own),
        })
    }

    pub(crate) fn reached(&self, feed: FeedId) -> u64 {
        self.feeds[feed].reached
    }

    // ------------------------------------------------------------------- what lists and watches tell

    /// A list begins, or begins again from its start.
    pub(crate) fn begin(&mut self, feed: FeedId) {
        let feed = &mut self.feeds[feed];
        feed.round += 1;
        feed.listed = Some(HashSet::default());
        feed.doubtful.clear();
    }

    pub(crate) fn put(&mut self, feed: FeedId, item: Item) -> Vec<Moved> {
        let Feed { round, listed, doubtful, starts_over, reached, .. } = &mut self.feeds[feed];
        let is_listing = listed.is_some();
        if let Some(listed) = listed {
            listed.insert(item.key().clone());
        } else if item.resource_version() <= *reached {
            // Told once more: the object may have gone since.
            return Vec::new();
        }
        let (uid, key, version) = (item.uid(), item.key().as_str(), item.resource_version());
        // A list that began after something went cannot name it: then it had not gone.
        let is_believed = |departed: &Departed, name| is_listing && departed.is_before(name, feed, *round);
        let hides = |departed: &Departed, name| departed.hides(name, version) && !is_believed(departed, name);
        let is_hidden = hides(&self.departed_uids, uid) || hides(&self.departed_keys, key);
        let known = self.items.get(item.key().as_str());
        match known.map(Item::resource_version) {
            _ if is_hidden => Vec::new(),
            Some(known) if known >= version && !*starts_over => Vec::new(),
            None if version <= *reached && !*starts_over => {
                doubtful.push(item);
                Vec::new()
            }
            _ => {
                self.departed_uids.forget(item.uid());
                self.departed_keys.forget(item.key().as_str());
                self.replace(item)
            }
        }
    }

    pub(crate) fn remove(&mut self, item: &Item) -> Vec<Moved> {
        self.departed_uids.confirm(item.uid(), item.resource_version());
        self.departed_keys.confirm(item.key().as_str(), item.resource_version());
        self.remember_gone(item.uid());
        match self.items.by_uid(item.uid()) {
            Some(known) if known.resource_version() <= item.resource_version() => {
                let key = known.key().clone();
                self.discard(&key)
            }
            _ => Vec::new(),
        }
    }

    /// Everything up to `version` has been told.
    pub(crate) fn reach(&mut self, feed: FeedId, version: u64) {
        let feed = &mut self.feeds[feed];
        if feed.listed.is_none() {
            feed.reached = feed.reached.max(version);
        }
    }

    /// The list is complete: what it has not named was gone at `version`.
    pub(crate) fn complete(&mut self, feed: FeedId, version: u64) -> Result<Vec<Moved>, Backwards> {
        let own = &mut self.feeds[feed];
        let starts_over = mem::take(&mut own.starts_over);
        let listed = own.listed.take().unwrap_or_default();
        if version < own.reached && !starts_over {
            own.backwards += 1;
            own.starts_over = own.backwards >= MOST_BACKWARDS;
            return Err(Backwards);
        }
        own.backwards = 0;
        own.reached = version;
        own.is_synced = true;
        self.departed_uids.complete(feed, own.round);
        self.departed_keys.complete(feed, own.round);
        let (namespace, doubtful) = (own.namespace.clone(), mem::take(&mut own.doubtful));
        let is_gone = |item: &&Item| {
            (item.resource_version() <= version || starts_over) && !listed.contains(item.key())
        };
        let gone: Vec<Key> = match &namespace {
            None => self.items.iter().filter(is_gone).map(|item| item.key().clone()).collect(),
            Some(name) => {
                self.items.in_namespace(name).filter(is_gone).map(|item| item.key().clone()).collect()
            }
        };
        let mut moved: Vec<Moved> = gone.iter().flat_map(|key| self.discard(key)).collect();
        for went in moved.iter().filter_map(|moved| moved.before.clone()) {
            self.remember_gone(went.uid());
        }
        for item in doubtful {
            let is_known = self.items.get(item.key().as_str()).is_some();
            if !is_known && !self.is_departed(&item) {
                moved.extend(self.replace(item));
            }
        }
        Ok(moved)
    }

    // ------------------------------------------------------------------- what own writes tell

    /// This process has written the object, and it is there.
    pub(crate) fn wrote(&mut self, item: Item) -> Vec<Moved> {
        let Some(feed) = self.feed_of(item.key().namespace()) else { return Vec::new() };
        let is_departed = self.is_departed(&item);
        let feed = &mut self.feeds[feed];
        let is_news = match self.items.get(item.key().as_str()) {
            Some(known) => feed.starts_over || known.resource_version() < item.resource_version(),
            None => feed.starts_over || feed.reached < item.resource_version(),
        };
        if !is_news || is_departed {
            return Vec::new();
        }
        if let (true, Some(listed)) = (feed.starts_over, &mut feed.listed) {
            listed.insert(item.key().clone());
        }
        self.replace(item)
    }

    /// Whether a list or the watch has told of this deletion, or of the object: otherwise it may
    /// still tell of others who had the name before, and [`Contents::absent`] must say since when.
    pub(crate) fn knows(&self, uid: &str) -> bool {
        self.items.by_uid(uid).is_some() || self.gone.iter().any(|gone| **gone == *uid)
    }

    /// At `version`, or right after it, no object of this name belonged here.
    pub(crate) fn absent(&mut self, key: &Key, version: u64) -> Vec<Moved> {
        let Some(feed) = self.feed_of(key.namespace()) else { return Vec::new() };
        if self.feeds[feed].reached < version {
            self.departed_keys.add(key.as_str(), version, feed, self.feeds[feed].round);
        }
        match self.items.get(key.as_str()) {
            Some(known) if known.resource_version() <= version => self.discard(key),
            _ => Vec::new(),
        }
    }

    /// This process has deleted the object with this UID, which had this key.
    pub(crate) fn deleted(&mut self, key: &Key, uid: &str) -> Vec<Moved> {
        let Some(feed) = self.feed_of(key.namespace()) else { return Vec::new() };
        if !self.gone.iter().any(|gone| **gone == *uid) {
            self.departed_uids.add(uid, u64::MAX, feed, self.feeds[feed].round);
        }
        match self.items.by_uid(uid).map(Item::resource_version) {
            Some(version) => self.absent(key, version),
            None => Vec::new(),
        }
    }

    // ------------------------------------------------------------------- the only two ways to change

    fn replace(&mut self, item: Item) -> Vec<Moved> {
        let before = self.items.put(item.clone());
        self.reindex(before.as_ref(), Some(&item));
        match before {
            // Another object of the same name: the one before has gone unseen.
            Some(before) if before.uid() != item.uid() => {
                vec![Moved { before: Some(before), after: None }, Moved { before: None, after: Some(item) }]
            }
            before => vec![Moved { before, after: Some(item) }],
        }
    }

    fn discard(&mut self, key: &Key) -> Vec<Moved> {
        let Some(before) = self.items.take(key) else { return Vec::new() };
        self.reindex(Some(&before), None);
        vec![Moved { before: Some(before), after: None }]
    }

    fn is_departed(&self, item: &Item) -> bool {
        self.departed_uids.hides(item.uid(), item.resource_version())
            || self.departed_keys.hides(item.key().as_str(), item.resource_version())
    }

    fn remember_gone(&mut self, uid: &str) {
        if self.gone.len() >= MOST_GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(uid.into());
    }

    fn reindex(&mut self, before: Option<&Item>, after: Option<&Item>) {
        self.owners.follow(before, after);
        self.indexes.values_mut().for_each(|index| index.follow(before, after));
    }
}
