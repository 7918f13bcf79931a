//! An HTTP server for the kubelet and Prometheus: `/metrics`, `/healthz`, `/readyz`.
//!
//! The responses are those of controller-runtime: `ok`, or with `?verbose` and on failure a line for
//! each check; `/healthz/<name>` runs one check, and says why it fails.

use crate::{connections::Connections, controller::SyncCheck, metrics::Metrics, queue::Queue};
use api::prometheus;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use world::{Task, World};

/// Enough for a kubelet and a few Prometheus servers; further connections wait.
const CONNECTIONS: usize = 32;
/// For one connection, which serves one request.
const EXCHANGE: Duration = Duration::from_secs(10);
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

/// The metrics and health checks of a process.
///
/// ```
/// use operator::{metrics::Metrics, probe::Probe};
///
/// let probe = Probe::new(Metrics::default()).ready("door", || Err("it is shut".into()));
/// let answer = probe.answer(&http::Request::get("/readyz").body(()).expect("a request"));
/// assert_eq!(answer.status(), 500);
/// ```
#[derive(Clone)]
pub struct Probe {
    metrics: Metrics,
    checks: Checks,
}

/// The checks of a process, by name.
#[derive(Clone, Default)]
pub(crate) struct Checks {
    pub(crate) live: BTreeMap<String, Check>,
    pub(crate) ready: BTreeMap<String, Check>,
}

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
type HttpResponse = Response<Full<Bytes>>;

/// Serves the health of these controllers until the task is dropped.
pub(crate) async fn serve(
    world: &World,
    address: SocketAddr,
    metrics: &Metrics,
    checks: Checks,
    queues: &[(String, Queue)],
    sync_checks: Vec<SyncCheck>,
) -> io::Result<Task<()>> {
    let listener = TcpListener::bind(address).await?;
    let own = Probe { metrics: metrics.clone(), checks };
    let probe = queues.iter().fold(own, |probe, (controller, queue)| {
        let queue = queue.clone();
        probe.live(controller, move || queue.health().map_err(|stuck| stuck.to_string()))
    });
    let probe = sync_checks.into_iter().fold(probe, |probe, (kind, is_synced)| {
        let check =
            move || is_synced().then_some(()).ok_or_else(|| "the first list is not here yet".to_owned());
        probe.ready(&format!("cache-of-{kind}"), check)
    });
    Ok(world.spawn("probes", probe.serve(world.clone(), listener)))
}

impl Probe {
    /// Serves these metrics, without any checks.
    pub fn new(metrics: Metrics) -> Probe {
        Probe { metrics, checks: Checks::default() }
    }

    /// Adds a check to `/healthz`: if it fails, the process should be restarted.
    pub fn live(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Probe {
        self.checks.live.insert(name.to_owned(), Arc::new(check));
        self
    }

    /// Adds a check to `/readyz`: while it fails, the process should get no requests.
    pub fn ready(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Probe {
        self.checks.ready.insert(name.to_owned(), Arc::new(check));
        self
    }

    /// Serves all connections until it is dropped.
    pub async fn serve(self, world: World, listener: TcpListener) {
        let mut connections = Connections::new(&world, "probe", listener, CONNECTIONS);
        let accept = connections.accept(|socket| {
            let (probe, clock) = (self.clone(), world.clone());
            // A client that hangs up or is too slow is not an error.
            async move { drop(clock.timeout(EXCHANGE, probe.speak(socket)).await) }
        });
        match accept.await {}
    }

    async fn speak(self, socket: TcpStream) -> hyper::Result<()> {
        let answer = |request: Request<Incoming>| {
            let answer = self.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        };
        http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(socket), service_fn(answer))
            .await
    }

    /// The response to one request.
    pub fn answer<B>(&self, request: &Request<B>) -> HttpResponse {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        }
        let path = request.uri().path().trim_end_matches('/');
        let query = request.uri().query().unwrap_or_default();
        if path == "/metrics" {
            return respond(StatusCode::OK, prometheus::CONTENT_TYPE, self.metrics.render());
        }
        let endpoints = [("/healthz", &self.checks.live), ("/readyz", &self.checks.ready)];
        let found =
            endpoints.iter().find_map(|(endpoint, checks)| Some((path.strip_prefix(endpoint)?, checks)));
        match found {
            Some(("", checks)) => all(checks, query),
            Some((name, checks)) if name.starts_with('/') => one(checks, &name[1..]),
            _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }
}

fn one(checks: &BTreeMap<String, Check>, name: &str) -> HttpResponse {
    match checks.get(name).map(|check| check()) {
        Some(Ok(())) => text(StatusCode::OK, "ok"),
        Some(Err(problem)) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {problem}\n"))
        }
        None if checks.is_empty() && name == "ping" => text(StatusCode::OK, "ok"),
        None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// All checks. Why one failed is in the response to that check alone.
fn all(checks: &BTreeMap<String, Check>, query: &str) -> HttpResponse {
    let parameters = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut excluded: BTreeSet<&str> =
        parameters().filter(|(name, _)| *name == "exclude").map(|(_, value)| value).collect();
    let (mut lines, mut failed) = (String::new(), false);
    for (name, check) in checks {
        if excluded.remove(name.as_str()) {
            lines += &format!("[+]{name} excluded: ok\n");
        } else if check().is_ok() {
            lines += &format!("[+]{name} ok\n");
        } else {
            lines += &format!("[-]{name} failed: reason withheld\n");
            failed = true;
        }
    }
    if checks.is_empty() {
        lines += "[+]ping ok\n";
    }
    if !failed && !parameters().any(|(name, _)| name == "verbose") {
        return text(StatusCode::OK, "ok");
    }
    if !excluded.is_empty() {
        let names: Vec<_> = excluded.into_iter().map(api::go::quote).collect();
        let names = names.join(",");
        lines += &format!("warn: some health checks cannot be excluded: no matches for {names}\n");
    }
    match failed {
        true => text(StatusCode::INTERNAL_SERVER_ERROR, lines + "healthz check failed\n"),
        false => text(StatusCode::OK, lines + "healthz check passed\n"),
    }
}

fn text(code: StatusCode, body: impl Into<String>) -> HttpResponse {
    respond(code, TEXT_TYPE, body.into())
}

fn respond(code: StatusCode, content_type: &'static str, body: String) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}

impl fmt::Debug for Probe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Probe").field(&self.checks).finish()
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: [Vec<_>; 2] = [&self.live, &self.ready].map(|checks| checks.keys().collect());
        out.debug_tuple("Checks").field(&names).finish()
    }
}

#[cfg(test)]
mod tests;
