//! What has happened to an object, by time: who wrote it, its events, its conditions.

use super::{
    story::{Evidence, conditions, label, time},
    writers,
};
use crate::events::last_seen;
use serde_json::Value;
use world::Timestamp;

/// More is not read by anyone; the latest are told.
const MAX_ENTRIES: usize = 40;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) time: Option<Timestamp>,
    pub(super) text: String,
}

/// The latest entries, and how many older ones were left out.
pub(super) fn entries(evidence: &Evidence) -> (Vec<Entry>, usize) {
    let subject = &evidence.subject;
    let metadata = &subject["metadata"];
    let mut entries = Vec::new();
    let mut push = |time: Option<Timestamp>, text: String| entries.push(Entry { time, text });
    push(time(&metadata["creationTimestamp"]), "created".to_owned());
    for entry in metadata["managedFields"].as_array().into_iter().flatten() {
        push(time(&entry["time"]), writers::words(entry));
    }
    for event in evidence.events_of(subject) {
        push(last_seen(event).and_then(|time| time.parse().ok()), event_words(event));
    }
    for object in &evidence.below {
        for event in evidence.events_of(object).filter(|event| event["type"] == "Warning") {
            let time = last_seen(event).and_then(|time| time.parse().ok());
            push(time, format!("{}: {}", label(object), event_words(event)));
        }
    }
    for condition in conditions(subject) {
        let reason =
            if condition.reason.is_empty() { String::new() } else { format!(" ({})", condition.reason) };
        push(condition.since, format!("condition {} became {}{reason}", condition.name, condition.status));
    }
    if let Some(deadline) = time(&metadata["deletionTimestamp"]) {
        // The timestamp is the end of the grace period.
        let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        let asked = Timestamp::from_second(deadline.as_second() - grace).unwrap_or(deadline);
        push(Some(asked), format!("deletion asked for, with {grace}s to shut down"));
    }
    entries.sort_by_key(|entry| entry.time);
    let left_out = entries.len().saturating_sub(MAX_ENTRIES);
    (entries.split_off(left_out), left_out)
}

/// `Warning FailedScheduling: 0/1 nodes are available (x3, default-scheduler)`
fn event_words(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let count = event["series"]["count"].as_i64().or_else(|| event["count"].as_i64()).unwrap_or(1);
    let source = [&event["reportingComponent"], &event["source"]["component"]];
    let source = source.into_iter().map(text).find(|source| !source.is_empty());
    let mut notes = Vec::new();
    if count > 1 {
        notes.push(format!("x{count}"));
    }
    notes.extend(source);
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    format!("{} {}: {}{notes}", text(&event["type"]), text(&event["reason"]), text(&event["message"]))
}
