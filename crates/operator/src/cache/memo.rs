//! The objects that were decoded last, so that they need not be decoded again for the next read.

use crate::{
    Key,
    cache::{Item, Undecodable},
};
use foldhash::fast::FixedState;
use serde::de::DeserializeOwned;
use std::{
    any::Any,
    collections::HashMap,
    fmt,
    hash::BuildHasher,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many places there are for objects that are read one by one, each for two: enough for those that workers
/// reconcile at a time, and few beside the cache itself.
const SLOTS: usize = 128;
/// How many objects of lists are kept: a reconcile of an owner reads its children again and again, and this is
/// enough for two thousand of them. Up to twice as many are kept, at a few kilobytes each.
const LISTED: usize = 2048;

pub(crate) struct Memo {
    slots: Box<[Mutex<MemoSlot>]>,
    listed: Mutex<Listed>,
}

/// The last two objects of a slot: triggers read one before and after its change.
type MemoSlot = [Option<Decoded>; 2];

#[derive(Clone)]
struct Decoded {
    item: Item,
    object: Arc<dyn Any + Send + Sync>,
}

/// Objects in two generations: if the recent one is full, it becomes the earlier one, which is forgotten.
#[derive(Default)]
struct Listed {
    recent: HashMap<Key, Decoded, FixedState>,
    earlier: HashMap<Key, Decoded, FixedState>,
}

impl Memo {
    pub(crate) fn new() -> Memo {
        Memo { slots: (0..SLOTS).map(|_| Mutex::default()).collect(), listed: Mutex::default() }
    }

    /// `item` as a `K`, from the last read or by decoding it.
    pub(crate) fn get<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        item: &Item,
    ) -> Result<Arc<K>, Undecodable> {
        let slot = &self.slots[FixedState::default().hash_one(item.key()) as usize % SLOTS];
        if let Some(found) = lock(slot).iter().flatten().find_map(|decoded| decoded.of(item)) {
            return Ok(found);
        }
        let decoded = Arc::new(item.decode()?);
        let new = Decoded { item: item.clone(), object: Arc::<K>::clone(&decoded) };
        let mut slot = lock(slot);
        slot[1] = slot[0].replace(new);
        Ok(decoded)
    }

    /// All of the items. A list that is too long to be kept is decoded each time.
    pub(crate) fn list<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        items: &[Item],
    ) -> Result<Vec<Arc<K>>, Undecodable> {
        if items.len() > LISTED {
            return items.iter().map(|item| item.decode().map(Arc::new)).collect();
        }
        let mut listed = lock(&self.listed);
        let found: Vec<Option<Arc<K>>> = items.iter().map(|item| listed.find(item)).collect();
        drop(listed);
        let mut new = Vec::new();
        let decode = |(item, found): (&Item, Option<Arc<K>>)| -> Result<Arc<K>, Undecodable> {
            if let Some(found) = found {
                return Ok(found);
            }
            let decoded = self.get::<K>(item)?;
            new.push(Decoded { item: item.clone(), object: Arc::<K>::clone(&decoded) });
            Ok(decoded)
        };
        let objects = items.iter().zip(found).map(decode).collect();
        let mut listed = lock(&self.listed);
        new.into_iter().for_each(|decoded| listed.add(decoded));
        objects
    }
}

impl Decoded {
    fn of<K: Send + Sync + 'static>(&self, item: &Item) -> Option<Arc<K>> {
        self.item.is_same(item).then(|| Arc::clone(&self.object).downcast().ok()).flatten()
    }
}

impl Listed {
    fn find<K: Send + Sync + 'static>(&mut self, item: &Item) -> Option<Arc<K>> {
        if let Some(found) = self.recent.get(item.key()).and_then(|decoded| decoded.of(item)) {
            return Some(found);
        }
        let decoded = self.earlier.remove(item.key())?;
        let found = decoded.of(item)?;
        self.add(decoded);
        Some(found)
    }

    fn add(&mut self, decoded: Decoded) {
        if self.recent.len() >= LISTED {
            self.earlier = mem::take(&mut self.recent);
        }
        self.recent.insert(decoded.item.key().clone(), decoded);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Memo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Memo")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::item::tests::item;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn a_list_is_decoded_once_until_its_objects_change() {
        let memo = Memo::new();
        let mut items: Vec<Item> = (0..2000).map(|n| item(&format!("{n}:u@1"))).collect();
        let first = memo.list::<ConfigMap>(&items).unwrap();
        items[7] = item("7:u@2");
        let second = memo.list::<ConfigMap>(&items).unwrap();
        let changed = (0..2000).filter(|n| !Arc::ptr_eq(&first[*n], &second[*n]));
        assert_eq!(changed.collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn a_memo_forgets_what_was_not_read_for_long() {
        let memo = Memo::new();
        for n in 0..10 * LISTED {
            memo.list::<ConfigMap>(&[item(&format!("{n}:u@1"))]).unwrap();
        }
        let listed = lock(&memo.listed);
        assert!(listed.recent.len() + listed.earlier.len() <= 2 * LISTED);
    }

    #[test]
    fn an_object_before_and_after_its_change_is_decoded_once() {
        let memo = Memo::new();
        let (before, after) = (item("web:u@1"), item("web:u@2"));
        let read = || [&before, &after].map(|item| memo.get::<ConfigMap>(item).unwrap());
        let (first, second) = (read(), read());
        assert!(first.iter().zip(&second).all(|(first, second)| Arc::ptr_eq(first, second)));
    }
}
