//! The conditions of a definition: found by type, and set so that only a change of status is a transition.

use api::time::Time;
use serde_json::{Value, json};

pub const NAMES_ACCEPTED: &str = "NamesAccepted";
pub const ESTABLISHED: &str = "Established";
pub const TERMINATING: &str = "Terminating";
pub const NON_STRUCTURAL: &str = "NonStructuralSchema";
pub const API_APPROVED: &str = "KubernetesAPIApprovalPolicyConformant";

/// What a condition says, but for when it began to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub condition_type: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    pub fn new(
        condition_type: &'static str,
        status: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Condition { condition_type, status, reason, message: message.into() }
    }

    /// A delete has been asked for.
    pub fn deletion_pending() -> Self {
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        Self::new(TERMINATING, "True", "InstanceDeletionPending", message)
    }

    pub fn deletion_in_progress() -> Self {
        let message = "CustomResource deletion is in progress";
        Self::new(TERMINATING, "True", "InstanceDeletionInProgress", message)
    }

    pub fn deletion_failed(problem: &str) -> Self {
        let message = format!("could not issue all deletes: {problem}");
        Self::new(TERMINATING, "True", "InstanceDeletionFailed", message)
    }

    /// Objects with finalizers of their own keep it from going.
    pub fn deletion_unconfirmed(problem: &str) -> Self {
        let message = format!("could not confirm zero CustomResources remaining: {problem}");
        Self::new(TERMINATING, "True", "InstanceDeletionCheck", message)
    }

    pub fn deletion_completed() -> Self {
        Self::new(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
    }

    pub fn never_established() -> Self {
        Self::new(TERMINATING, "False", "NeverEstablished", "resource was never established")
    }

    fn is_said_by(&self, condition: &Value) -> bool {
        text(condition, "status") == self.status
            && text(condition, "reason") == self.reason
            && text(condition, "message") == self.message
    }
}

/// The condition of that type in a status.
pub fn find<'a>(status: &'a Value, condition_type: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().find(|it| text(it, "type") == condition_type)
}

pub fn is_true(status: &Value, condition_type: &str) -> bool {
    find(status, condition_type).is_some_and(|it| text(it, "status") == "True")
}

/// Says it in a status, behind what is said there already.
pub fn set(status: &mut Value, condition: &Condition, now: Time) {
    let conditions = list(status);
    let found = conditions.iter_mut().find(|it| text(it, "type") == condition.condition_type);
    let Some(found) = found else {
        conditions.push(json!({
            "type": condition.condition_type, "status": condition.status, "lastTransitionTime": now,
            "reason": condition.reason, "message": condition.message,
        }));
        return;
    };
    if text(found, "status") != condition.status || text(found, "lastTransitionTime").is_empty() {
        found["lastTransitionTime"] = json!(now);
    }
    found["status"] = condition.status.into();
    found["reason"] = condition.reason.into();
    found["message"] = condition.message.as_str().into();
}

/// The same, unless it is said already.
pub(super) fn set_if_new(status: &mut Value, condition: &Condition, now: Time) {
    let is_known = find(status, condition.condition_type).is_some_and(|it| condition.is_said_by(it));
    if !is_known {
        set(status, condition, now);
    }
}

pub(super) fn remove(status: &mut Value, condition_type: &str) {
    if find(status, condition_type).is_some() {
        list(status).retain(|it| text(it, "type") != condition_type);
    }
}

fn list(status: &mut Value) -> &mut Vec<Value> {
    if !status.is_object() {
        *status = json!({});
    }
    let conditions = &mut status["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    conditions.as_array_mut().expect("it has just been made a list")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
