//! Whether the indexes that have succeeded are enough for the success policy of a Job.

use super::indexes::Indexes;
use k8s_openapi::api::batch::v1::{SuccessPolicy, SuccessPolicyRule};

/// The message of the first rule that is met.
pub(super) fn met(policy: &SuccessPolicy, completions: usize, succeeded: &Indexes) -> Option<String> {
    if succeeded.len() == 0 {
        return None;
    }
    let place = policy.rules.iter().position(|rule| is_met(rule, completions, succeeded))?;
    // Kubernetes: the text is in the condition of the Job.
    Some(format!("Matched rules at index {place}"))
}

fn is_met(rule: &SuccessPolicyRule, completions: usize, succeeded: &Indexes) -> bool {
    let is_enough = |count: usize| {
        let wanted = rule.succeeded_count.and_then(|wanted| usize::try_from(wanted).ok());
        wanted.is_some_and(|wanted| count >= wanted)
    };
    match &rule.succeeded_indexes {
        None => is_enough(succeeded.len()),
        Some(text) => {
            let wanted = Indexes::parse(text, completions);
            let found = wanted.shared(succeeded);
            wanted.len() > 0 && (found == wanted.len() || is_enough(found))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_rule_that_is_met_is_named() {
        for (rules, succeeded, expected) in [
            (json!([{"succeededIndexes": "0-2"}]), "0,1", ""),
            (json!([{"succeededIndexes": "0-2"}]), "0-2,7", "Matched rules at index 0"),
            (json!([{"succeededIndexes": "0-2", "succeededCount": 2}]), "1,2", "Matched rules at index 0"),
            (json!([{"succeededIndexes": "5"}, {"succeededCount": 3}]), "0-2", "Matched rules at index 1"),
            (json!([{"succeededCount": 3}]), "0,1", ""),
            (json!([{"succeededIndexes": "20"}]), "0-9", ""),
            (json!([{"succeededCount": 0}]), "", ""),
        ] {
            let policy = serde_json::from_value(json!({ "rules": rules })).unwrap();
            let message = met(&policy, 10, &Indexes::parse(succeeded, 10));
            assert_eq!(message.unwrap_or_default(), expected, "{rules} {succeeded}");
        }
    }
}
