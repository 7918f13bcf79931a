//! Reinvocation of policies and webhooks whose object has changed since.
//!
//! Kubernetes: once a policy or webhook has changed the object, all plugins run once more, with those
//! policies and webhooks that want reinvocation and ran before the change.

use serde_json::Value;
use std::collections::BTreeSet;

/// The rounds of one request: at most two.
#[derive(Debug, Default)]
pub(super) struct Reinvocation {
    pub(super) is_second: bool,
    /// Whether a second round is needed.
    pub(super) is_wanted: bool,
    pub(super) policies: Invoked,
    pub(super) webhooks: Invoked,
}

/// The policies, or the webhooks, that ran.
#[derive(Debug, Default)]
pub(super) struct Invoked {
    /// The object after the first round.
    after_first: Option<Value>,
    /// Ran since the last change, with reinvocationPolicy IfNeeded.
    since_change: BTreeSet<String>,
    again: BTreeSet<String>,
}

impl Reinvocation {
    pub(super) fn begin_second(&mut self) {
        self.is_second = true;
        self.is_wanted = false;
    }
}

impl Invoked {
    /// Begins a round with the current object.
    pub(super) fn begin(&mut self, is_second: bool, object: &Value) {
        if is_second && self.after_first.as_ref() != Some(object) {
            self.reinvoke_earlier();
        }
    }

    pub(super) fn is_due(&self, is_second: bool, id: &str) -> bool {
        !is_second || self.again.contains(id)
    }

    /// The object has changed: those that ran before are reinvoked.
    pub(super) fn reinvoke_earlier(&mut self) {
        self.again.append(&mut self.since_change);
    }

    pub(super) fn mark_invoked(&mut self, id: &str) {
        self.since_change.insert(id.to_owned());
    }

    pub(super) fn end(&mut self, object: &Value) {
        self.after_first = Some(object.clone());
    }
}
