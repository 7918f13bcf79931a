//! The conditions of a namespace that is being deleted.

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::NamespaceCondition, apimachinery::pkg::apis::meta::v1::Time};
use std::collections::BTreeMap;

/// What a pass over the content of a namespace has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) discovery_failure: Option<String>,
    pub(super) content_failures: Vec<String>,
    /// How many objects there still are, by `plural.group`.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects wait for each finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
}

/// The type, reason and message of a condition that reports nothing.
// Kubernetes: kubectl describe shows these texts.
const FINE: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// The conditions after the pass: those of other types stay, as does the order.
pub(super) fn conditions(
    findings: &Findings,
    mut conditions: Vec<NamespaceCondition>,
    now: Timestamp,
) -> Vec<NamespaceCondition> {
    for (condition_type, reason, message) in FINE {
        let (status, reason, message) = match problem(condition_type, findings) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let (status, reason, message) = (status.to_owned(), Some(reason.to_owned()), Some(message));
        match conditions.iter_mut().find(|condition| condition.type_ == condition_type) {
            None => conditions.push(NamespaceCondition {
                type_: condition_type.to_owned(),
                status,
                reason,
                message,
                last_transition_time: Some(Time(now)),
            }),
            Some(condition) => {
                if condition.status != status {
                    condition.last_transition_time = Some(Time(now));
                }
                (condition.status, condition.reason, condition.message) = (status, reason, message);
            }
        }
    }
    conditions
}

fn problem(condition_type: &str, findings: &Findings) -> Option<(&'static str, String)> {
    let listed = |counts: &BTreeMap<String, usize>, text: &dyn Fn(&str, usize) -> String| {
        let mut texts: Vec<String> = counts.iter().map(|(name, count)| text(name, *count)).collect();
        texts.sort();
        texts.join(", ")
    };
    match condition_type {
        "NamespaceDeletionDiscoveryFailure" => {
            findings.discovery_failure.clone().map(|message| ("DiscoveryFailed", message))
        }
        "NamespaceDeletionContentFailure" if !findings.content_failures.is_empty() => {
            let mut failures = findings.content_failures.clone();
            failures.sort();
            let count = failures.len();
            let failures = failures.join(", ");
            let message = format!("Failed to delete all resource types, {count} remaining: {failures}");
            Some(("ContentDeletionFailed", message))
        }
        "NamespaceContentRemaining" if !findings.remaining.is_empty() => {
            let remaining =
                listed(&findings.remaining, &|name, count| format!("{name} has {count} resource instances"));
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {remaining}")))
        }
        "NamespaceFinalizersRemaining" if !findings.finalizers.is_empty() => {
            let remaining =
                listed(&findings.finalizers, &|name, count| format!("{name} in {count} resource instances"));
            let message = format!("Some content in the namespace has finalizers remaining: {remaining}");
            Some(("SomeFinalizersRemain", message))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(conditions: &[NamespaceCondition]) -> Vec<String> {
        let text = |it: &NamespaceCondition| {
            let (reason, message) =
                (it.reason.clone().unwrap_or_default(), it.message.clone().unwrap_or_default());
            let at = it.last_transition_time.as_ref().map_or(0, |time| time.0.as_second());
            format!("{} {} {at} {reason}: {message}", it.type_, it.status)
        };
        conditions.iter().map(text).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_empty_namespace_has_five_conditions_that_are_false() {
        let found = text(&conditions(&Findings::default(), Vec::new(), at(7)));
        assert_eq!(
            found,
            [
                "NamespaceDeletionDiscoveryFailure False 7 ResourcesDiscovered: All resources successfully discovered",
                "NamespaceDeletionGroupVersionParsingFailure False 7 ParsedGroupVersions: All legacy kube types successfully parsed",
                "NamespaceDeletionContentFailure False 7 ContentDeleted: All content successfully deleted, may be waiting on finalization",
                "NamespaceContentRemaining False 7 ContentRemoved: All content successfully removed",
                "NamespaceFinalizersRemaining False 7 ContentHasNoFinalizers: All content-preserving finalizers finished",
            ]
        );
    }

    #[test]
    fn findings_become_conditions_and_times_change_with_the_status_only() {
        let findings = Findings {
            discovery_failure: Some("no answer".to_owned()),
            content_failures: vec!["b".to_owned(), "a".to_owned()],
            remaining: BTreeMap::from([("pods.".to_owned(), 2), ("carts.shop.io".to_owned(), 1)]),
            finalizers: BTreeMap::from([("shop.io/wait".to_owned(), 3)]),
        };
        let other =
            NamespaceCondition { type_: "Mine".to_owned(), status: "True".to_owned(), ..Default::default() };
        let first = conditions(&findings, vec![other], at(7));
        assert_eq!(
            text(&first),
            [
                "Mine True 0 : ",
                "NamespaceDeletionDiscoveryFailure True 7 DiscoveryFailed: no answer",
                "NamespaceDeletionGroupVersionParsingFailure False 7 ParsedGroupVersions: All legacy kube types successfully parsed",
                "NamespaceDeletionContentFailure True 7 ContentDeletionFailed: Failed to delete all resource types, 2 remaining: a, b",
                "NamespaceContentRemaining True 7 SomeResourcesRemain: Some resources are remaining: carts.shop.io has 1 resource instances, pods. has 2 resource instances",
                "NamespaceFinalizersRemaining True 7 SomeFinalizersRemain: Some content in the namespace has finalizers remaining: shop.io/wait in 3 resource instances",
            ]
        );
        let fewer = Findings { remaining: BTreeMap::from([("pods.".to_owned(), 1)]), ..Findings::default() };
        let second = text(&conditions(&fewer, first, at(9)));
        assert_eq!(
            second[1],
            "NamespaceDeletionDiscoveryFailure False 9 ResourcesDiscovered: All resources successfully discovered"
        );
        assert_eq!(
            second[4],
            "NamespaceContentRemaining True 7 SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances"
        );
    }
}
