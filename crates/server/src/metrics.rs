//! Counts requests and watches, and writes the page that Prometheus collects at `/metrics`.
//!
//! Names and labels are those of Kubernetes. No label comes from a caller: requests for resources that are not
//! served share one set of labels, so that callers cannot make the page grow.

mod labels;
mod process;
mod watched;

use crate::{Body, Inner, answer, request::Place};
use api::prometheus;
use api::prometheus::{Histogram, Page};
use http::{Method, Request, Response, StatusCode};
use labels::Labelled;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};
use store::Range;
use watched::{Events, WatchedBody};
use world::Moment;

// Kubernetes: the bounds of its histograms.
const DURATIONS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
const SIZES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// The most sets of labels. More only come of definitions that are created and deleted again and again.
const MAX_SERIES: usize = 5000;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: RwLock<BTreeMap<Labelled<'static>, Arc<Measured>>>,
    events: RwLock<BTreeMap<[String; 3], Arc<Events>>>,
    /// Running requests that read, and that write.
    reading: AtomicI64,
    writing: AtomicI64,
    /// TLS handshakes that failed.
    pub(crate) failed_handshakes: AtomicU64,
}

/// All requests with the same labels.
#[derive(Debug)]
struct Measured {
    labels: Labelled<'static>,
    codes: Mutex<BTreeMap<u16, u64>>,
    durations: Histogram,
    sizes: Histogram,
    long_running: AtomicI64,
}

/// A running request.
#[derive(Debug)]
pub(crate) struct Begun {
    verb: &'static str,
    series: Series,
    since: Moment,
    _in_flight: InFlight,
}

/// Where a request is counted.
#[derive(Debug)]
enum Series {
    Known(Arc<Measured>),
    /// Labels that are not yet checked against what is served.
    New(Labelled<'static>),
}

/// Counts a running request while it lives.
#[derive(Debug)]
struct InFlight {
    inner: Arc<Inner>,
    kind: Option<RequestKind>,
}

#[derive(Clone, Copy, Debug)]
enum RequestKind {
    Reading,
    Writing,
}

impl Begun {
    pub(crate) fn new<B>(inner: &Arc<Inner>, request: &Request<B>, place: Option<&Place>) -> Begun {
        let labels = Labelled::of(request, place);
        let verb = labels.verb;
        // Kubernetes: a watch is not counted as in flight.
        let kind = match verb {
            "WATCH" => None,
            "GET" | "LIST" => Some(RequestKind::Reading),
            _ => Some(RequestKind::Writing),
        };
        let in_flight = InFlight { inner: Arc::clone(inner), kind };
        in_flight.add(1);
        let series = match inner.metrics.known(&labels) {
            Some(measured) => Series::Known(measured),
            None => Series::New(labels.into_owned()),
        };
        Begun { verb, series, since: inner.world.now(), _in_flight: in_flight }
    }

    /// Counts the response, with its size before compression; a watch when it ends.
    pub(crate) async fn end(
        self,
        inner: &Arc<Inner>,
        response: Response<Body>,
        size: Option<u64>,
    ) -> Response<Body> {
        let (metrics, code) = (&inner.metrics, response.status().as_u16());
        let measured = match self.series {
            Series::Known(measured) => measured,
            Series::New(labels) => metrics.measured(Box::pin(labels.keep_served(inner)).await),
        };
        if self.verb == "WATCH" && response.status() == StatusCode::OK {
            let Labelled { group, version, resource, .. } = &measured.labels;
            let events = metrics.events([group, version, resource].map(|text| text.to_string()));
            return response.map(|body| WatchedBody::body(body, inner, measured, events, self.since));
        }
        measured.count(code, inner.world.now().since(self.since).as_secs_f64());
        // Kubernetes: sizes of reads only.
        if let (true, Some(size)) = (matches!(self.verb, "GET" | "LIST"), size) {
            measured.sizes.observe(size as f64);
        }
        response
    }
}

impl InFlight {
    fn add(&self, count: i64) {
        let metrics = &self.inner.metrics;
        match self.kind {
            Some(RequestKind::Reading) => _ = metrics.reading.fetch_add(count, Relaxed),
            Some(RequestKind::Writing) => _ = metrics.writing.fetch_add(count, Relaxed),
            None => {}
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.add(-1);
    }
}

impl Measured {
    fn new(labels: &Labelled<'static>) -> Measured {
        Measured {
            labels: labels.clone(),
            codes: Mutex::default(),
            durations: Histogram::new(&DURATIONS),
            sizes: Histogram::new(&SIZES),
            long_running: AtomicI64::new(0),
        }
    }

    fn count(&self, code: u16, seconds: f64) {
        *self.codes().entry(code).or_default() += 1;
        self.durations.observe(seconds);
    }

    fn codes(&self) -> MutexGuard<'_, BTreeMap<u16, u64>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics {
    fn measured(&self, labels: Labelled<'static>) -> Arc<Measured> {
        look_up(&self.requests, labels, Measured::new)
    }

    fn events(&self, of: [String; 3]) -> Arc<Events> {
        look_up(&self.events, of, |_| Events::default())
    }

    fn known(&self, labels: &Labelled<'_>) -> Option<Arc<Measured>> {
        let requests = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        // Shortens the lifetime of the keys, so that borrowed labels can be looked up.
        let requests: &BTreeMap<Labelled<'_>, Arc<Measured>> = &requests;
        requests.get(labels).map(Arc::clone)
    }
}

/// The entry of a key, created if there is room; without room, that of the default key.
fn look_up<K: Ord + Default, V>(
    kept: &RwLock<BTreeMap<K, Arc<V>>>,
    key: K,
    make: impl Fn(&K) -> V,
) -> Arc<V> {
    if let Some(found) = kept.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Arc::clone(found);
    }
    let mut kept = kept.write().unwrap_or_else(PoisonError::into_inner);
    let key = if kept.len() < MAX_SERIES || kept.contains_key(&key) { key } else { K::default() };
    Arc::clone(kept.entry(key).or_insert_with_key(|key| Arc::new(make(key))))
}

/// The response of `/metrics`.
pub(crate) async fn answer(inner: &Inner, method: &Method) -> Response<Body> {
    if method == Method::DELETE {
        inner.metrics.requests.write().unwrap_or_else(PoisonError::into_inner).clear();
        inner.metrics.events.write().unwrap_or_else(PoisonError::into_inner).clear();
        return answer::full(StatusCode::OK, "text/plain; charset=utf-8", "metrics reset\n");
    }
    let mut page = Page::new(|number| number.to_string());
    requests(inner, &mut page);
    watches(inner, &mut page);
    objects(inner, &mut page).await;
    crate::fair::measure(inner, &mut page);
    crate::audit::measure(inner.audit.as_ref(), &mut page);
    let help =
        "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, and platform.";
    page.family("kubernetes_build_info", "gauge", help);
    let version = crate::discovery::GIT_VERSION;
    page.sample("kubernetes_build_info", &[("git_version", version), ("major", "1"), ("minor", "36")], 1.0);
    process::write(&mut page);
    answer::full(StatusCode::OK, prometheus::CONTENT_TYPE, page.into_text())
}

fn requests(inner: &Inner, page: &mut Page) {
    let metrics = &inner.metrics;
    let requests = metrics.requests.read().unwrap_or_else(PoisonError::into_inner);
    let name = "apiserver_request_total";
    page.family(name, "counter", "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.");
    for (labels, measured) in &*requests {
        for (code, count) in &*measured.codes() {
            page.sample(name, &labels.with_code(&code.to_string()), *count as f64);
        }
    }
    let name = "apiserver_request_duration_seconds";
    page.family(name, "histogram", "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.");
    for (labels, measured) in requests.iter().filter(|(_, measured)| !measured.durations.is_empty()) {
        page.histogram(name, &labels.all(), &measured.durations);
    }
    let name = "apiserver_response_sizes";
    page.family(name, "histogram", "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.");
    for (labels, measured) in requests.iter().filter(|(_, measured)| !measured.sizes.is_empty()) {
        page.histogram(name, &labels.without_dry_run(), &measured.sizes);
    }
    let name = "apiserver_longrunning_requests";
    page.family(name, "gauge", "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.");
    for (labels, measured) in requests.iter().filter(|(labels, _)| labels.verb == "WATCH") {
        page.sample(name, &labels.without_dry_run(), measured.long_running.load(Relaxed) as f64);
    }
    let name = "apiserver_current_inflight_requests";
    page.family(name, "gauge", "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.");
    for (kind, count) in [("mutating", &metrics.writing), ("readOnly", &metrics.reading)] {
        page.sample(name, &[("request_kind", kind)], count.load(Relaxed) as f64);
    }
    let help = "[ALPHA] Number of requests dropped with 'TLS handshake error from' error";
    let count = metrics.failed_handshakes.load(Relaxed);
    page.single("apiserver_tls_handshake_errors_total", "counter", help, count as f64);
}

fn watches(inner: &Inner, page: &mut Page) {
    let events = inner.metrics.events.read().unwrap_or_else(PoisonError::into_inner);
    fn labels([group, version, resource]: &[String; 3]) -> [(&'static str, &str); 3] {
        [("group", group), ("resource", resource), ("version", version)]
    }
    let name = "apiserver_watch_events_total";
    page.family(name, "counter", "[ALPHA] Number of events sent in watch clients");
    for (of, events) in &*events {
        page.sample(name, &labels(of), events.count.load(Relaxed) as f64);
    }
    let name = "apiserver_watch_events_sizes";
    page.family(name, "histogram", "[ALPHA] Watch event size distribution in bytes");
    for (of, events) in &*events {
        page.histogram(name, &labels(of), &events.sizes);
    }
}

/// The number of stored objects, counted now. Kubernetes: -1 where that failed.
async fn objects(inner: &Inner, page: &mut Page) {
    let mut counts = BTreeMap::new();
    let customs = inner.registry.customs(&*inner.store).await.unwrap_or_default();
    for served in inner.registry.kept().chain(customs.all()) {
        let resource = &served.resource;
        let count = inner.store.count(Range::prefix(served.prefix(""))).await;
        let key = (resource.group.to_string(), resource.name.to_string());
        counts.entry(key).or_insert(count.map_or(-1.0, |count| count as f64));
    }
    let name = "apiserver_resource_objects";
    page.family(name, "gauge", "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.");
    for ((group, resource), count) in &counts {
        page.sample(name, &[("group", group), ("resource", resource)], *count);
    }
    let name = "apiserver_storage_objects";
    page.family(name, "gauge", "[STABLE] [DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.");
    for ((group, resource), count) in &counts {
        let resource = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        page.sample(name, &[("resource", &resource)], *count);
    }
    if let Ok(revision) = inner.store.revision().await {
        page.single(
            "setpoint_store_revision",
            "counter",
            "Commits so far: the latest resourceVersion.",
            revision.0 as f64,
        );
    }
}
