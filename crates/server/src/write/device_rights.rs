//! Who may request administrative access to devices, and who may write which part of a ResourceClaim's
//! status.

use crate::{
    authenticate::NODE_NAME,
    authorize::{self, Attributes, OnResource},
    call::Call,
    input, lookup,
    refusal::Refusal,
};
use api::field::{Error, ErrorList, Path};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const GROUP: &str = "resource.k8s.io";
const NAMESPACES: (&str, &str, &str) = ("", "v1", "namespaces");
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Errors of a new claim or template: adminAccess needs a labelled namespace. The spec is immutable, so
/// updates need no check.
pub(super) async fn new_object(call: &Call, draft: &Value) -> Result<ErrorList, Refusal> {
    let requests = if call.served.is(GROUP, "resourceclaims") {
        "/spec/devices/requests"
    } else if call.served.is(GROUP, "resourceclaimtemplates") {
        "/spec/spec/devices/requests"
    } else {
        return Ok(ErrorList::new());
    };
    let wants = |request: &Value| request.pointer("/exactly/adminAccess") == Some(&Value::Bool(true));
    let Some(at) = items(draft, requests).iter().position(wants) else { return Ok(ErrorList::new()) };
    // Kubernetes: the error has the path of a claim, for templates too.
    admin_access(call, &format!("spec.devices.requests[{at}].adminAccess")).await
}

/// Errors of a status update: only schedulers change allocations, only drivers the status of their devices.
pub(super) async fn next_object(call: &Call, draft: &Value, current: &Value) -> Result<ErrorList, Refusal> {
    if !call.served.is(GROUP, "resourceclaims") || call.target.subresource != "status" {
        return Ok(ErrorList::new());
    }
    let granted = |claim: &Value| {
        let results = items(claim, "/status/allocation/devices/results");
        results.iter().position(|result| result["adminAccess"] == true)
    };
    let mut errors = match (granted(current), granted(draft)) {
        (None, Some(at)) => {
            admin_access(call, &format!("status.allocation.devices.results[{at}].adminAccess")).await?
        }
        _ => ErrorList::new(),
    };
    let (status, before) = (&draft["status"], &current["status"]);
    if status["allocation"] != before["allocation"] || status["reservedFor"] != before["reservedFor"] {
        binding(call, &mut errors).await?;
    }
    if !status["allocation"].is_null() {
        for driver in changed_drivers(status, before) {
            device_status(call, status, driver, &mut errors).await?;
        }
    }
    Ok(errors)
}

fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// adminAccess needs the label on the namespace.
async fn admin_access(call: &Call, path: &str) -> Result<ErrorList, Refusal> {
    let namespace = lookup::object(&call.inner, NAMESPACES, "", &call.target.namespace).await?;
    let mut errors = ErrorList::new();
    if namespace.is_none_or(|namespace| namespace["metadata"]["labels"][ADMIN_LABEL] != "true") {
        let problem = format!(
            "admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
        );
        errors.push(Error::forbidden(&Path::new(path), problem));
    }
    Ok(errors)
}

async fn binding(call: &Call, errors: &mut ErrorList) -> Result<(), Refusal> {
    let verb = verb(call);
    // In all namespaces, for all names.
    let wanted = OnResource {
        verb,
        group: GROUP,
        resource: "resourceclaims",
        subresource: "binding",
        ..OnResource::default()
    };
    if let Some(refusal) = refusal(call, wanted).await? {
        let problem = format!(
            "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
             verb=\"{verb}\" permission: {refusal}"
        );
        errors.push(Error::forbidden(&Path::new("status.allocation"), problem));
    }
    Ok(())
}

/// A driver on the claim's node may hold the `associated-node` verb; others need `arbitrary-node`.
async fn device_status(
    call: &Call,
    status: &Value,
    driver: &str,
    errors: &mut ErrorList,
) -> Result<(), Refusal> {
    let mut verbs = vec![format!("arbitrary-node:{}", verb(call))];
    if is_on_node(call, allocated_node(&status["allocation"])) {
        verbs.insert(0, format!("associated-node:{}", verb(call)));
    }
    let mut first = None;
    for verb in &verbs {
        let wanted = OnResource {
            verb,
            group: GROUP,
            resource: "resourceclaims",
            subresource: "driver",
            namespace: &call.target.namespace,
            name: driver,
            ..OnResource::default()
        };
        match refusal(call, wanted).await? {
            None => return Ok(()),
            Some(refusal) => drop(first.get_or_insert(refusal)),
        }
    }
    let (verbs, refusal) = (verbs.join(" "), first.unwrap_or_default());
    let problem = format!(
        "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verbs}]\" permission: {refusal}"
    );
    errors.push(Error::forbidden(&Path::new("status.devices"), problem));
    Ok(())
}

/// Why the caller is not authorized; `None` where they are.
async fn refusal(call: &Call, wanted: OnResource<'_>) -> Result<Option<String>, Refusal> {
    let (caller, wanted) = (call.caller(), Attributes::Resource(wanted));
    let decision = authorize::allows(&call.inner, caller, &wanted).await?;
    Ok((!decision.is_allowed).then(|| wanted.denied(caller, &decision.reason).to_string()))
}

fn verb(call: &Call) -> &'static str {
    if input::media_type(&call.headers).contains("-patch+") { "patch" } else { "update" }
}

/// Drivers of devices whose status is new, changed or gone.
fn changed_drivers<'v>(status: &'v Value, before: &'v Value) -> BTreeSet<&'v str> {
    let key = |device: &'v Value| ["driver", "pool", "device", "shareID"].map(|part| device[part].as_str());
    let by_key = |status: &'v Value| -> BTreeMap<_, &'v Value> {
        items(status, "/devices").iter().map(|device| (key(device), device)).collect()
    };
    let (now, before) = (by_key(status), by_key(before));
    let is_changed = |key: &&_| now.get(*key) != before.get(*key);
    let keys = now.keys().chain(before.keys()).filter(is_changed);
    keys.map(|[driver, ..]| driver.unwrap_or_default()).collect()
}

/// The one node on which devices were allocated.
fn allocated_node(allocation: &Value) -> Option<&str> {
    let [term] = items(allocation, "/nodeSelector/nodeSelectorTerms") else { return None };
    let ([], [field]) = (items(term, "/matchExpressions"), items(term, "/matchFields")) else { return None };
    let [node] = items(field, "/values") else { return None };
    (field["key"] == "metadata.name" && field["operator"] == "In").then(|| node.as_str()).flatten()
}

/// Whether the caller is a service account of a pod on that node.
fn is_on_node(call: &Call, node: Option<&str>) -> bool {
    let caller = call.caller();
    let is_account = caller.name.starts_with("system:serviceaccount:");
    let names = caller.extra.get(NODE_NAME).map(Vec::as_slice).unwrap_or_default();
    is_account && matches!((names, node), ([name], Some(node)) if name == node && !name.is_empty())
}
