//! Resources of a running pod's containers: during a resize, the larger of requested and allocated.

use super::super::pod_resources::{self, Amounts};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The pod with the resources of its containers that count for quota.
pub(super) fn counted(pod: &Value) -> Cow<'_, Value> {
    let status = &pod["status"];
    let has_allocated = |field: &str| {
        let mut statuses = status[field].as_array().into_iter().flatten();
        statuses.any(|it| it["resources"].is_object() || it["allocatedResources"].is_object())
    };
    if !has_allocated("containerStatuses") && !has_allocated("initContainerStatuses") {
        return Cow::Borrowed(pod);
    }
    let is_infeasible = is_infeasible(status);
    let mut counted = pod.clone();
    for (field, statuses) in
        [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")]
    {
        for container in counted["spec"][field].as_array_mut().into_iter().flatten() {
            let mut allocated = status[statuses].as_array().into_iter().flatten();
            let stays = field == "containers" || container["restartPolicy"] == "Always";
            let Some(allocated) = allocated.find(|it| it["name"] == container["name"]).filter(|_| stays)
            else {
                continue;
            };
            for which in ["requests", "limits"] {
                let mut most = pod_resources::amounts(&allocated["resources"], which);
                if which == "requests" {
                    raise(&mut most, pod_resources::amounts(allocated, "allocatedResources"));
                }
                // An infeasible resize does not count.
                if !is_infeasible {
                    raise(&mut most, pod_resources::amounts(&container["resources"], which));
                }
                container["resources"][which] = json!(most);
            }
        }
    }
    Cow::Owned(counted)
}

fn is_infeasible(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "PodResizePending" && it["reason"] == "Infeasible")
}

fn raise(to: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        match to.get_mut(&name) {
            Some(own) if *own >= amount => {}
            _ => drop(to.insert(name, amount)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_requested_and_allocated_counts() {
        let pod = |requested: &str, allocated: &str, reason: &str| {
            json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": requested}}}]}, "status": {
                "conditions": [{"type": "PodResizePending", "reason": reason}],
                "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": allocated}}}],
            }})
        };
        for (requested, allocated, reason, expected) in
            [("1", "2", "Deferred", "2"), ("2", "1", "Deferred", "2"), ("2", "1", "Infeasible", "1")]
        {
            let pod = pod(requested, allocated, reason);
            let counted = counted(&pod);
            assert_eq!(counted["spec"]["containers"][0]["resources"]["requests"]["cpu"], expected, "{pod}");
        }
    }
}
