//! What is asked a second time, because others have changed the object since.
//!
//! Kubernetes: once anybody outside has changed the object, all rules run once more, and of policies and webhooks
//! those that want it and were asked before the change.

use serde_json::Value;
use std::collections::BTreeSet;

/// The rounds of one write: there are never more than two.
#[derive(Debug, Default)]
pub(super) struct Reinvocation {
    pub(super) is_second: bool,
    /// Whether there is to be a second round.
    pub(super) is_wanted: bool,
    pub(super) policies: Invoked,
    pub(super) webhooks: Invoked,
}

/// Those of one sort who were asked.
#[derive(Debug, Default)]
pub(super) struct Invoked {
    /// What they left behind.
    left: Option<Value>,
    /// Invoked since the last change, and willing to be asked again.
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
    /// Begins a round with the object as it is now.
    pub(super) fn begin(&mut self, is_second: bool, object: &Value) {
        if is_second && self.left.as_ref() != Some(object) {
            self.ask_again();
        }
    }

    pub(super) fn is_due(&self, is_second: bool, who: &str) -> bool {
        !is_second || self.again.contains(who)
    }

    /// The object has changed: who was asked before that is asked again.
    pub(super) fn ask_again(&mut self) {
        self.again.append(&mut self.since_change);
    }

    pub(super) fn asked(&mut self, who: &str) {
        self.since_change.insert(who.to_owned());
    }

    pub(super) fn end(&mut self, object: &Value) {
        self.left = Some(object.clone());
    }
}
