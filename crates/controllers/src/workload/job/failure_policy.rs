//! What the pod failure policy of a Job says about a failed pod.

use k8s_openapi::api::{
    batch::v1::{PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule},
    core::v1::{ContainerStatus, Pod, PodStatus},
};
use kube::ResourceExt;

/// What follows from the failure of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PolicyVerdict {
    /// It counts towards the back-off limit.
    Count,
    Ignore,
    FailIndex,
    /// The Job fails, with this message.
    FailJob(String),
}

/// The first rule that matches decides; without one, the failure counts.
pub(super) fn judge(policy: Option<&PodFailurePolicy>, pod: &Pod) -> PolicyVerdict {
    let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
    let mut verdicts = rules.iter().enumerate().filter_map(|(place, rule)| {
        let matched = matching(rule, pod)?;
        match rule.action.as_str() {
            "Ignore" => Some(PolicyVerdict::Ignore),
            "FailIndex" => Some(PolicyVerdict::FailIndex),
            "Count" => Some(PolicyVerdict::Count),
            "FailJob" => {
                // Kubernetes: the text is in the condition of the Job.
                let message = format!("{matched} matching FailJob rule at index {place}");
                Some(PolicyVerdict::FailJob(message))
            }
            _ => None,
        }
    });
    verdicts.next().unwrap_or(PolicyVerdict::Count)
}

/// What a rule has found, in the words of Kubernetes.
fn matching(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let pod_name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    if let Some(required) = &rule.on_exit_codes {
        let (container, code) = failed_container(status, required)?;
        return Some(format!("Container {container} for pod {pod_name} failed with exit code {code}"));
    }
    let patterns = rule.on_pod_conditions.as_deref()?;
    let found = status.conditions.iter().flatten().find(|condition| {
        patterns.iter().any(|it| {
            condition.type_ == it.type_ && condition.status == *it.status.as_deref().unwrap_or("True")
        })
    })?;
    Some(format!("Pod {pod_name} has condition {}", found.type_))
}

/// The first container that has ended with an exit code of the rule. Zero never matches.
fn failed_container<'a>(
    status: &'a PodStatus,
    required: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a str, i32)> {
    let mut containers = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    let failed = |container: &'a ContainerStatus| {
        let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
        let is_named = required.container_name.as_ref().is_none_or(|name| *name == container.name);
        let is_listed = required.values.contains(&code);
        let is_wanted = match required.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        (is_named && code != 0 && is_wanted).then_some((container.name.as_str(), code))
    };
    containers.find_map(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ended(code: i32) -> Value {
        json!({"containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": {"exitCode": code}}}]})
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let disrupted = json!({"conditions": [{"type": "DisruptionTarget", "status": "True"}]});
        let codes = |action: &str, operator: &str, values: &[i32]| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let of_sidecar = json!({"action": "FailJob",
            "onExitCodes": {"containerName": "sidecar", "operator": "In", "values": [5]}});
        let on_disruption =
            |action: &str| json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]});
        let fail_job = |message: &str| PolicyVerdict::FailJob(message.to_owned());
        for (rules, status, expected) in [
            (json!([]), ended(5), PolicyVerdict::Count),
            (json!([codes("Ignore", "In", &[4])]), ended(5), PolicyVerdict::Count),
            (json!([codes("Ignore", "In", &[4, 5])]), ended(5), PolicyVerdict::Ignore),
            (json!([codes("Ignore", "NotIn", &[4])]), ended(0), PolicyVerdict::Count),
            (json!([codes("FailIndex", "NotIn", &[4])]), ended(5), PolicyVerdict::FailIndex),
            (
                json!([codes("Count", "In", &[5]), codes("Ignore", "In", &[5])]),
                ended(5),
                PolicyVerdict::Count,
            ),
            (json!([of_sidecar, codes("Ignore", "In", &[5])]), ended(5), PolicyVerdict::Ignore),
            (json!([on_disruption("Ignore")]), disrupted.clone(), PolicyVerdict::Ignore),
            (
                json!([codes("Ignore", "In", &[4]), codes("FailJob", "In", &[5])]),
                ended(5),
                fail_job(
                    "Container main for pod a/p failed with exit code 5 matching FailJob rule at index 1",
                ),
            ),
            (
                json!([on_disruption("FailJob")]),
                disrupted,
                fail_job("Pod a/p has condition DisruptionTarget matching FailJob rule at index 0"),
            ),
        ] {
            let policy = serde_json::from_value(json!({ "rules": rules })).unwrap();
            let pod = json!({"metadata": {"namespace": "a", "name": "p"}, "status": status});
            let pod = serde_json::from_value(pod).unwrap();
            assert_eq!(judge(Some(&policy), &pod), expected, "{rules}");
        }
        assert_eq!(judge(None, &Pod::default()), PolicyVerdict::Count);
    }
}
