//! The objects that were decoded last, so that they need not be decoded again for the next read.

use crate::cache::Item;
use foldhash::fast::FixedState;
use std::{
    any::Any,
    fmt,
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
};

/// How many decoded objects are kept at most: enough for those that workers reconcile at a time, and
/// few beside the cache itself.
const SLOTS: usize = 256;

pub(crate) struct Memo(Box<[Mutex<Option<Decoded>>]>);

struct Decoded {
    item: Item,
    object: Arc<dyn Any + Send + Sync>,
}

impl Memo {
    pub(crate) fn new() -> Memo {
        Memo((0..SLOTS).map(|_| Mutex::new(None)).collect())
    }

    /// `item` as a `K`, from the last read or by `decode`.
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
        let object = Arc::<K>::clone(&decoded);
        *self.lock(number) = Some(Decoded { item: item.clone(), object });
        Ok(decoded)
    }

    fn find<K: Send + Sync + 'static>(&self, number: usize, item: &Item) -> Option<Arc<K>> {
        let slot = self.lock(number);
        let slot = slot.as_ref().filter(|slot| slot.item.is_same(item))?;
        Arc::clone(&slot.object).downcast().ok()
    }

    fn lock(&self, number: usize) -> std::sync::MutexGuard<'_, Option<Decoded>> {
        self.0[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Memo")
    }
}
