//! The condition Dangling of FlowSchemas: whether their priority level exists; updated when either is
//! written.

use super::settings::PriorityLevel;
use crate::{
    Inner,
    call::{Call, Committed},
    lookup,
    refusal::Refusal,
    request::Target,
    served::Served,
    stored::Stored,
    write::{self, Attempt, ByServer, DraftState},
};
use api::{go, object};
use schema::managed_fields;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use store::{Batch, Range};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
// Kubernetes: the field manager of the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const DANGLING: &str = "Dangling";

/// Writes to the spec of a flow schema or a priority level. If a client overwrites the condition `Dangling`
/// through `/status`, the server corrects it at the next write of a spec.
// Kubernetes: a controller writes the condition again.
pub(crate) fn concerns(served: &Served, target: &Target) -> bool {
    let is_one = served.is(GROUP, SCHEMAS) || served.is(GROUP, LEVELS);
    is_one && target.subresource != "status"
}

/// Checks all flow schemas, since one of them or a priority level was written.
pub(crate) async fn after(call: &Call, _: &[Committed]) -> Result<(), Refusal> {
    super::upkeep::schedule(&call.inner);
    write_statuses(&call.inner).await
}

/// Writes the condition Dangling of all flow schemas where it is wrong.
pub(crate) async fn write_statuses(inner: &Arc<Inner>) -> Result<(), Refusal> {
    let Some(served) = inner.registry.find(GROUP, "v1", SCHEMAS) else { return Ok(()) };
    let with_condition = write::try_again(&mut WriteStatuses { inner, served }).await?;
    with_condition
        .ok_or_else(|| Refusal::internal_error("flow schemas change faster than their status can be written"))
}

struct WriteStatuses<'a> {
    inner: &'a Arc<Inner>,
    served: &'a Served,
}

impl Attempt for WriteStatuses<'_> {
    type Done = ();

    async fn attempt(&mut self) -> Result<Option<()>, Refusal> {
        let WriteStatuses { inner, served } = *self;
        let levels = lookup::objects(inner, (GROUP, "v1", LEVELS), "").await?;
        let levels: BTreeSet<String> = levels.into_iter().filter_map(name_if_consistent).collect();
        let page = inner.store.range(Range::prefix(served.prefix(""))).await;
        let mut batches = vec![Batch::new()];
        for entry in page?.entries {
            let stored = Stored::new(entry.value, entry.revision);
            let call = status_call(inner, &stored.text_at(&["metadata", "name"]));
            let Some(call) = call else { continue };
            let Some(mut object) = with_condition(&call, &stored, &levels).await? else { continue };
            let json = write::encode(&call, &mut object).await?;
            if batches.last().is_some_and(|batch| batch.writes().len() >= store::MAX_BATCH_WRITES) {
                batches.push(Batch::new());
            }
            let batch = batches.pop().unwrap_or_default();
            batches.push(batch.replace(call.key(&call.target.name), json, stored.revision));
        }
        for batch in batches.into_iter().filter(|batch| !batch.writes().is_empty()) {
            if !write::commit(inner, batch).await? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}

fn name_if_consistent(level: Value) -> Option<String> {
    let level: PriorityLevel = serde_json::from_value(level).ok()?;
    level.is_consistent().then_some(level.metadata.name)
}

/// A schema with its condition updated; `None` where it is right already.
async fn with_condition(
    call: &Call,
    stored: &Stored,
    levels: &BTreeSet<String>,
) -> Result<Option<Value>, Refusal> {
    let schema = &stored.value()?;
    let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
    let about = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {}",
        go::quote(level)
    );
    let (status, reason, message) = match levels.contains(level) {
        true => ("False", "Found", format!("{about} and it exists")),
        false => ("True", "NotFound", format!("{about} but there is no such object")),
    };
    let conditions = schema["status"]["conditions"].as_array();
    let now = conditions.into_iter().flatten().find(|condition| condition["type"] == DANGLING);
    let is_said =
        |now: &Value| now["status"] == status && now["reason"] == reason && now["message"] == message;
    if object::is_deleting(schema) || now.is_some_and(is_said) {
        return Ok(None);
    }
    let time = write::now(call);
    let config = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "FlowSchema", "metadata": {"name": object::name(schema)},
        "status": {"conditions": [{
            "type": DANGLING, "status": status, "lastTransitionTime": time, "reason": reason, "message": message,
        }]},
    });
    let (manager, text) = (call.manager(), time.to_string());
    let merged = write::with_target(call, |target| {
        managed_fields::apply(target, Some(schema), &config, &manager, true, &text)
    });
    let draft = merged.await??.into_value();
    let next = write::prepare_next(call, (stored, schema), draft, DraftState::DefaultedAndOwned).await?;
    Ok(next.map(write::Checked::into_object))
}

fn status_call(inner: &Arc<Inner>, name: &str) -> Option<Call> {
    let resource = (GROUP, "v1", SCHEMAS);
    ByServer { resource, name, subresource: "status", field_manager: MANAGER, ..ByServer::default() }
        .call(inner)
}
