//! What a node tells of itself: health, its pods, metrics, what its pods use, its configuration.

use super::Kubelet;
use crate::script::{Part, Script};
use api::quantity::Quantity;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::sync::Arc;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const NANOS_PER_MILLI: u64 = 1_000_000;
/// Kubernetes: the format of metrics pages.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The content type and body of a page; `None` if there is none.
pub(super) fn page(
    kubelet: &Kubelet,
    node: &str,
    path: &str,
    now: Timestamp,
) -> Option<(&'static str, String)> {
    Some(match path {
        "/healthz" => (TEXT, "ok".to_owned()),
        "/pods" | "/pods/" | "/runningpods/" => {
            let pods = pods(kubelet, node);
            let items: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
            (JSON, json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}).to_string())
        }
        "/metrics" => (METRICS, metrics(&pods(kubelet, node))),
        "/stats/summary" => (JSON, summary(&pods(kubelet, node), node, now).to_string()),
        "/configz" => {
            let config =
                json!({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"});
            (JSON, json!({"kubeletconfig": config}).to_string())
        }
        _ => return None,
    })
}

/// The pods of a node, in the order of their keys.
fn pods(kubelet: &Kubelet, node: &str) -> Vec<Arc<Pod>> {
    let all = kubelet.views().and_then(|views| views.pods.list().ok()).unwrap_or_default();
    let is_here = |pod: &Arc<Pod>| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
    all.into_iter().filter(is_here).collect()
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

fn metrics(pods: &[Arc<Pod>]) -> String {
    let running = pods.iter().filter(|pod| is_running(pod)).count();
    format!(
        "# HELP kubelet_running_pods Pods that run on this simulated node\n\
         # TYPE kubelet_running_pods gauge\n\
         kubelet_running_pods {running}\n"
    )
}

/// What the scripts of the pods say that they use.
fn summary(pods: &[Arc<Pod>], node: &str, now: Timestamp) -> Value {
    let (mut all_cpu, mut all_memory) = (0, 0);
    let mut used = Vec::new();
    for pod in pods.iter().filter(|pod| is_running(pod)) {
        let script = Script::of(pod).unwrap_or_default();
        let specs = pod.spec.iter().flat_map(|spec| &spec.containers);
        let containers: Vec<Value> = specs
            .map(|it| {
                let (cpu, memory) = usage(script.part(&it.name));
                (all_cpu, all_memory) = (all_cpu + cpu, all_memory + memory);
                json!({"name": it.name, "cpu": cpu_stats(cpu, now), "memory": memory_stats(memory, now)})
            })
            .collect();
        let reference =
            json!({"name": pod.name_any(), "namespace": pod.namespace(), "uid": pod.metadata.uid});
        used.push(json!({"podRef": reference, "containers": containers}));
    }
    let whole =
        json!({"nodeName": node, "cpu": cpu_stats(all_cpu, now), "memory": memory_stats(all_memory, now)});
    json!({"node": whole, "pods": used})
}

/// Nanocores and bytes.
fn usage(part: &Part) -> (u64, u64) {
    let read = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Quantity>().ok());
    let units = |amount: Option<i64>| amount.and_then(|amount| u64::try_from(amount).ok()).unwrap_or(0);
    let cpu = units(read(&part.cpu).and_then(|it| it.milli_value()));
    (cpu.saturating_mul(NANOS_PER_MILLI), units(read(&part.memory).and_then(|it| it.value())))
}

fn cpu_stats(nanocores: u64, now: Timestamp) -> Value {
    json!({"time": now.to_string(), "usageNanoCores": nanocores})
}

fn memory_stats(bytes: u64, now: Timestamp) -> Value {
    json!({"time": now.to_string(), "usageBytes": bytes, "workingSetBytes": bytes})
}
