//! Work shared by all watchers of a change: labels and fields for their selectors, and the event's bytes in
//! each form.

use crate::{
    call::Call,
    negotiate::{Form, Shape},
    refusal::Refusal,
    served::Served,
    stored::{Parsed, Stored},
};
use bytes::Bytes;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};
use store::{Change, Revision};
use tokio::sync::OnceCell;

/// Limit on the changes kept: those that watchers are sending now. A slower watcher encodes for itself.
const MAX_CHANGES: usize = 256;
/// Limit on the bytes of objects and events that they hold together.
const MAX_BYTES: usize = 8 << 20;

/// The latest changes that watchers sent.
#[derive(Debug, Default)]
pub(crate) struct SharedChanges(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    changes: HashMap<(Revision, Bytes), Arc<SharedChange>>,
    /// Oldest first.
    order: VecDeque<(Revision, Bytes)>,
    bytes: usize,
}

/// The change of one object by one commit.
#[derive(Debug)]
pub(super) struct SharedChange {
    pub(super) before: Option<Parsed>,
    pub(super) after: Option<Parsed>,
    events: Mutex<Vec<(EventForm, Arc<OnceCell<Bytes>>)>>,
}

/// What the bytes of an event depend on, beside the change.
#[derive(Clone, Debug)]
pub(super) struct EventForm {
    kind: &'static str,
    form: Form,
    with_columns: bool,
    include_object: Option<String>,
    served: Arc<Served>,
    /// Set for tables only: they show ages in seconds.
    second: Option<i64>,
}

impl PartialEq for EventForm {
    fn eq(&self, other: &EventForm) -> bool {
        (self.kind, self.form, self.with_columns, self.second)
            == (other.kind, other.form, other.with_columns, other.second)
            && Arc::ptr_eq(&self.served, &other.served)
            && self.include_object == other.include_object
    }
}

impl EventForm {
    pub(super) fn of(call: &Call, kind: &'static str, with_columns: bool) -> EventForm {
        let is_table = matches!(call.form.shape, Shape::Table(_));
        EventForm {
            kind,
            form: call.form,
            with_columns: is_table && with_columns,
            include_object: call.options.rest.get("includeObject").filter(|_| is_table).cloned(),
            served: Arc::clone(&call.served),
            second: is_table.then(|| call.inner.world.wall().as_second()),
        }
    }
}

impl SharedChanges {
    /// The shared change for a commit.
    pub(super) fn of(&self, revision: Revision, change: &Change) -> Arc<SharedChange> {
        let key = (revision, change.key.clone());
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = recent.changes.get(&key) {
            return Arc::clone(known);
        }
        let parsed = |json: &Bytes| Parsed::new(Stored::new(json.clone(), revision));
        let shared = Arc::new(SharedChange {
            before: change.previous.as_ref().map(|previous| parsed(&previous.value)),
            after: change.value.as_ref().map(parsed),
            events: Mutex::default(),
        });
        recent.order.push_back(key.clone());
        recent.changes.insert(key, Arc::clone(&shared));
        recent.bytes += shared.size();
        recent.make_room();
        shared
    }
}

impl Recent {
    fn make_room(&mut self) {
        while self.order.len() > MAX_CHANGES || (self.bytes > MAX_BYTES && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some(gone) = self.changes.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(gone.size());
            }
        }
    }
}

impl SharedChange {
    /// Estimate: the objects, their parsed forms, and events of about their size in a few forms.
    fn size(&self) -> usize {
        const TIMES: usize = 8;
        let size = |parsed: &Option<Parsed>| parsed.as_ref().map_or(0, |parsed| parsed.stored.json.len());
        TIMES * (size(&self.before) + size(&self.after))
    }

    /// The bytes of an event: shared if another watcher has encoded them, else made by `write`.
    pub(super) async fn event(
        &self,
        form: EventForm,
        write: impl Future<Output = Result<Bytes, Refusal>>,
    ) -> Result<Bytes, Refusal> {
        let cell = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            match events.iter().find(|(known, _)| *known == form) {
                Some((_, cell)) => Arc::clone(cell),
                None => {
                    let cell = Arc::new(OnceCell::new());
                    events.retain(|(known, _)| known.second.is_none() || known.second == form.second);
                    events.push((form, Arc::clone(&cell)));
                    cell
                }
            }
        };
        cell.get_or_try_init(|| write).await.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, size: usize) -> Change {
        Change { key: key.to_owned().into(), value: Some(vec![b' '; size].into()), previous: None }
    }

    #[test]
    fn watchers_share_a_change_and_the_oldest_changes_are_dropped() {
        let shared = SharedChanges::default();
        let first = shared.of(Revision(1), &change("a", 10));
        assert!(Arc::ptr_eq(&first, &shared.of(Revision(1), &change("a", 10))));
        assert!(!Arc::ptr_eq(&first, &shared.of(Revision(1), &change("b", 10))));
        assert!(!Arc::ptr_eq(&first, &shared.of(Revision(2), &change("a", 10))));
        for revision in 3..1000 {
            shared.of(Revision(revision), &change("a", 10));
        }
        let recent = shared.0.lock().unwrap();
        assert_eq!((recent.order.len(), recent.changes.len()), (MAX_CHANGES, MAX_CHANGES));
        drop(recent);
        for revision in 1000..1100 {
            shared.of(Revision(revision), &change("a", 1 << 20));
        }
        let recent = shared.0.lock().unwrap();
        assert!(recent.bytes <= MAX_BYTES.max(8 << 20), "{}", recent.bytes);
        assert_eq!(recent.order.len(), 1);
    }
}
