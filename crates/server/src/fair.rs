//! API priority and fairness: gives a request its seat, lets it wait, or rejects it.
//!
//! FlowSchemas classify requests into priority levels and flows, PriorityLevelConfigurations give each level
//! its seats. Within a level, flows wait in queues that take turns, so that a noisy flow delays only
//! itself. The rules are in `levels` and `queues`, which know neither clock nor tasks; this file calls them
//! and does the waiting. No task runs while there are no requests.

mod deadline;
mod deal;
mod demand;
mod dropped;
mod dump;
mod extent;
mod levels;
mod meters;
mod queues;
mod rejection;
mod rule;
mod sending;
mod settings;
mod share;
pub(crate) mod status;
#[cfg(test)]
mod tests;
mod upkeep;
mod wait;
mod watches;
mod width;

pub(crate) use deadline::Deadline;
pub(crate) use dump::{PATH as DUMP, answer as dump};
pub(crate) use meters::measure;
pub(crate) use status::write_statuses;
pub(crate) use upkeep::ensure;

use crate::{
    Body, Inner, answer,
    authenticate::Caller,
    authorize::{Attributes, OnResource},
    live::Live,
    request::{Match, Options, Place, Target},
};
use extent::Extents;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use levels::Levels;
use meters::{Counted, Meter, Meters};
use queues::{Dispatched, Seats};
use settings::{CATCH_ALL, Distinguisher, PriorityLevel, Schema, View, in_order};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};
use tokio::sync::oneshot;
use wait::{SeatRequest, give_back, take};
use watches::{Watch, Watches};
use width::{Reading, Width};
use world::{Moment, World};

/// Seats of the server; a usual request takes one.
// Kubernetes: --max-requests-inflight and --max-mutating-requests-inflight together.
pub(crate) const SEATS: u32 = 400 + 200;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
// Kubernetes: plain text, not a Status.
const REFUSAL: &str = "Too many requests, please try again later.\n";

#[derive(Debug)]
pub(crate) struct Fair {
    start: Moment,
    schemas: Live<View<Schema>>,
    levels: Live<View<PriorityLevel>>,
    state: Mutex<FairState>,
    watches: Watches,
    extents: Extents,
    meters: Meters,
    /// Whether a task will check the mandatory and suggested objects soon.
    upkeep: AtomicBool,
}

/// A schema and the meter of its requests.
#[derive(Clone, Debug)]
struct CountedSchema {
    schema: Arc<Schema>,
    /// The name of its priority level.
    level: Arc<str>,
    meter: Arc<Meter>,
}

#[derive(Debug)]
struct FairState {
    /// The change counters of schemas and levels when they were last read.
    seen: Option<(u64, u64)>,
    /// In matching order.
    schemas: Arc<Vec<CountedSchema>>,
    levels: Levels<oneshot::Sender<Seats>>,
    /// Levels with a task that waits for lingering seats to be freed.
    armed: BTreeSet<String>,
}

/// A request to classify.
struct FlowRequest<'a> {
    caller: &'a Caller,
    wanted: Attributes<'a>,
    target: Option<&'a Target>,
    options: &'a Options,
}

/// The seats of a running request. They are released when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    inner: Arc<Inner>,
    taken: Option<(Arc<str>, Seats)>,
    executing: Option<Executing>,
    flow_headers: Option<FlowHeaders>,
    watch: Option<Watch>,
}

/// A running request, for metrics.
#[derive(Debug)]
struct Executing {
    meter: Arc<Meter>,
    since: Moment,
    is_watch: bool,
    _counted: Counted,
}

/// Headers with the UIDs of schema and level. Not their names, which may be confidential.
#[derive(Clone, Debug)]
struct FlowHeaders {
    schema: HeaderValue,
    level: HeaderValue,
}

/// Waits for a seat, or rejects the request.
pub(crate) async fn seat(
    inner: &Arc<Inner>,
    caller: &Caller,
    method: &Method,
    place: &Place,
    options: &Options,
    deadline: Deadline,
) -> Result<Seat, Response<Body>> {
    let mut seat =
        Seat { inner: Arc::clone(inner), taken: None, executing: None, flow_headers: None, watch: None };
    let verb;
    let (wanted, target) = match place {
        Place::Other(path) => {
            verb = method.as_str().to_lowercase();
            (Attributes::Path { verb: &verb, path }, None)
        }
        Place::Resource(target) => match target.verb(method, options.watch) {
            Some(verb) if !deadline::is_connection(target) => {
                (Attributes::Resource(OnResource::of(verb, target, options)), Some(target))
            }
            _ => return Ok(seat),
        },
    };
    let request = FlowRequest { caller, wanted, target, options };
    let fair = &inner.fair;
    fair.refresh(inner).await;
    let classified = fair.classify(&request);
    let level = &*classified.level;
    let width = fair.width(inner, &request, classified.widest).await;
    let (meter, since) = (&classified.meter, inner.world.now());
    meter.arrives(width);
    let wish = SeatRequest { level, flow: classified.flow, width, patience: deadline.wait(), meter };
    match take(inner, wish).await {
        Ok(seats) => seat.taken = Some((Arc::clone(&classified.level), seats)),
        Err(_) => {
            let after = fair.lock().levels.rejected(fair.now(&inner.world), level);
            return Err(classified.flow_headers.put_on(refusal(after)));
        }
    }
    seat.flow_headers = Some(classified.flow_headers);
    let now = inner.world.now();
    let waited = classified.widest.is_some().then(|| now.since(since));
    let is_watch = matches!(&request.wanted, Attributes::Resource(wanted) if wanted.verb == "watch");
    let _counted = meter.dispatches(width, waited);
    seat.executing = Some(Executing { meter: Arc::clone(meter), since: now, is_watch, _counted });
    if let Attributes::Resource(wanted) = &request.wanted
        && wanted.verb == "watch"
    {
        seat.watch = Watch::begin(inner, wanted);
    }
    Ok(seat)
}

fn refusal(after: u64) -> Response<Body> {
    let mut response = answer::full(StatusCode::TOO_MANY_REQUESTS, "text/plain; charset=utf-8", REFUSAL);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(after));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The schema, level and flow of a request.
struct Classified {
    flow_headers: FlowHeaders,
    meter: Arc<Meter>,
    level: Arc<str>,
    flow: u64,
    widest: Option<u32>,
}

impl Fair {
    pub(crate) fn new(world: &World, seats: u32) -> Fair {
        let mut levels = Levels::new(seats, Duration::ZERO);
        drop(levels.configure(Duration::ZERO, Vec::new()));
        let meters = Meters::default();
        let schemas = meters.sorts(in_order(std::iter::empty(), |name| levels.has(name)));
        Fair {
            start: world.now(),
            schemas: Live::new("/registry/flowschemas/", View::default()),
            levels: Live::new("/registry/prioritylevelconfigurations/", View::default()),
            state: Mutex::new(FairState { seen: None, schemas, levels, armed: BTreeSet::new() }),
            watches: Watches::default(),
            extents: Extents::default(),
            meters,
            upkeep: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, FairState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self, world: &World) -> Duration {
        world.now().since(self.start)
    }

    /// Reads changed schemas and levels. If that fails, the old ones stay in force.
    async fn refresh(&self, inner: &Inner) {
        let store = inner.store.as_ref();
        let Ok(schemas) = self.schemas.look(store, |view| view.changes).await else { return };
        let Ok(levels) = self.levels.look(store, |view| view.changes).await else { return };
        if self.lock().seen == Some((schemas, levels)) {
            return;
        }
        let all = |view: &View<Schema>| (view.changes, view.objects.values().cloned().collect::<Vec<_>>());
        let Ok((schema_changes, schemas)) = self.schemas.look(store, all).await else { return };
        let all =
            |view: &View<PriorityLevel>| (view.changes, view.objects.values().cloned().collect::<Vec<_>>());
        let Ok((level_changes, levels)) = self.levels.look(store, all).await else { return };
        let mut state = self.lock();
        let is_older = state.seen.is_some_and(|(one, other)| one > schema_changes || other > level_changes);
        if is_older {
            return;
        }
        state.seen = Some((schema_changes, level_changes));
        let dispatched = state.levels.configure(self.now(&inner.world), levels);
        state.send_seats(dispatched);
        state.schemas = self.meters.sorts(in_order(schemas.into_iter(), |name| state.levels.has(name)));
    }

    fn classify(&self, request: &FlowRequest<'_>) -> Classified {
        let schemas = Arc::clone(&self.lock().schemas);
        let matches = |counted: &&CountedSchema| {
            counted.schema.spec.rules.iter().any(|rule| rule.matches(request.caller, &request.wanted))
        };
        let last = || schemas.iter().find(|counted| counted.schema.metadata.name == CATCH_ALL);
        let counted = schemas.iter().find(matches).or_else(last).expect("catch-all matches every request");
        let CountedSchema { schema, level, meter } = counted;
        // The level may have been removed meanwhile.
        let terms = self.lock().levels.terms(level).map(|terms| (Arc::clone(level), terms));
        let last = || {
            let terms = self.lock().levels.terms(CATCH_ALL).expect("the level catch-all always exists");
            (Arc::from(CATCH_ALL), terms)
        };
        let (level, terms) = terms.unwrap_or_else(last);
        let flow = match terms.has_flows {
            true => deal::flow(&schema.metadata.name, distinguisher(schema, request)),
            false => 0,
        };
        let flow_headers = FlowHeaders { schema: schema.metadata.uid.clone(), level: terms.uid };
        Classified { flow_headers, meter: Arc::clone(meter), level, flow, widest: terms.widest }
    }

    async fn width(&self, inner: &Inner, request: &FlowRequest<'_>, widest: Option<u32>) -> Width {
        let (Attributes::Resource(wanted), Some(target)) = (&request.wanted, request.target) else {
            return Width::ONE;
        };
        match wanted.verb {
            "list" => self.width_of_list(inner, wanted, target, request.options, widest).await,
            "watch" if begins_with_list(request.options) => {
                self.width_of_list(inner, wanted, target, request.options, widest).await
            }
            // Token requests send no watch events.
            "create" if wanted.resource == "serviceaccounts" && wanted.subresource == "token" => Width::ONE,
            "create" | "update" | "patch" | "delete" => Width::write(self.watches.events_for(wanted), widest),
            _ => Width::ONE,
        }
    }

    async fn width_of_list(
        &self,
        inner: &Inner,
        wanted: &OnResource<'_>,
        target: &Target,
        options: &Options,
        widest: Option<u32>,
    ) -> Width {
        let Some(extent) = self.extents.of(inner, target, self.now(&inner.world)).await else {
            return Width::ONE;
        };
        let reading = Reading {
            is_single: !wanted.name.is_empty(),
            is_latest: wanted.verb == "watch" || is_latest(options),
            is_selective: !options.labels.is_everything() || !options.fields.is_everything(),
            limit: options.limit,
        };
        Width::list(extent, reading, widest)
    }
}

fn distinguisher<'a>(schema: &Schema, request: &FlowRequest<'a>) -> &'a str {
    match (schema.spec.distinguisher_method.as_ref().map(|method| method.by), &request.wanted) {
        (Some(Distinguisher::ByUser), _) => &request.caller.name,
        (Some(Distinguisher::ByNamespace), Attributes::Resource(wanted)) => wanted.namespace,
        _ => "",
    }
}

/// Whether a watch begins with the existing objects.
fn begins_with_list(options: &Options) -> bool {
    options.initial_events == Some(true) || matches!(options.resource_version.as_str(), "" | "0")
}

/// Whether a list can be served at the latest revision.
fn is_latest(options: &Options) -> bool {
    let is_any = matches!(options.resource_version.as_str(), "" | "0");
    match &options.version_match {
        Some(version_match) => *version_match != Match::Exact,
        None => options.continue_token.is_empty() && (is_any || options.limit == 0),
    }
}

impl FairState {
    /// Sends waiting requests their seats.
    fn send_seats(&mut self, dispatched: Vec<Dispatched<oneshot::Sender<Seats>>>) {
        for Dispatched { waiter, seats } in dispatched {
            // A waiter that gives up first takes its ticket back, under the same lock.
            let _ = waiter.send(seats);
        }
    }
}

impl FlowHeaders {
    fn put_on(self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        headers.insert(SCHEMA_UID, self.schema);
        headers.insert(LEVEL_UID, self.level);
        response
    }
}

impl Seat {
    /// Whether requests wait for seats of this level.
    fn is_wanted(&self) -> bool {
        let level = self.taken.as_ref().map_or("", |(level, _)| level);
        self.inner.fair.lock().levels.waiting(level) > 0
    }

    /// Releases the seat once the response is sent, and adds the headers of the classification.
    pub(crate) fn release_after(mut self, response: Response<Body>) -> Response<Body> {
        let response = match self.flow_headers.take() {
            Some(flow_headers) => flow_headers.put_on(response),
            None => response,
        };
        match self.watch.take() {
            Some(watch) if response.status() == StatusCode::OK => watch.during(response),
            _ => sending::send(self, response),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(executing) = self.executing.take() {
            let lasted = self.inner.world.now().since(executing.since);
            executing.meter.lasted(executing.is_watch, lasted);
        }
        if let Some((level, seats)) = self.taken.take() {
            give_back(&self.inner, &level, seats);
        }
    }
}
