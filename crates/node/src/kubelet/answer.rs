//! A request of the API server → a response, as a kubelet gives it.

use super::{
    Body, Kubelet, NODE_HEADER,
    follow::{self, FollowedLog},
    is_running, page, pages,
    port_forward::{self, PortForward},
    session::{self, Streams},
    text,
    web_socket::accept,
};
use crate::{
    exec,
    fleet::is_stopped,
    logs::{self, LogOptions, NoLog, Rest},
    query::pairs,
    simulation::Simulation,
};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use operator::Key;
use std::{io, sync::Arc};
use world::World;

/// The protocols of commands, the best first.
const PROTOCOLS: [&str; 3] = [V5, "v4.channel.k8s.io", V1];
/// With a signal for the end of the input.
const V5: &str = "v5.channel.k8s.io";
/// A failure is a text, and success is silent.
const V1: &str = "channel.k8s.io";

/// How clients of SPDY name the protocol within.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// The page that looks at no pods.
const HEALTH: &str = "/healthz";

const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const INTERNAL: u16 = 500;

/// Kubernetes: the text of a kubelet's authorization.
pub(super) fn forbidden(user: &str, request: &Request<Incoming>) -> Response<Body> {
    let verb = if request.method() == http::Method::GET { "get" } else { "create" };
    text(403, format!("Forbidden (user={user}, verb={verb}, resource=nodes, subresource(s)=[proxy])\n"))
}

impl Kubelet {
    /// The response to a request that is allowed. An error closes the connection, as if the node were off.
    pub(super) async fn answer(
        &self,
        world: &World,
        mut request: Request<Incoming>,
    ) -> io::Result<Response<Body>> {
        let path = request.uri().path().to_owned();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let named = request.headers().get(NODE_HEADER).and_then(|name| name.to_str().ok()).map(str::to_owned);
        match segments[..] {
            ["containerLogs", namespace, name, container] => {
                let pod = self.pod_on(namespace, name, named.as_deref())?;
                let missing = format!("pod \"{name}\" does not exist");
                let query = request.uri().query().unwrap_or_default();
                Ok(match pod {
                    Some(pod) => self.logs(world, &pod, container, query).await,
                    None => text(NOT_FOUND, missing),
                })
            }
            [kind @ ("exec" | "attach"), namespace, pod, container] => {
                let pod = self.pod_on(namespace, pod, named.as_deref())?;
                Ok(self.session(world, kind, pod, container, &mut request).await)
            }
            ["portForward", namespace, pod] => {
                let pod = self.pod_on(namespace, pod, named.as_deref())?;
                Ok(forward(world, pod, &mut request))
            }
            _ => {
                let named = named.unwrap_or_default();
                if self.node(&named).is_some_and(|node| is_stopped(&node)) {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                let page = || pages::page(self, &named, &path, world.wall());
                let page = if path == HEALTH { page() } else { self.workshop().compute(world, page).await };
                Ok(page.map_or_else(
                    || text(NOT_FOUND, "404 page not found\n"),
                    |(content_type, body)| self::page(200, content_type, body),
                ))
            }
        }
    }

    /// The pod, if it is on a simulated node that is not stopped.
    fn pod_on(&self, namespace: &str, pod: &str, node: Option<&str>) -> io::Result<Option<Arc<Pod>>> {
        let Some(pod) = self.pod(&Key::new(Some(namespace), pod)) else { return Ok(None) };
        let Some(name) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
            return Ok(None);
        };
        if node.is_some_and(|node| node != name) {
            return Ok(None);
        }
        match self.node(name) {
            Some(node) if is_stopped(&node) => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(Some(pod)),
        }
    }

    async fn logs(&self, world: &World, pod: &Pod, container: &str, query: &str) -> Response<Body> {
        let options = match LogOptions::of_query(query) {
            Ok(options) => options,
            Err(NoLog { code, text: problem }) => return text(code, problem),
        };
        let now = world.wall();
        let look = |simulation: &Simulation<'_>| logs::log(simulation, container, &options, now);
        match self.workshop().simulate(world, pod, look).await {
            Err(NoLog { code, text: problem }) => text(code, problem),
            Ok(log) if log.rest == Rest::Nothing => text(200, log.text),
            Ok(log) => {
                let followed = FollowedLog::new(self, world, pod, container, options, log);
                let mut response = Response::new(follow::body(followed));
                let plain = HeaderValue::from_static("text/plain; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, plain);
                response
            }
        }
    }

    /// A command in a container, or its log as it grows, over a WebSocket.
    async fn session(
        &self,
        world: &World,
        kind: &str,
        pod: Option<Arc<Pod>>,
        container: &str,
        request: &mut Request<Incoming>,
    ) -> Response<Body> {
        let query: Vec<_> = pairs(request.uri().query().unwrap_or_default()).collect();
        let streams = Streams::of(&query);
        if !streams.has_any() {
            return text(BAD_REQUEST, "you must specify at least 1 of stdin, stdout, stderr");
        }
        let Some(pod) = pod else { return text(NOT_FOUND, "pod does not exist") };
        if !is_running(&pod, container) {
            return text(INTERNAL, format!("container not found (\"{container}\")"));
        }
        let (mut response, protocol) = match upgrade(request, &PROTOCOLS) {
            Ok(agreed) => agreed,
            Err(refusal) => return *refusal,
        };
        let session = session::Session {
            kubelet: self.clone(),
            world: world.clone(),
            streams,
            ends_input: protocol == V5,
            tells_status: protocol != V1,
            upgrade: hyper::upgrade::on(request),
        };
        let words = query.into_iter().filter(|(name, _)| name == "command").map(|(_, word)| word);
        let command: Vec<String> = words.collect();
        let work = match kind {
            "attach" => {
                let now = world.wall();
                // From now on: what it has written before is not attached to.
                let options = LogOptions { follow: true, since_time: Some(now), ..LogOptions::default() };
                let look = |simulation: &Simulation<'_>| logs::log(simulation, container, &options, now);
                let Ok(log) = self.workshop().simulate(world, &pod, look).await else {
                    return text(INTERNAL, format!("container {container} not found in pod {}", name(&pod)));
                };
                session::Work::Attach(FollowedLog::new(self, world, &pod, container, options, log))
            }
            _ => {
                let look = |simulation: &Simulation<'_>| {
                    let input = exec::input(simulation, container, &command);
                    (input, exec::plan(simulation, container, &command))
                };
                let (input, plan) = self.workshop().simulate(world, &pod, look).await;
                session::Work::Command { input, plan, pod, container: container.to_owned(), command }
            }
        };
        world.spawn("session", session.run(work)).detach();
        let protocol = HeaderValue::from_static(protocol);
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        response
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// Connections of a client to the ports of a pod, over SPDY: as itself, or through a WebSocket.
fn forward(world: &World, pod: Option<Arc<Pod>>, request: &mut Request<Incoming>) -> Response<Body> {
    let Some(pod) = pod else { return text(NOT_FOUND, "pod does not exist") };
    let is_web_socket = !has(request, &header::UPGRADE, port_forward::SPDY);
    let agreed = match is_web_socket {
        true => upgrade(request, &[port_forward::TUNNELLED])
            .map(|(response, protocol)| with(response, header::SEC_WEBSOCKET_PROTOCOL, protocol)),
        false => upgrade_to_spdy(request),
    };
    let response = match agreed {
        Ok(response) => response,
        Err(refusal) => return *refusal,
    };
    let upgrade = hyper::upgrade::on(request);
    let forward = PortForward { world: world.clone(), pod, upgrade, is_web_socket };
    world.spawn("port forwarding", forward.run()).detach();
    response
}

fn all<'a>(request: &'a Request<Incoming>, name: &HeaderName) -> Vec<&'a str> {
    let values = request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).collect()
}

fn has(request: &Request<Incoming>, name: &HeaderName, word: &str) -> bool {
    all(request, name).iter().any(|it| it.eq_ignore_ascii_case(word))
}

fn refuse(problem: impl Into<String>) -> Box<Response<Body>> {
    Box::new(text(BAD_REQUEST, problem.into()))
}

fn with(mut response: Response<Body>, name: HeaderName, value: &'static str) -> Response<Body> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// The response that makes a connection one of another protocol.
fn switching(protocol: &'static str) -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let response = with(response, header::CONNECTION, "Upgrade");
    with(response, header::UPGRADE, protocol)
}

fn upgrade_to_spdy(request: &Request<Incoming>) -> Result<Response<Body>, Box<Response<Body>>> {
    let offered = all(request, &STREAM_PROTOCOL);
    if !has(request, &header::CONNECTION, "upgrade") {
        return Err(refuse("Upgrade request required"));
    }
    if !offered.is_empty() && !offered.contains(&port_forward::PROTOCOL) {
        return Err(refuse(format!("offer the protocol {}", port_forward::PROTOCOL)));
    }
    Ok(with(switching(port_forward::SPDY), STREAM_PROTOCOL, port_forward::PROTOCOL))
}

/// The response that makes a connection a WebSocket, and its protocol; or why it does not become one.
fn upgrade(
    request: &Request<Incoming>,
    protocols: &[&'static str],
) -> Result<(Response<Body>, &'static str), Box<Response<Body>>> {
    if !has(request, &header::CONNECTION, "upgrade") {
        return Err(refuse("Upgrade request required"));
    }
    if !has(request, &header::UPGRADE, "websocket") {
        return Err(refuse("a simulated node speaks WebSocket, not SPDY: use kubectl 1.31 or later"));
    }
    if !has(request, &header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(refuse("the version of the WebSocket protocol must be 13"));
    }
    let offered = all(request, &header::SEC_WEBSOCKET_PROTOCOL);
    let Some(protocol) = protocols.iter().find(|it| offered.contains(it)) else {
        return Err(refuse(format!("offer one of the protocols {}", protocols.join(", "))));
    };
    let keys = all(request, &header::SEC_WEBSOCKET_KEY);
    let [key] = keys[..] else { return Err(refuse("the key of the WebSocket is missing")) };
    let accepted = HeaderValue::from_str(&accept(key)).map_err(|_| refuse("the key cannot be used"))?;
    let mut response = switching("websocket");
    response.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    Ok((response, protocol))
}
