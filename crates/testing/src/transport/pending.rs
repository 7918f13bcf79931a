//! What a cluster still waits for: requests without a response, and clients whose watch has ended.

use crate::{
    fault::ANY,
    request_info::{RequestInfo, Sender},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::oneshot;
use world::{Moment, World, watch};

/// How long to wait for a client whose watch has ended to watch again.
const RETURN_LIMIT: Duration = Duration::from_secs(120);

/// A client and the path that it watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchSource {
    caller: String,
    path: String,
    is_outside: bool,
}

impl WatchSource {
    pub(crate) fn new(sender: &Sender, path: &str) -> WatchSource {
        let caller = if sender.user.is_empty() { &sender.agent } else { &sender.user };
        WatchSource { caller: caller.clone(), path: path.to_owned(), is_outside: sender.is_outside }
    }

    /// Whether the client is another process.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_outside
    }
}

#[derive(Clone, Debug, Default)]
pub struct Pending(Arc<Mutex<PendingState>>);

#[derive(Debug, Default)]
struct PendingState {
    last_id: u64,
    requests: BTreeMap<u64, PendingRequest>,
    outside_requests: u64,
    /// Events of watches of other processes that have ended.
    outside_events: u64,
    watches: BTreeMap<u64, OpenWatch>,
    /// Clients whose watch was ended, and when.
    expected_back: BTreeMap<WatchSource, Moment>,
    /// Resources whose events are held back: how many times, and a channel that closes in the end.
    held: BTreeMap<String, (usize, watch::Sender<()>)>,
}

/// A request, or an event, that has not arrived.
#[derive(Debug)]
struct PendingRequest {
    what: String,
    /// Nothing becomes of it before the clock of the cluster goes on.
    waits_for_clock: bool,
}

/// Which requests count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    All,
    /// Only those that do not wait for the clock of the cluster.
    AtThisMoment,
}

#[derive(Debug)]
struct OpenWatch {
    resource: String,
    source: WatchSource,
    progress: Arc<WatchProgress>,
    /// Dropping it breaks the connection.
    _connection: oneshot::Sender<()>,
}

/// How far the events of a watch have come.
#[derive(Debug, Default)]
pub(crate) struct WatchProgress {
    /// Events that its connection has taken.
    pub(crate) delivered: AtomicU64,
    /// Whether the server has no event for it at present.
    pub(crate) is_up_to_date: AtomicBool,
}

/// What clients in other processes have seen so far: changes when one of them sends a request or gets an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutsideProgress {
    pub(crate) requests: u64,
    pub(crate) events: u64,
}

/// A pending request or watch; dropping it ends that.
#[derive(Debug)]
pub(crate) struct InFlight {
    pending: Pending,
    id: u64,
}

/// A resource whose events are held back until this is dropped.
#[derive(Debug)]
#[must_use = "events are no longer held back when this is dropped"]
pub struct HeldWatches {
    pending: Pending,
    resource: String,
}

impl Pending {
    pub(crate) fn start(&self, info: &RequestInfo, source: &WatchSource, path: &str) -> InFlight {
        if source.is_outside {
            self.with(|state| state.outside_requests += 1);
        }
        if matches!(info.verb, "watch" | "list") {
            self.with(|state| state.expected_back.remove(source));
        }
        self.add(format!("{} {path} by {}", info.verb, source.caller))
    }

    /// Adds something that is pending until the result is dropped.
    pub(crate) fn add(&self, what: String) -> InFlight {
        let id = self.with(|state| {
            state.last_id += 1;
            state.requests.insert(state.last_id, PendingRequest { what, waits_for_clock: false });
            state.last_id
        });
        InFlight { pending: self.clone(), id }
    }

    /// Adds a watch; the receiver resolves when its connection is to break.
    pub(crate) fn add_watch(
        &self,
        resource: &str,
        source: &WatchSource,
    ) -> (InFlight, oneshot::Receiver<()>, Arc<WatchProgress>) {
        let (connection, is_broken) = oneshot::channel();
        let progress = Arc::new(WatchProgress::default());
        let id = self.with(|state| {
            state.last_id += 1;
            let (resource, source) = (resource.to_owned(), source.clone());
            let progress = Arc::clone(&progress);
            state
                .watches
                .insert(state.last_id, OpenWatch { resource, source, progress, _connection: connection });
            state.last_id
        });
        (InFlight { pending: self.clone(), id }, is_broken, progress)
    }

    /// A client's watch has ended: wait until it watches again.
    pub(crate) fn expect_back(&self, world: &World, source: &WatchSource) {
        self.with(|state| state.expected_back.insert(source.clone(), world.now()));
    }

    /// Breaks the connections of all watches of a resource, or of all with `*`; returns how many.
    pub fn disconnect(&self, resource: &str) -> usize {
        let broken: Vec<OpenWatch> = self.with(|state| {
            let fits = |it: &OpenWatch| resource == ANY || it.resource == resource;
            let ids: Vec<u64> = state.watches.iter().filter(|(_, it)| fits(it)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| state.watches.remove(id)).collect()
        });
        let count = broken.len();
        drop(broken);
        count
    }

    pub fn hold(&self, resource: &str) -> HeldWatches {
        self.with(|state| {
            let held = state.held.entry(resource.to_owned());
            held.or_insert_with(|| (0, watch::Sender::new(()))).0 += 1;
        });
        HeldWatches { pending: self.clone(), resource: resource.to_owned() }
    }

    /// Waits until events of the resource are not held back.
    pub(crate) async fn released(&self, resource: &str) {
        loop {
            let held = self.with(|state| {
                let held = state.held.get(resource).or_else(|| state.held.get(ANY));
                held.map(|(_, held)| held.subscribe())
            });
            match held {
                // The channel is closed when they no longer are.
                Some(mut held) => drop(held.changed().await),
                None => return,
            }
        }
    }

    pub(crate) fn outside(&self) -> OutsideProgress {
        self.with(|state| {
            let watches = state.watches.values().filter(|watch| watch.source.is_outside);
            let open: u64 = watches.map(|watch| watch.progress.delivered.load(SeqCst)).sum();
            OutsideProgress { requests: state.outside_requests, events: state.outside_events + open }
        })
    }

    /// Watches of other processes whose connection has not taken all events, as text.
    pub(crate) fn behind(&self) -> Vec<String> {
        self.with(|state| {
            let watches = state.watches.values().filter(|watch| watch.source.is_outside);
            let behind = watches.filter(|watch| !watch.progress.is_up_to_date.load(SeqCst));
            behind
                .map(|it| format!("{} has not read all events of {}", it.source.caller, it.source.path))
                .collect()
        })
    }

    /// Whether a request waits for its response, and not for the clock of the cluster.
    pub(crate) fn has_requests(&self) -> bool {
        self.with(|state| state.requests.values().any(|request| !request.waits_for_clock))
    }

    /// What is pending, as text.
    pub fn busy(&self, world: &World) -> Vec<String> {
        self.busy_with(world, Counted::All)
    }

    pub(crate) fn busy_with(&self, world: &World, counted: Counted) -> Vec<String> {
        let now = world.now();
        self.with(|state| {
            state.expected_back.retain(|_, since| now.since(*since) < RETURN_LIMIT);
            let expected_back = state
                .expected_back
                .keys()
                .map(|it| format!("{} has not come back to watch {}", it.caller, it.path));
            let counts = |it: &&PendingRequest| counted == Counted::All || !it.waits_for_clock;
            let requests = state.requests.values().filter(counts).map(|request| request.what.clone());
            requests.chain(expected_back).collect()
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut PendingState) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl InFlight {
    /// Says whether it waits for the clock of the cluster.
    pub(crate) fn wait_for_clock(&self, waits_for_clock: bool) {
        self.pending.with(|state| {
            if let Some(request) = state.requests.get_mut(&self.id) {
                request.waits_for_clock = waits_for_clock;
            }
        });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let removed = self.pending.with(|state| {
            state.requests.remove(&self.id);
            let watch = state.watches.remove(&self.id);
            if let Some(watch) = watch.as_ref().filter(|watch| watch.source.is_outside) {
                state.outside_events += watch.progress.delivered.load(SeqCst);
            }
            watch
        });
        drop(removed);
    }
}

impl Drop for HeldWatches {
    fn drop(&mut self) {
        let ended = self.pending.with(|state| {
            let held = state.held.get_mut(&self.resource)?;
            held.0 -= 1;
            (held.0 == 0).then(|| state.held.remove(&self.resource)).flatten()
        });
        drop(ended);
    }
}
