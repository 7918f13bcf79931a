//! The rules of a pod about the labels and names of nodes.

use super::{facts::PlacementRules, node::NodeFacts};
use crate::placement::matches_term;
use k8s_openapi::api::core::v1::NodeSelectorTerm;
use std::collections::BTreeSet;

/// Whether the node has the labels that the pod requires.
pub(super) fn matches(rules: &PlacementRules, node: &NodeFacts) -> bool {
    let has_labels = rules.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    has_labels && rules.node_terms.as_ref().is_none_or(|terms| matches_any(terms, node))
}

/// Whether one of the terms matches.
pub(super) fn matches_any(terms: &[NodeSelectorTerm], node: &NodeFacts) -> bool {
    terms.iter().any(|term| matches_term(term, &node.name, &node.labels))
}

/// The sum of the weights of preferred terms that match.
pub(super) fn preference(rules: &PlacementRules, node: &NodeFacts) -> i64 {
    let terms =
        rules.preferred_nodes.iter().filter(|term| matches_term(&term.preference, &node.name, &node.labels));
    terms.map(|term| i64::from(term.weight)).sum()
}

/// The only nodes that can match, if the rules name them; `DaemonSet` pods name one.
pub(super) fn named_nodes(rules: &PlacementRules) -> Option<BTreeSet<&str>> {
    let terms = rules.node_terms.as_ref().filter(|terms| !terms.is_empty())?;
    let mut all = BTreeSet::new();
    for term in terms {
        let names = term.match_fields.iter().flatten();
        let mut names = names
            .filter(|it| it.key == "metadata.name" && it.operator == "In")
            .map(|it| it.values.iter().flatten().map(String::as_str).collect::<BTreeSet<&str>>());
        // Terms are alternatives: one without names allows every node.
        let first = names.next()?;
        all.extend(names.fold(first, |both, more| both.intersection(&more).copied().collect()));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{facts::tests::pod, node::tests::node};
    use serde_json::json;

    #[test]
    fn required_rules_select_nodes() {
        let labels = json!({"zone": "a", "disks": "4"});
        let node = node("node-1", &labels, &json!({}));
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (terms, expected) in [
            (json!([expression("zone", "In", &["a", "b"])]), true),
            (json!([expression("zone", "In", &["b"])]), false),
            (json!([expression("zone", "In", &["b"]), expression("zone", "Exists", &[])]), true),
            (json!([expression("zone", "NotIn", &["b"])]), true),
            (json!([expression("arch", "NotIn", &["b"])]), true),
            (json!([expression("arch", "DoesNotExist", &[])]), true),
            (json!([expression("disks", "Gt", &["3"])]), true),
            (json!([expression("disks", "Lt", &["4"])]), false),
            (json!([expression("zone", "Gt", &["3"])]), false),
            (json!([{}]), false),
            (
                json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]),
                true,
            ),
            (
                json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]),
                false,
            ),
        ] {
            let spec = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": terms}}}});
            assert_eq!(matches(&pod("p", &json!({}), &spec).rules, &node), expected, "{terms}");
        }
        for (selector, expected) in [(json!({"zone": "a"}), true), (json!({"zone": "b"}), false)] {
            let spec = json!({"nodeSelector": selector});
            assert_eq!(matches(&pod("p", &json!({}), &spec).rules, &node), expected, "{selector}");
        }
    }

    #[test]
    fn rules_may_name_the_only_possible_nodes() {
        let named = |names: &[&str]| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]});
        let any = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]});
        for (terms, expected) in [
            (json!([named(&["a"]), named(&["b"])]), Some(vec!["a", "b"])),
            (json!([named(&["a"]), any]), None),
            (json!([]), None),
        ] {
            let spec = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": terms}}}});
            let pod = pod("p", &json!({}), &spec);
            assert_eq!(named_nodes(&pod.rules).map(|it| it.into_iter().collect()), expected, "{terms}");
        }
    }
}
