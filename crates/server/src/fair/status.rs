//! Whether the priority level of a FlowSchema is there: written to its status when either changes.

use super::settings::Level;
use crate::{
    Inner,
    call::{Call, Committed},
    lookup,
    refusal::Refusal,
    request::Target,
    served::Served,
    stored::Stored,
    write::{self, Attempt, ByServer, Record},
};
use api::{go, object};
use schema::managed_fields;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use store::{Batch, Range};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
// Kubernetes: who the owner of the condition is recorded as.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const DANGLING: &str = "Dangling";

/// A write to the spec of a flow schema or a priority level. When a client overwrites the condition `Dangling` through
/// `/status`, the server writes it again at the next change of a spec.
// Kubernetes: a controller writes the condition again.
pub(crate) fn concerns(served: &Served, target: &Target) -> bool {
    let is_one = served.is(GROUP, SCHEMAS) || served.is(GROUP, LEVELS);
    is_one && target.subresource != "status"
}

/// Looks at all flow schemas, since one of them or a priority level was written.
pub(crate) async fn after(call: &Call, _: &[Committed]) -> Result<(), Refusal> {
    super::upkeep::soon(&call.inner);
    settle_all(&call.inner).await
}

/// Brings the status of all flow schemas to what it should be.
pub(crate) async fn settle_all(inner: &Arc<Inner>) -> Result<(), Refusal> {
    let Some(served) = inner.registry.find(GROUP, "v1", SCHEMAS) else { return Ok(()) };
    let settled = write::try_again(&mut Settle { inner, served }).await?;
    settled
        .ok_or_else(|| Refusal::internal_error("flow schemas change faster than their status can be written"))
}

struct Settle<'a> {
    inner: &'a Arc<Inner>,
    served: &'a Served,
}

impl Attempt for Settle<'_> {
    type Done = ();

    async fn attempt(&mut self) -> Result<Option<()>, Refusal> {
        let Settle { inner, served } = *self;
        let levels = lookup::objects(inner, (GROUP, "v1", LEVELS), "").await?;
        let levels: BTreeSet<String> = levels.into_iter().filter_map(sound_name).collect();
        let page = inner.store.range(Range::prefix(served.prefix(""))).await;
        let mut batches = vec![Batch::new()];
        for entry in page?.entries {
            let stored = Stored::new(entry.value, entry.revision);
            let call = status_call(inner, &stored.text_at(&["metadata", "name"]));
            let Some(call) = call else { continue };
            let Some(mut object) = settled(&call, &stored, &levels).await? else { continue };
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

fn sound_name(level: Value) -> Option<String> {
    let level: Level = serde_json::from_value(level).ok()?;
    level.is_sound().then_some(level.metadata.name)
}

/// A schema with its condition set; `None` where it says so already.
async fn settled(call: &Call, stored: &Stored, levels: &BTreeSet<String>) -> Result<Option<Value>, Refusal> {
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
    let next = write::prepare_next(call, (stored, schema), draft, Record::AlreadyDone).await?;
    Ok(next.map(write::Checked::into_object))
}

fn status_call(inner: &Arc<Inner>, name: &str) -> Option<Call> {
    let resource = (GROUP, "v1", SCHEMAS);
    ByServer { resource, name, subresource: "status", field_manager: MANAGER, ..ByServer::default() }
        .call(inner)
}
