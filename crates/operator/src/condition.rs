//! Sets the conditions of an object, with correct transition times.

mod schema;

pub use schema::schema;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;

/// The `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It could not be determined.
    Unknown,
}

/// A condition to set, for one generation of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    condition: &'static str,
    status: ConditionStatus,
    reason: String,
    message: String,
    generation: Option<i64>,
}

impl ConditionStatus {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> ConditionStatus {
        if holds { ConditionStatus::True } else { ConditionStatus::False }
    }
}

impl Report {
    /// `reason` is one CamelCase word for machines, `message` a sentence for people.
    pub fn new(
        condition: &'static str,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Report {
        Report {
            condition,
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            generation: None,
        }
    }

    /// Sets the observedGeneration: that of the object on which the report is based.
    #[must_use]
    pub fn of(self, object: &impl Resource) -> Report {
        Report { generation: object.meta().generation, ..self }
    }
}

/// Sets the condition, and returns whether anything changed.
///
/// The lastTransitionTime changes only with the status. The order of the conditions stays; a new one comes
/// last. A report on an older generation than the present one is ignored.
///
/// ```
/// use operator::condition::{self, Report};
///
/// let mut conditions = Vec::new();
/// let noon = "2026-01-01T12:00:00Z".parse()?;
/// assert!(condition::set(&mut conditions, Report::new("Ready", true, "AllUp", "3 of 3 are up"), noon));
/// assert!(condition::is_true(&conditions, "Ready"));
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn set(conditions: &mut Vec<Condition>, report: Report, now: Timestamp) -> bool {
    let new = Condition {
        type_: report.condition.into(),
        status: report.status.as_str().into(),
        reason: report.reason,
        message: report.message,
        observed_generation: report.generation,
        last_transition_time: Time(whole_second(now)),
    };
    let Some(present) = conditions.iter_mut().find(|present| present.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if new.observed_generation.is_some() && new.observed_generation < present.observed_generation {
        return false;
    }
    let last_transition_time = match present.status == new.status {
        true => present.last_transition_time.clone(),
        false => new.last_transition_time.clone(),
    };
    let new = Condition { last_transition_time, ..new };
    let is_changed = *present != new;
    *present = new;
    is_changed
}

/// Removes the condition, and returns whether there was one.
pub fn remove(conditions: &mut Vec<Condition>, condition: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|present| present.type_ != condition);
    conditions.len() != before
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], condition: &str) -> Option<&'a Condition> {
    conditions.iter().find(|present| present.type_ == condition)
}

/// Whether the condition of this type is there and `True`.
pub fn is_true(conditions: &[Condition], condition: &str) -> bool {
    find(conditions, condition).is_some_and(|present| present.status == ConditionStatus::True.as_str())
}

/// Whether the condition is true for the current generation of the object.
pub fn is_true_now(conditions: &[Condition], condition: &str, object: &impl Resource) -> bool {
    find(conditions, condition).is_some_and(|present| {
        present.status == ConditionStatus::True.as_str()
            && present.observed_generation >= object.meta().generation
    })
}

/// On the wire times have whole seconds: a condition must equal itself when it is read back.
fn whole_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 500_000_000).unwrap()
    }

    fn show(conditions: &[Condition]) -> String {
        let line = |c: &Condition| {
            let generation = c.observed_generation.unwrap_or_default();
            let second = c.last_transition_time.0.as_second();
            format!("{}={} {} {} g{generation} @{second}", c.type_, c.status, c.reason, c.message)
        };
        conditions.iter().map(line).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn transition_times_change_only_with_the_status() {
        let report = |condition, status: ConditionStatus, reason: &str, message: &str, generation| Report {
            generation: Some(generation),
            ..Report::new(condition, status, reason, message)
        };
        use ConditionStatus::{False, True, Unknown};
        let story = [
            (report("Ready", False, "Starting", "0/1", 1), true, "Ready=False Starting 0/1 g1 @1"),
            (report("Ready", False, "Starting", "0/1", 1), false, "Ready=False Starting 0/1 g1 @1"),
            (report("Ready", False, "Slow", "0/1", 1), true, "Ready=False Slow 0/1 g1 @1"),
            (report("Ready", False, "Slow", "0/2", 2), true, "Ready=False Slow 0/2 g2 @1"),
            (report("Ready", True, "Late", "", 1), false, "Ready=False Slow 0/2 g2 @1"),
            (report("Ready", True, "Up", "2/2", 2), true, "Ready=True Up 2/2 g2 @6"),
            (report("Ready", Unknown, "Lost", "", 2), true, "Ready=Unknown Lost  g2 @7"),
            (report("Old", True, "X", "", 2), true, "Ready=Unknown Lost  g2 @7; Old=True X  g2 @8"),
            (report("Ready", True, "Up", "", 2), true, "Ready=True Up  g2 @9; Old=True X  g2 @8"),
        ];
        let mut conditions = Vec::new();
        for (second, (new, is_changed, expected)) in (1..).zip(story) {
            assert_eq!(set(&mut conditions, new, at(second)), is_changed, "{expected}");
            assert_eq!(show(&conditions), expected);
        }
        assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
        assert_eq!(show(&conditions), "Old=True X  g2 @8");
    }

    #[test]
    fn a_condition_of_an_earlier_generation_is_not_true_now() {
        let mut object = k8s_openapi::api::core::v1::ConfigMap::default();
        object.metadata.generation = Some(3);
        let mut conditions = Vec::new();
        set(&mut conditions, Report::new("Ready", true, "Up", "").of(&object), at(1));
        assert!(is_true_now(&conditions, "Ready", &object));
        object.metadata.generation = Some(4);
        assert!(is_true(&conditions, "Ready") && !is_true_now(&conditions, "Ready", &object));
        assert!(!is_true(&conditions, "Other"));
    }
}
