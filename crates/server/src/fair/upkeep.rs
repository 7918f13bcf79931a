//! Maintains the mandatory and suggested FlowSchemas and PriorityLevelConfigurations: recreates and
//! corrects them.
//!
//! Two mandatory objects of each kind always keep their spec. The others are suggestions: an
//! administrator's change is kept, unless the annotation autoupdate-spec is true.

use super::settings::{CATCH_ALL, EXEMPT};
use crate::{
    Inner, bootstrap,
    call::Call,
    convert,
    refusal::Refusal,
    stored::Stored,
    verbs,
    write::{self, ByServer, DraftState},
};
use api::{object, path::ResourcePath};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::Ordering::{AcqRel, Release},
    },
    time::Duration,
};
use store::{Batch, Range};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const KINDS: [&str; 2] = ["prioritylevelconfigurations", "flowschemas"];
// Kubernetes: the annotation that enables updates.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// Delay before a changed object is checked.
// Kubernetes: its interval.
const PERIOD: Duration = Duration::from_secs(60);

/// How to correct an object.
#[derive(Debug, PartialEq)]
enum Repair {
    None,
    Write(Value),
    Remove,
}

/// Schedules a check, since one of the objects was written.
pub(super) fn schedule(inner: &Arc<Inner>) {
    if inner.fair.upkeep.swap(true, AcqRel) {
        return;
    }
    // Weak: a dropped server is not maintained.
    let (world, waiting) = (inner.world.clone(), Arc::downgrade(inner));
    let task = inner.world.spawn("maintain flow schemas and priority levels", async move {
        world.sleep(PERIOD).await;
        let Some(inner) = waiting.upgrade() else { return };
        inner.fair.upkeep.store(false, Release);
        if let Err(refusal) = ensure(&inner).await {
            tracing::warn!(problem = %refusal, "cannot maintain flow schemas and priority levels");
        }
    });
    task.detach();
}

/// Checks and corrects all of them.
pub(crate) async fn ensure(inner: &Arc<Inner>) -> Result<(), Refusal> {
    for resource in KINDS {
        let Some(served) = inner.registry.find(GROUP, "v1", resource) else { continue };
        let page = inner.store.range(Range::prefix(served.prefix(""))).await;
        let entries = page?.entries.into_iter();
        let objects = entries.map(|entry| Stored::new(entry.value, entry.revision));
        let mut found: BTreeMap<String, Stored> =
            objects.map(|it| (it.text_at(&["metadata", "name"]).into_owned(), it)).collect();
        let place = ResourcePath::collection(GROUP, "v1", resource).to_string();
        for (path, json) in kinds::bootstrap().filter(|(path, _)| *path == place) {
            let mut wanted: Value = serde_json::from_str(json).unwrap_or_default();
            let name = object::name(&wanted).to_owned();
            match found.remove(&name) {
                None => make(inner, path, json).await?,
                Some(stored) => {
                    let Some(call) = call(inner, resource, &name) else { continue };
                    served.default(&mut wanted);
                    served.normalize(&mut wanted);
                    let current = convert::in_request_version(&call, &stored).await?;
                    carry_out(&call, repair(&current, Some(&wanted)), &current, &stored).await?;
                }
            }
        }
        for (name, stored) in found {
            let Some(call) = call(inner, resource, &name) else { continue };
            let current = stored.value()?;
            carry_out(&call, repair(&current, None), &current, &stored).await?;
        }
    }
    Ok(())
}

/// How to correct an object, given its bootstrap object.
fn repair(current: &Value, wanted: Option<&Value>) -> Repair {
    let auto_update = current["metadata"]["annotations"][AUTO_UPDATE].as_str();
    let auto_update = auto_update.and_then(|auto_update| match auto_update {
        "true" | "1" | "t" | "T" | "TRUE" | "True" => Some(true),
        "false" | "0" | "f" | "F" | "FALSE" | "False" => Some(false),
        _ => None,
    });
    let Some(wanted) = wanted else {
        // Kubernetes: a suggestion of an earlier version that no administrator has taken over.
        return if auto_update == Some(true) { Repair::Remove } else { Repair::None };
    };
    let is_mandatory = [EXEMPT, CATCH_ALL].contains(&object::name(wanted));
    let updates = is_mandatory || auto_update.unwrap_or_else(|| object::generation(current) == 1);
    let spec = wanted_spec(current, wanted);
    let is_right = !updates || current["spec"] == spec;
    if is_right && auto_update == Some(updates) {
        return Repair::None;
    }
    let mut next = current.clone();
    if !is_right {
        next["spec"] = spec;
    }
    if !next["metadata"]["annotations"].is_object() {
        next["metadata"]["annotations"] = json!({});
    }
    next["metadata"]["annotations"][AUTO_UPDATE] = updates.to_string().into();
    Repair::Write(next)
}

/// Kubernetes: administrators may change shares and lendable percent of the level exempt.
fn wanted_spec(current: &Value, wanted: &Value) -> Value {
    let mut spec = wanted["spec"].clone();
    let ours = spec.get_mut("exempt").and_then(Value::as_object_mut);
    if let (Some(theirs), Some(ours)) = (current["spec"]["exempt"].as_object(), ours) {
        for field in ["nominalConcurrencyShares", "lendablePercent"] {
            if let Some(value) = theirs.get(field) {
                ours.insert(field.to_owned(), value.clone());
            }
        }
    }
    spec
}

async fn make(inner: &Inner, path: &str, json: &str) -> Result<(), Refusal> {
    let Some((key, object)) = bootstrap::make(inner, path, json) else { return Ok(()) };
    // On a conflict it exists already.
    write::commit(inner, Batch::new().create(key, object)).await?;
    Ok(())
}

/// On a conflict the other write wins; it schedules the next check.
async fn carry_out(call: &Call, repair: Repair, current: &Value, stored: &Stored) -> Result<(), Refusal> {
    match repair {
        Repair::None => Ok(()),
        Repair::Remove => verbs::delete::by_server(call).await,
        Repair::Write(next) => {
            match write::prepare_next(call, (stored, current), next, DraftState::AsSent).await? {
                Some(checked) => write::replace(call, checked, stored).await.map(drop),
                None => Ok(()),
            }
        }
    }
}

fn call(inner: &Arc<Inner>, resource: &str, name: &str) -> Option<Call> {
    let resource = (GROUP, "v1", resource);
    ByServer { resource, name, field_manager: bootstrap::FLOW_CONTROL_MANAGER, ..ByServer::default() }
        .call(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_objects_can_be_changed_and_mandatory_ones_cannot() {
        let object = |name: &str, annotation: Option<&str>, generation: i64, spec: Value| {
            let mut metadata = json!({"name": name, "generation": generation});
            if let Some(annotation) = annotation {
                metadata["annotations"] = json!({AUTO_UPDATE: annotation});
            }
            json!({"metadata": metadata, "spec": spec})
        };
        let (ours, theirs) = (json!({"a": 1}), json!({"a": 2}));
        for (case, name, annotation, generation, spec, expected) in [
            ("as it should be", "x", Some("true"), 1, &ours, None),
            ("seen to by the server", "x", Some("true"), 3, &theirs, Some(("true", &ours))),
            ("taken over by an administrator", "x", Some("false"), 3, &theirs, None),
            ("without a word, untouched", "x", None, 1, &theirs, Some(("true", &ours))),
            ("without a word, changed", "x", None, 2, &theirs, Some(("false", &theirs))),
            ("nonsense", "x", Some("maybe"), 2, &theirs, Some(("false", &theirs))),
            ("mandatory, changed", CATCH_ALL, Some("false"), 5, &theirs, Some(("true", &ours))),
            ("mandatory, claimed", EXEMPT, Some("false"), 5, &ours, Some(("true", &ours))),
        ] {
            let current = object(name, annotation, generation, spec.clone());
            let wanted = object(name, Some("true"), 1, ours.clone());
            let expected = match expected {
                None => Repair::None,
                Some((auto_update, spec)) => {
                    Repair::Write(object(name, Some(auto_update), generation, spec.clone()))
                }
            };
            assert_eq!(repair(&current, Some(&wanted)), expected, "{case}");
        }
        assert_eq!(repair(&object("old", Some("true"), 1, ours.clone()), None), Repair::Remove);
        assert_eq!(repair(&object("own", None, 1, ours), None), Repair::None);
        let lent = json!({"exempt": {"lendablePercent": 50, "nominalConcurrencyShares": 7}});
        let never = json!({"exempt": {"lendablePercent": 0, "nominalConcurrencyShares": 0}});
        let (lent, never) = (object(EXEMPT, Some("true"), 1, lent), object(EXEMPT, Some("true"), 1, never));
        assert_eq!(repair(&lent, Some(&never)), Repair::None);
    }
}
