//! Priority: sets a pod's priority from its class, and allows one default class.

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::object;
use serde_json::{Value, json};

const CLASSES: (&str, &str, &str) = ("scheduling.k8s.io", "v1", "priorityclasses");

/// Classes that the cluster itself needs.
const SYSTEM: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

pub(super) async fn fill(review: &mut Review<'_>) -> Result<(), Refusal> {
    if !review.is_on("", "pods") {
        return Ok(());
    }
    match (review.operation, review.old) {
        (Operation::Create, _) => set_priority(review).await,
        (Operation::Update, Some(old)) => {
            for field in ["priority", "preemptionPolicy"] {
                if let (Some(before), true) = (old["spec"].get(field), review.object["spec"][field].is_null())
                {
                    review.object["spec"][field] = before.clone();
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn set_priority(review: &mut Review<'_>) -> Result<(), Refusal> {
    let inner = &review.call.inner;
    let class = match review.object["spec"]["priorityClassName"].as_str() {
        None | Some("") => match default(review).await? {
            Some(class) => class,
            None => json!({"value": 0, "preemptionPolicy": "PreemptLowerPriority"}),
        },
        Some(name) => {
            let class = lookup::object(inner, CLASSES, "", name).await?;
            class.ok_or_else(|| review.forbidden(format!("no PriorityClass with name {name} was found")))?
        }
    };
    let (spec, value) = (&review.object["spec"], class["value"].as_i64().unwrap_or(0));
    if let Some(said) = spec["priority"].as_i64().filter(|said| *said != value) {
        return Err(review.forbidden(format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        )));
    }
    let policy = class["preemptionPolicy"].as_str();
    if let (Some(said), Some(policy)) = (spec["preemptionPolicy"].as_str(), policy)
        && said != policy
    {
        return Err(review.forbidden(format!(
            "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        )));
    }
    let spec = &mut review.object["spec"];
    spec["priority"] = value.into();
    if let Some(policy) = policy {
        spec["preemptionPolicy"] = policy.into();
    }
    if !object::name(&class).is_empty() {
        spec["priorityClassName"] = object::name(&class).into();
    }
    Ok(())
}

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let is_default = review.object["globalDefault"] == true;
    let is_deleted = review.operation == Operation::Delete && review.is_on(CLASSES.0, CLASSES.2);
    if is_deleted && SYSTEM.contains(&review.name()) {
        return Err(review.forbidden("this is a system priority class and cannot be deleted"));
    }
    if review.operation == Operation::Delete || !review.is_on(CLASSES.0, CLASSES.2) || !is_default {
        return Ok(());
    }
    match default(review).await? {
        Some(other) if review.operation == Operation::Create || object::name(&other) != review.name() => {
            Err(review.forbidden(format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                object::name(&other)
            )))
        }
        _ => Ok(()),
    }
}

/// The default class; among several the one with the lowest value.
async fn default(review: &Review<'_>) -> Result<Option<Value>, Refusal> {
    let classes = lookup::objects(&review.call.inner, CLASSES, "").await?;
    let defaults = classes.into_iter().filter(|class| class["globalDefault"] == true);
    Ok(defaults.min_by_key(|class| class["value"].as_i64()))
}
