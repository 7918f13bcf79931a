//! `log`, `exec`, `attach`, `portforward` and `proxy`: all checks up to the connection to a kubelet, which
//! is left out.

use crate::{
    answer::{self, Body},
    call::Call,
    convert::in_request_version,
    lookup,
    refusal::Refusal,
};
use api::{
    field::{Error, ErrorList, Path},
    go,
    kind::GroupKind,
};
use http::{Response, StatusCode};
use serde_json::Value;

const NODES: (&str, &str, &str) = ("", "v1", "nodes");

pub(crate) async fn connect(call: &Call) -> Result<Response<Body>, Refusal> {
    let object = in_request_version(call, &lookup::find(call, &call.target.name).await?).await?;
    match (&*call.served.resource.name, call.target.subresource.as_str()) {
        ("services", _) => {
            let name = go::quote(&call.target.name);
            Err(Refusal::service_unavailable(format!("no endpoints available for service {name}")))
        }
        ("nodes", _) => Err(unreachable_node(&object)),
        (_, "proxy") => Err(Refusal::bad_request("address not allowed")),
        (_, "log") => log(call, &object).await,
        (_, "portforward") => Err(host(call, &object).await?),
        _ => {
            check_container(call, &object)?;
            Err(host(call, &object).await?)
        }
    }
}

async fn log(call: &Call, pod: &Value) -> Result<Response<Body>, Refusal> {
    check_log_options(call)?;
    check_container(call, pod)?;
    if node_of(pod).is_empty() {
        // Kubernetes: a pod without a node has no logs yet.
        return Ok(answer::full(StatusCode::NO_CONTENT, "", ""));
    }
    Err(host(call, pod).await?)
}

fn check_log_options(call: &Call) -> Result<(), Refusal> {
    let mut errors = ErrorList::new();
    for (name, least, problem) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        if let Some(text) = call.options.rest.get(name) {
            let number = go::parse_int(text).map_err(Refusal::bad_request)?;
            if number < least {
                errors.push(Error::invalid(&Path::new(name), number, problem));
            }
        }
    }
    let kind = GroupKind::new("", "PodLogOptions");
    errors.into_result().map_err(|errors| Refusal::invalid(&kind, &call.target.name, &errors))
}

fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// A request to a pod of several containers must name the container.
fn check_container(call: &Call, pod: &Value) -> Result<(), Refusal> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    };
    let (own, first) = (names("containers"), names("initContainers"));
    let name = &call.target.name;
    let wanted = call.options.rest.get("container").map(String::as_str).unwrap_or_default();
    if wanted.is_empty() {
        if own.len() == 1 {
            return Ok(());
        }
        let mut problem =
            format!("a container name must be specified for pod {name}, choose one of: [{}]", own.join(" "));
        if !first.is_empty() {
            problem.push_str(&format!(" or one of the init containers: [{}]", first.join(" ")));
        }
        return Err(Refusal::bad_request(problem));
    }
    let all = [own, first, names("ephemeralContainers")].concat();
    match all.contains(&wanted) {
        true => Ok(()),
        false => Err(Refusal::bad_request(format!("container {wanted} is not valid for pod {name}"))),
    }
}

/// The error for a kubelet that cannot be reached.
async fn host(call: &Call, pod: &Value) -> Result<Refusal, Refusal> {
    let node = node_of(pod);
    if node.is_empty() {
        let problem = format!("pod {} does not have a host assigned", call.target.name);
        return Ok(Refusal::bad_request(problem));
    }
    Ok(match lookup::object(&call.inner, NODES, "", node).await? {
        // Kubernetes: the error names a pod, not a node, as missing.
        None => Refusal::not_found(&call.resource(), node),
        Some(node) => unreachable_node(&node),
    })
}

fn unreachable_node(node: &Value) -> Refusal {
    let addresses = node["status"]["addresses"].as_array().cloned().unwrap_or_default();
    if addresses.is_empty() {
        return Refusal::unclassified("no preferred addresses found; known addresses: []");
    }
    Refusal::unclassified("error dialing backend: no node answers here")
}
