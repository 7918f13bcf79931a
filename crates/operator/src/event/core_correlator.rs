//! Counts repeated core/v1 events, combines many similar ones, and limits those of each object: client-go's
//! correlator of core/v1 events.

use super::{
    NewEvent,
    correlator::{Budget, ObjectId, afford, make_room},
    writer::EventWrite,
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Kubernetes: so many messages for one reason; further ones are combined into one event.
const MESSAGES: usize = 10;
/// Kubernetes: messages count as similar for ten minutes.
const SIMILAR: Duration = Duration::from_secs(10 * 60);
/// Kubernetes keeps 4096 of each; the one that was used least recently is dropped.
const KEPT: usize = 4096;

/// What equal events have in common. Without a message: the event that combines many messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CoreKey {
    object: ObjectId,
    event_type: super::EventType,
    reason: String,
    message: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct CoreCorrelator {
    similar: BTreeMap<CoreKey, Similar>,
    counted: BTreeMap<CoreKey, Counted>,
    budgets: BTreeMap<ObjectId, Budget>,
}

/// The messages of one reason on one object.
#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Duration,
}

#[derive(Debug)]
struct Counted {
    name: Option<String>,
    first: Timestamp,
    count: i32,
    last: Duration,
}

impl CoreCorrelator {
    /// Adds an event, and returns what to write; `now` is the time since the correlator was made.
    pub(super) fn add(&mut self, now: Duration, mut event: NewEvent) -> Option<EventWrite<CoreKey>> {
        let object = ObjectId::of(&event.regarding);
        let (event_type, reason) = (event.event_type, event.reason.clone());
        let any_message = CoreKey { object: object.clone(), event_type, reason, message: None };
        let key = if self.is_one_of_many(now, &any_message, &event.note) {
            // Kubernetes: this text.
            event.note = format!("(combined from similar events): {}", event.note);
            any_message
        } else {
            CoreKey { message: Some(event.note.clone()), ..any_message }
        };
        if !self.counted.contains_key(&key) {
            make_room(&mut self.counted, KEPT, |counted| counted.last);
        }
        let fresh = Counted { name: None, first: event.at, count: 0, last: now };
        let counted = self.counted.entry(key.clone()).or_insert(fresh);
        counted.count = counted.count.saturating_add(1);
        counted.last = now;
        let (first, last) = (counted.first, event.at);
        let write =
            EventWrite { id: key, name: counted.name.clone(), event, count: counted.count, first, last };
        afford(&mut self.budgets, object, now).then_some(write)
    }

    /// The event was written under this name.
    pub(super) fn set_name(&mut self, key: &CoreKey, name: String) {
        if let Some(counted) = self.counted.get_mut(key) {
            counted.name = Some(name);
        }
    }

    fn is_one_of_many(&mut self, now: Duration, key: &CoreKey, message: &str) -> bool {
        if !self.similar.contains_key(key) {
            make_room(&mut self.similar, KEPT, |similar| similar.last);
        }
        let fresh = Similar { messages: BTreeSet::new(), last: now };
        let similar = self.similar.entry(key.clone()).or_insert(fresh);
        if now.saturating_sub(similar.last) > SIMILAR {
            similar.messages.clear();
        }
        similar.messages.insert(message.to_owned());
        similar.last = now;
        let is_many = similar.messages.len() >= MESSAGES;
        if is_many {
            similar.messages.pop_first();
        }
        is_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventType;
    use k8s_openapi::api::core::v1::ObjectReference;

    fn event(object: &str, message: &str) -> NewEvent {
        NewEvent {
            regarding: ObjectReference { name: Some(object.into()), ..ObjectReference::default() },
            event_type: EventType::Normal,
            reason: "Created".into(),
            action: "Create".into(),
            note: message.into(),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn equal_events_are_counted_and_others_are_not() {
        let mut correlator = CoreCorrelator::default();
        let first = correlator.add(Duration::ZERO, event("web", "pod a")).unwrap();
        assert_eq!((first.name.as_deref(), first.count), (None, 1));
        correlator.set_name(&first.id, "web.1".to_owned());
        let second = correlator.add(Duration::ZERO, event("web", "pod a")).unwrap();
        assert_eq!((second.name.as_deref(), second.count), (Some("web.1"), 2));
        let other = correlator.add(Duration::ZERO, event("web", "pod b")).unwrap();
        assert_eq!((other.name.as_deref(), other.count), (None, 1));
    }

    #[test]
    fn many_messages_for_one_reason_are_combined_for_ten_minutes() {
        let mut correlator = CoreCorrelator::default();
        let mut add = |minutes: u64, number: usize| {
            let now = Duration::from_secs(minutes * 60);
            correlator.add(now, event("web", &format!("pod {number}"))).unwrap().event.note
        };
        for number in 0..9 {
            assert_eq!(add(0, number), format!("pod {number}"));
        }
        assert_eq!(add(0, 9), "(combined from similar events): pod 9");
        assert_eq!(add(1, 10), "(combined from similar events): pod 10");
        assert_eq!(add(12, 11), "pod 11");
    }

    #[test]
    fn an_object_has_25_events_at_once_and_one_each_five_minutes() {
        let mut correlator = CoreCorrelator::default();
        let mut written = |minutes: u64, object: &str| {
            correlator.add(Duration::from_secs(minutes * 60), event(object, "again")).is_some()
        };
        assert_eq!((0..40).filter(|_| written(0, "web")).count(), 25);
        assert!(written(0, "other"));
        assert!(!written(4, "web"));
        assert!(written(5, "web"));
    }
}
