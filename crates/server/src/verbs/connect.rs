//! `log`, `exec`, `attach`, `portforward` and `proxy`: finds the kubelet behind a pod or node, or the pod itself, and
//! connects the caller with it.

mod log;
mod node_proxy;
mod options;
mod path;
pub(crate) mod proxy;
mod stream;
mod upgraded;

use crate::{
    admission,
    answer::{self, Body},
    call::Call,
    convert::in_request_version,
    kubelet::{self, KubeletAddress},
    lookup,
    refusal::Refusal,
};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde_json::Value;

const NODES: (&str, &str, &str) = ("", "v1", "nodes");

/// Everything but the proxies of pods and services. `body` is that of a request through a node's; the others have none.
pub(crate) async fn connect(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let subresource = call.target.subresource.as_str();
    if &*call.served.resource.name == "nodes" {
        return node_proxy::proxy(call, body).await;
    }
    let is_stream = matches!(subresource, "exec" | "attach" | "portforward");
    if is_stream {
        stream::demand_create(call).await?;
        admission::connect(call, options::object(call, "")).await?;
    }
    let object = in_request_version(call, &lookup::find(call, &call.target.name).await?).await?;
    match is_stream {
        true => stream::stream(call, &object).await,
        false => log::log(call, &object).await,
    }
}

/// Kubernetes: without a path, the client is sent to the one with a slash.
fn moved(path: &str, query: Option<&str>) -> Response<Body> {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = answer::full(StatusCode::MOVED_PERMANENTLY, "text/plain; charset=utf-8", "");
    if let Ok(location) = format!("{path}/{query}").parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// The container that a request is for; it may be unnamed if it is the only one.
fn container<'a>(call: &'a Call, pod: &'a Value) -> Result<&'a str, Refusal> {
    let names = |list: &str| -> Vec<&'a str> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    };
    let own = names("containers");
    let all = [names("initContainers"), own.clone(), names("ephemeralContainers")].concat();
    let name = &call.target.name;
    let wanted = call.options.rest.get("container").map(String::as_str).unwrap_or_default();
    match (wanted, own.as_slice()) {
        ("", [only]) => Ok(only),
        ("", []) => Err(Refusal::bad_request(format!("a container name must be specified for pod {name}"))),
        ("", _) => {
            let all = all.join(" ");
            let problem =
                format!("a container name must be specified for pod {name}, choose one of: [{all}]");
            Err(Refusal::bad_request(problem))
        }
        _ if all.contains(&wanted) => Ok(wanted),
        _ => Err(Refusal::bad_request(format!("container {wanted} is not valid for pod {name}"))),
    }
}

/// The kubelet of a pod's node.
async fn kubelet_of(call: &Call, pod: &Value) -> Result<KubeletAddress, Refusal> {
    let node = node_of(pod);
    if node.is_empty() {
        let problem = format!("pod {} does not have a host assigned", call.target.name);
        return Err(Refusal::bad_request(problem));
    }
    let found = lookup::object(&call.inner, NODES, "", node).await?;
    // Kubernetes: the error names a pod, not a node, as missing.
    let found = found.ok_or_else(|| Refusal::not_found(&call.resource(), node))?;
    kubelet::address(&found, &call.inner.kubelet_addresses)
        .map_err(|problem| Refusal::unclassified(problem.0))
}

/// The path of a pod at its kubelet. The names are of stored objects, which have no slashes.
fn pod_path(kind: &str, call: &Call) -> String {
    format!("/{kind}/{}/{}", call.target.namespace, call.target.name)
}
