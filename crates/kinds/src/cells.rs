//! An object in, the row that `kubectl get` shows of it out: one cell for each column of its resource.
//!
//! Kubernetes: the texts are those of its printers, which scripts read. Every cell is given, also of columns that
//! only `-o wide` shows; the client leaves them out. A resource without a printer of its own shows its name and
//! when it was made.

mod access;
mod admission;
mod age;
mod autoscale;
mod cluster;
mod devices;
mod event;
mod network;
mod node;
mod pod;
mod row;
mod selector;
mod storage;
mod workloads;

#[cfg(test)]
mod tests;

use api::object;
use jiff::Timestamp;
use serde_json::{Value, json};

pub use age::age;
use row::Row;

/// The cells of an object's row, as many as the resource has columns and typed as on the wire.
///
/// The object may be in the version that was asked for or in the one that is stored.
pub fn cells(group: &str, resource: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    match printer(group, resource) {
        Some(print) => print(&Row { object, now }),
        None => vec![Value::from(object::name(object)), created(object)],
    }
}

/// Whether rows of a resource are in another order than that of their names.
pub fn has_order(group: &str, resource: &str) -> bool {
    (group, resource) == ("flowcontrol.apiserver.k8s.io", "flowschemas")
}

/// Puts objects in the order of their rows, which for most kinds is that of their names.
pub fn sort(group: &str, resource: &str, objects: &mut [&Value]) {
    if has_order(group, resource) {
        objects.sort_by_key(|schema| (schema["spec"]["matchingPrecedence"].as_i64(), object::name(schema)));
    }
}

/// What a row says of its object besides the cells: a pod that has run to its end is hidden by some clients.
pub fn conditions(group: &str, resource: &str, object: &Value) -> Vec<Value> {
    if (group, resource) != ("", "pods") {
        return Vec::new();
    }
    let (reason, message) = match object["status"]["phase"].as_str() {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({ "type": "Completed", "status": "True", "reason": reason, "message": message })]
}

type Printer = fn(&Row<'_>) -> Vec<Value>;

fn printer(group: &str, resource: &str) -> Option<Printer> {
    Some(match (group, resource) {
        ("", "pods") => pod::pod,
        ("", "podtemplates") => workloads::pod_template,
        ("", "replicationcontrollers") => workloads::replication_controller,
        ("", "nodes") => node::node,
        ("" | "events.k8s.io", "events") => event::event,
        ("", "services") => network::service,
        ("", "endpoints") => network::endpoints,
        ("", "persistentvolumes") => storage::volume,
        ("", "persistentvolumeclaims") => storage::claim,
        ("", _) => return cluster::printer(resource),
        ("apps", _) => return workloads::apps(resource),
        ("batch", "jobs") => workloads::job,
        ("batch", "cronjobs") => workloads::cron_job,
        ("autoscaling", "horizontalpodautoscalers") => autoscale::autoscaler,
        ("policy", "poddisruptionbudgets") => autoscale::disruption_budget,
        ("networking.k8s.io", _) => return network::networking(resource),
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice,
        ("storage.k8s.io", _) => return storage::printer(resource),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => access::role_binding,
        ("certificates.k8s.io", "certificatesigningrequests") => access::signing_request,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => access::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => access::priority_level,
        ("admissionregistration.k8s.io", _) => return admission::printer(resource),
        ("apiregistration.k8s.io", "apiservices") => cluster::api_service,
        ("scheduling.k8s.io", "priorityclasses") => cluster::priority_class,
        ("coordination.k8s.io", "leases") => cluster::lease,
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class,
        ("resource.k8s.io", _) => return devices::printer(resource),
        _ => return None,
    })
}

fn created(object: &Value) -> Value {
    let moment = object::creation_timestamp(object).unwrap_or_default();
    Value::from(moment.to_string())
}
