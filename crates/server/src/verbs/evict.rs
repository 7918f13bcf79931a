//! `pods/eviction`: a delete that a PodDisruptionBudget may reject.

use super::delete::{DeleteOptions, Deleted, Origin, delete_one};
use crate::{
    admission,
    answer::{self, Body},
    call::Call,
    convert::in_request_version,
    input::{self, ExpectedKind},
    lookup,
    refusal::Refusal,
    stored::Stored,
    write::{self, ByServer, Change, Changed, Checked, KUBE_APISERVER, Next, OwnPart},
};
use api::{kind::GroupResource, label_selector::LabelSelector, object, status::Cause};
use bytes::Bytes;
use http::Response;
use kinds::definition::condition::{self, Condition};
use serde::Deserialize;
use serde_json::{Value, json};

const BUDGETS: (&str, &str, &str) = ("policy", "v1", "poddisruptionbudgets");
/// Kubernetes: limit on evictions in `status.disruptedPods`.
const MAX_DISRUPTED: usize = 2000;
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub(super) async fn evict(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let types = call.types();
    let (of, _) = types.kind("policy", "v1", "Eviction").ok_or_else(Refusal::not_served)?;
    // Kubernetes: policy/v1beta1 is still accepted.
    let is_old = schema::decode::type_meta(&body).is_ok_and(|given| given.api_version == "policy/v1beta1");
    let version = if is_old { "v1beta1" } else { "v1" };
    let wanted = ExpectedKind { types, of, group: "policy", version, kind: "Eviction" };
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let decoded = wanted.decode(&body, encoding, call.options.validation)?;
    decoded.warnings.into_iter().for_each(|warning| call.warn(warning));
    let eviction = decoded.value;
    let named = |eviction: &Value| match object::name(eviction) == call.target.name {
        true => Ok(()),
        false => Err(Refusal::bad_request("name in URL does not match name in Eviction object")),
    };
    let eviction = admission::subresource(call, eviction, named).await?;
    let mut options = DeleteOptions::of(&eviction["deleteOptions"]);
    let mut plain = call.for_parent();
    if options.is_dry_run() {
        plain.options.dry_run = vec!["All".to_owned()];
    }
    let pod = in_request_version(&plain, &lookup::find(&plain, &plain.target.name).await?).await?;
    if !is_exempt_from_budgets(&pod) {
        take_disruption(&plain, &pod).await?;
    }
    mark_disruption_target(&plain, &mut options).await?;
    if let Deleted::Absent = delete_one(&plain, &options, Origin::Eviction).await? {
        return Err(plain.not_found(&plain.target.name));
    }
    Ok(answer::done(call))
}

/// Whether a pod has finished or not started: its eviction disrupts nothing.
fn is_exempt_from_budgets(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_deleting(pod)
}

/// Adds the condition DisruptionTarget to the pod.
async fn mark_disruption_target(call: &Call, options: &mut DeleteOptions) -> Result<(), Refusal> {
    let changed = write::change(call, &mut MarkDisruptionTarget { options }).await?;
    if let Changed::Written(stored) = &changed
        && options.resource_version.is_some()
    {
        // The precondition holds for our own change, too.
        options.resource_version = Some(stored.revision.to_string());
    }
    changed.stored(call).map(drop)
}

struct MarkDisruptionTarget<'a> {
    options: &'a DeleteOptions,
}

impl Change for MarkDisruptionTarget<'_> {
    async fn next(&mut self, call: &Call, _: &Stored, live: Value) -> Result<Next, Refusal> {
        super::delete::check_preconditions(call, self.options, &live)?;
        if call.options.is_dry_run() {
            return Ok(Next::Keep);
        }
        let before = condition_of(&live, "DisruptionTarget").filter(|before| before["status"] == "True");
        let since = before.map(|before| before["lastTransitionTime"].clone());
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null,
            "lastTransitionTime": since.unwrap_or_else(|| write::now(call).to_string().into()),
        });
        // A second eviction keeps the condition and its time.
        if before == Some(&condition) {
            return Ok(Next::Keep);
        }
        let mut pod = live.clone();
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let others = conditions.into_iter().filter(|one| one["type"] != "DisruptionTarget");
        pod["status"]["conditions"] = others.chain([condition]).collect();
        Ok(Next::Write(Checked::by_server(OwnPart::Status, &live, pod)))
    }
}

/// Takes one disruption from the pod's budget, if it has one.
async fn take_disruption(call: &Call, pod: &Value) -> Result<(), Refusal> {
    let mut budgets = lookup::objects(&call.inner, BUDGETS, &call.target.namespace).await?;
    budgets.retain(|budget| covers(budget, pod));
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [budget] => budget,
        _ => {
            return Err(Refusal::unclassified(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let is_ready = condition_of(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    let is_lenient = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    if !is_ready && (is_lenient || (healthy >= desired && desired > 0)) {
        return Ok(());
    }
    let write = ByServer {
        resource: BUDGETS,
        namespace: &call.target.namespace,
        name: object::name(budget),
        subresource: "status",
        field_manager: KUBE_APISERVER,
    };
    let Some(mut status_call) = write.call(&call.inner) else { return Ok(()) };
    status_call.options.dry_run = call.options.dry_run.clone();
    let pod = &call.target.name;
    match write::change(&status_call, &mut Disruption { pod }).await? {
        Changed::Lost => {
            let name = object::name(budget);
            let problem = format!("couldn't update PodDisruptionBudget {name:?} due to conflicts");
            Err(Refusal::timeout(&problem, 10))
        }
        _ => Ok(()),
    }
}

/// Takes one disruption from a budget for a pod.
struct Disruption<'a> {
    pod: &'a str,
}

impl Change for Disruption<'_> {
    async fn next(&mut self, call: &Call, _: &Stored, before: Value) -> Result<Next, Refusal> {
        check(&before)?;
        if call.options.is_dry_run() {
            return Ok(Next::Keep);
        }
        let mut budget = before.clone();
        let left = count(&budget, "disruptionsAllowed") - 1;
        budget["status"]["disruptionsAllowed"] = left.into();
        budget["status"]["disruptedPods"][self.pod] = write::now(call).to_string().into();
        if left == 0 {
            let observed = count(&budget, "observedGeneration");
            let exhausted = Condition::new("DisruptionAllowed", "False", "InsufficientPods", "");
            condition::set(&mut budget["status"], &exhausted, write::now(call));
            let conditions = budget["status"]["conditions"].as_array_mut().into_iter().flatten();
            for condition in conditions.filter(|one| one["type"] == "DisruptionAllowed") {
                condition["observedGeneration"] = observed.into();
            }
        }
        let next = write::own_change(call, OwnPart::Status, &before, budget).await?;
        Ok(next.map_or(Next::Keep, Next::Write))
    }

    async fn absent(&mut self, _: &Call) -> Result<Option<Checked>, Refusal> {
        Ok(None)
    }
}

/// A number in the budget's status.
fn count(budget: &Value, name: &str) -> i64 {
    budget["status"][name].as_i64().unwrap_or(0)
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = Option::<LabelSelector>::deserialize(&budget["spec"]["selector"]).unwrap_or_default();
    let labels = object::labels(pod).cloned().unwrap_or_default();
    LabelSelector::selector_of(selector.as_ref()).is_ok_and(|selector| selector.matches(&labels))
}

fn condition_of<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether the budget has a disruption left.
fn check(budget: &Value) -> Result<(), Refusal> {
    let name = object::name(budget);
    let count = |name: &str| count(budget, name);
    let refuse = |seconds: u32, message: String| {
        Err(Refusal::too_many_requests(REFUSAL, seconds).with_cause(Cause::new("DisruptionBudget", message)))
    };
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    if count("observedGeneration") < object::generation(budget) {
        return refuse(10, format!("The disruption budget {name} is still being processed by the server."));
    }
    let (allowed, healthy, desired) =
        (count("disruptionsAllowed"), count("currentHealthy"), count("desiredHealthy"));
    if allowed < 0 {
        return Err(Refusal::forbidden(&resource, name, "pdb disruptions allowed is negative"));
    }
    if budget["status"]["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MAX_DISRUPTED) {
        let problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Refusal::forbidden(&resource, name, problem));
    }
    if allowed > 0 {
        return Ok(());
    }
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let message = condition_of(budget, "DisruptionAllowed")
        .filter(|one| one["status"] == "False")
        .map(|one| (text(one, "reason"), text(one, "message")))
        .filter(|(_, message)| !message.is_empty());
    refuse(
        0,
        match message {
            Some((reason, message)) if reason == "SyncFailed" => format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            ),
            _ if healthy <= desired => {
                format!(
                    "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
                )
            }
            Some((reason, message)) => format!(
                "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
            ),
            None => format!("The disruption budget {name} does not allow evicting pods currently"),
        },
    )
}
