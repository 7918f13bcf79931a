//! Which containers are restarted: by the policy of the pod, of the container, and by its rules.

use super::slot::{RESTARTING_ALL, Role, Slot};
use k8s_openapi::{
    api::core::v1::{Container, ContainerRestartRule, ContainerState, ContainerStateTerminated, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};

const RESTART_ALL: &str = "RestartAllContainers";
/// Kubernetes: this text.
const REMOVED: &str = "The container is removed because RestartAllContainers in place";

/// Whether a container that has ended with this code is restarted.
pub(super) fn is_due(pod: &Pod, container: &Container, role: Role, code: i32) -> bool {
    match role {
        Role::Ephemeral => return false,
        Role::Sidecar => return true,
        Role::Init | Role::Regular => {}
    }
    let action = rule(container, code).map(|rule| rule.action.as_str());
    if let Some("Restart" | RESTART_ALL) = action {
        return true;
    }
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    match container.restart_policy.as_deref().or(of_pod) {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        // Kubernetes: init containers that have ended well are not run again.
        _ => role != Role::Init || code != 0,
    }
}

/// Whether it has ended, and stays so.
pub(super) fn is_done(pod: &Pod, slot: &Slot<'_>) -> bool {
    slot.ended().is_some_and(|end| !is_due(pod, slot.container, slot.role, end.exit_code))
}

/// Whether a container has ended in a way that a rule restarts all containers for.
pub(super) fn asks_for_all(slot: &Slot<'_>) -> bool {
    let rule = slot.ended().and_then(|end| rule(slot.container, end.exit_code));
    rule.is_some_and(|rule| rule.action == RESTART_ALL)
}

/// Restarts all containers if one of them has ended in a way that a rule says so for.
pub(super) fn restart_all(slots: &mut [Slot<'_>], now: jiff::Timestamp) {
    if !slots.iter().any(asks_for_all) {
        return;
    }
    for slot in slots.iter_mut().filter(|slot| slot.role != Role::Ephemeral && slot.has_run()) {
        if slot.is_running() {
            let terminated = ContainerStateTerminated {
                exit_code: 137,
                reason: Some(RESTARTING_ALL.to_owned()),
                message: Some(REMOVED.to_owned()),
                started_at: slot.running_since().map(Time),
                finished_at: Some(Time(super::whole_second(now))),
                container_id: slot.status.container_id.clone(),
                signal: None,
            };
            slot.status.state =
                Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
        }
        slot.retire_end();
        slot.wait(RESTARTING_ALL, Some(REMOVED.to_owned()));
    }
}

fn rule(container: &Container, code: i32) -> Option<&ContainerRestartRule> {
    container.restart_policy_rules.iter().flatten().find(|rule| {
        rule.exit_codes.as_ref().is_some_and(|codes| {
            let is_listed = codes.values.iter().flatten().any(|listed| *listed == code);
            match codes.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                _ => false,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_come_before_the_policy_of_the_container_and_that_before_the_pods() {
        let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
        for (pod_policy, own_policy, role, code, expected) in [
            ("Always", None, Role::Regular, 0, true),
            ("OnFailure", None, Role::Regular, 0, false),
            ("OnFailure", None, Role::Regular, 1, true),
            ("Never", None, Role::Regular, 1, false),
            ("Never", Some("OnFailure"), Role::Regular, 1, true),
            ("Always", Some("Never"), Role::Regular, 1, false),
            ("Always", Some("Never"), Role::Regular, 42, true),
            ("Always", None, Role::Init, 0, false),
            ("Always", None, Role::Init, 1, true),
            ("Never", None, Role::Init, 1, false),
            ("Never", Some("Always"), Role::Sidecar, 0, true),
            ("Always", None, Role::Ephemeral, 1, false),
        ] {
            let pod: Pod =
                serde_json::from_value(json!({"spec": {"restartPolicy": pod_policy, "containers": []}}))
                    .unwrap();
            let container: Container = serde_json::from_value(
                json!({"name": "c", "restartPolicy": own_policy, "restartPolicyRules": rules}),
            )
            .unwrap();
            let due = is_due(&pod, &container, role, code);
            assert_eq!(due, expected, "{pod_policy} {own_policy:?} {role:?} {code}");
        }
    }
}
