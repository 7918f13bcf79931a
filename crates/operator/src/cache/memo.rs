//! The objects that were decoded last, so that reading one again costs nothing.

use crate::cache::Item;
use foldhash::fast::FixedState;
use std::{
    any::Any,
    fmt,
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
};

/// Each slot may hold a decoded object: enough for the objects that workers have in hand, and few
/// enough that they do not count beside the cache.
const SLOTS: usize = 256;

pub(crate) struct Memo(Box<[Mutex<Option<Slot>>]>);

struct Slot {
    item: Item,
    decoded: Arc<dyn Any + Send + Sync>,
}

impl Memo {
    pub(crate) fn new() -> Memo {
        Memo((0..SLOTS).map(|_| Mutex::new(None)).collect())
    }

    /// `item` as a `K`, which `decode` makes if nobody has asked for it lately.
    pub(crate) fn get<K: Send + Sync + 'static, E>(
        &self,
        item: &Item,
        decode: impl FnOnce(&Item) -> Result<K, E>,
    ) -> Result<Arc<K>, E> {
        let number = FixedState::default().hash_one(item.key()) as usize % SLOTS;
        if let Some(found) = self.find(number, item) {
            return Ok(found);
        }
        let decoded = Arc::new(decode(item)?);
        let slot = Slot { item: item.clone(), decoded: Arc::<K>::clone(&decoded) };
        *self.lock(number) = Some(slot);
        Ok(decoded)
    }

    fn find<K: Send + Sync + 'static>(&self, number: usize, item: &Item) -> Option<Arc<K>> {
        let slot = self.lock(number);
        let slot = slot.as_ref().filter(|slot| slot.item.is_same(item))?;
        Arc::clone(&slot.decoded).downcast().ok()
    }

    fn lock(&self, number: usize) -> std::sync::MutexGuard<'_, Option<Slot>> {
        self.0[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Memo")
    }
}
