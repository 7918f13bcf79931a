//! What is known about an object becomes its story. Pure.

use super::{
    deletion, history,
    history::Entry,
    trouble::{self, Trouble},
};
use crate::client::state::state;
use serde_json::Value;
use world::Timestamp;

/// What is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) subject: Value,
    /// The owner, its owner, and so on.
    pub(super) owners: Vec<Value>,
    /// Everything below, owners before what they own.
    pub(super) below: Vec<Value>,
    pub(super) events: Vec<Value>,
}

impl Evidence {
    /// The object and everything below it.
    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.subject).chain(&self.below)
    }

    pub(super) fn events_of(&self, object: &Value) -> impl Iterator<Item = &Value> {
        let uid = object["metadata"]["uid"].clone();
        self.events.iter().filter(move |event| event["involvedObject"]["uid"] == uid)
    }
}

/// The parts of the output, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Story {
    /// What is wrong, in one line.
    pub(super) why: String,
    /// `Deployment/web in default`
    pub(super) title: String,
    pub(super) state: String,
    pub(super) created: Option<Timestamp>,
    /// The owner, its owner, and so on.
    pub(super) owners: Vec<String>,
    pub(super) conditions: Vec<Condition>,
    /// What holds the deletion up; empty if it is not being deleted.
    pub(super) deletion: Vec<String>,
    /// By time.
    pub(super) history: Vec<Entry>,
    /// How many older entries of the history were left out.
    pub(super) left_out: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Option<Timestamp>,
    pub(super) is_bad: bool,
}

pub(super) fn story(evidence: &Evidence, now: Timestamp) -> Story {
    let subject = &evidence.subject;
    let deletion = deletion::holders(evidence, now);
    let (history, left_out) = history::entries(evidence);
    let place = subject["metadata"]["namespace"].as_str().map(|name| format!(" in {name}"));
    Story {
        why: why(evidence, &deletion, now),
        title: format!("{}{}", label(subject), place.unwrap_or_default()),
        state: state(subject),
        created: time(&subject["metadata"]["creationTimestamp"]),
        owners: evidence.owners.iter().map(label).collect(),
        conditions: conditions(subject),
        deletion,
        history,
        left_out,
    }
}

fn why(evidence: &Evidence, deletion: &[String], now: Timestamp) -> String {
    let subject = &evidence.subject;
    if let Some(first) = deletion.first() {
        return format!("{} is being deleted: {first}", name(subject));
    }
    match trouble::deepest(evidence, now) {
        Some(Trouble { object, text, .. }) => format!("{} {text}", name(object)),
        None => {
            let state = state(subject);
            let state = if state.is_empty() { String::new() } else { format!(" ({state})") };
            format!(
                "nothing is wrong with {}{state}, as far as conditions, events and what it owns tell",
                name(subject)
            )
        }
    }
}

pub(super) fn conditions(object: &Value) -> Vec<Condition> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let read = |condition: &Value| Condition {
        name: text(&condition["type"]),
        status: text(&condition["status"]),
        reason: text(&condition["reason"]),
        message: text(&condition["message"]),
        since: time(&condition["lastTransitionTime"]),
        is_bad: trouble::is_bad(condition),
    };
    conditions.map(read).collect()
}

/// `Deployment/web`
pub(super) fn label(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// `deployment web`
pub(super) fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]))
}

pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
