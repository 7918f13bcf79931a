//! Faults: which requests they affect, how often, and what happens to those.

mod effect;

pub(crate) use effect::{answer, error_response};

use crate::request_info::{RequestInfo, Sender};
use api::status::Reason;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use world::watch;

/// The most faults of one cluster.
const MAX_FAULTS: usize = 10_000;
/// Matches every verb or resource.
pub(crate) const ANY: &str = "*";
const WRITE: &str = "write";

/// Something that goes wrong for the requests that match a [`Rule`].
///
/// ```
/// use std::time::Duration;
/// use testing::Fault;
///
/// let third_write_conflicts = Fault::on("update", "deployments").named("web").nth(3).conflict();
/// let server_is_ill = Fault::on("*", "*").by("operator").times(10).error(503, "ServiceUnavailable");
/// let watch_breaks = Fault::on("watch", "pods").cut_after(2);
/// let answer_is_slow = Fault::on("patch", "pods/status").always().delay(Duration::from_secs(40));
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    rule: Rule,
    effect: Effect,
}

/// Which requests a fault affects: by default the first that matches.
#[derive(Clone, Debug)]
pub struct Rule {
    verb: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
    caller: Option<String>,
    group: Option<String>,
    /// The beginning of the User-Agent.
    agent: Option<String>,
    /// A resource that is not affected.
    excepted: Option<&'static str>,
    /// So many matching requests are not affected at first.
    skipped: u64,
    times: u64,
}

/// What happens to an affected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse {
        code: u16,
        reason: Reason,
    },
    Delay(Duration),
    LoseRequest,
    LoseAnswer,
    /// The client waits for ever.
    Hang {
        is_carried_out: bool,
        reached: Reached,
    },
    /// Answered with the state of so many revisions ago.
    Stale(u64),
    /// The watch ends after so many events.
    Watch {
        after: usize,
        end: WatchEnd,
    },
    /// Every event of a watch comes so much later.
    Lag(Duration),
}

/// Tells that a request hangs: not carried out, or carried out completely.
#[derive(Clone, Debug, Default)]
pub struct Reached(Arc<watch::Sender<bool>>);

impl Reached {
    pub fn set(&self) {
        self.0.set(true);
    }

    pub async fn wait(&self) {
        // The sender lives as long as this.
        self.0.subscribe().wait_for(|is_reached| *is_reached).await.expect("the sender is in self");
    }
}

/// The request at which a client crashes, from [`Rule::crash`].
#[derive(Clone, Debug)]
pub struct CrashPoint(Reached);

impl CrashPoint {
    /// Waits until the client has made that request.
    pub async fn reached(&self) {
        self.0.wait().await;
    }
}

impl PartialEq for Reached {
    fn eq(&self, other: &Reached) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Reached {}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// The connection breaks.
    Broken,
    /// The server closes the watch properly.
    Closed,
    /// With an ERROR event: the resourceVersion is too old.
    Expired,
}

impl Fault {
    /// Starts a rule for a verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`) and a resource (`pods`, `pods/status`); `*` matches any, and `write` matches
    /// any verb that does not read.
    pub fn on(verb: &str, resource: &str) -> Rule {
        Rule {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            namespace: None,
            name: None,
            caller: None,
            group: None,
            agent: None,
            excepted: None,
            skipped: 0,
            times: 1,
        }
    }
}

impl Rule {
    /// Only requests for the object of this name.
    pub fn named(mut self, name: &str) -> Rule {
        self.name = Some(name.to_owned());
        self
    }

    /// Only requests in this namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Rule {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only the requests of this user.
    pub fn by(mut self, user: &str) -> Rule {
        self.caller = Some(user.to_owned());
        self
    }

    /// Only requests for resources of this API group; the core group is empty.
    pub fn in_group(mut self, group: &str) -> Rule {
        self.group = Some(group.to_owned());
        self
    }

    /// Only requests whose User-Agent begins with this.
    pub fn by_agent(mut self, beginning: &str) -> Rule {
        self.agent = Some(beginning.to_owned());
        self
    }

    /// No requests for this resource.
    pub fn except(mut self, resource: &'static str) -> Rule {
        self.excepted = Some(resource);
        self
    }

    /// Only the `n`th matching request, counted from 1.
    pub fn nth(mut self, n: u64) -> Rule {
        (self.skipped, self.times) = (n.saturating_sub(1), 1);
        self
    }

    /// The first `n` matching requests.
    pub fn times(mut self, n: u64) -> Rule {
        self.times = n;
        self
    }

    /// The `n`th matching request and all after it, counted from 1. With [`Rule::lose_request`] on all
    /// requests of a client, it is as if the client had crashed there.
    pub fn from(mut self, n: u64) -> Rule {
        (self.skipped, self.times) = (n.saturating_sub(1), u64::MAX);
        self
    }

    /// Every matching request, until the fault is [lifted](Injected::lift).
    pub fn always(self) -> Rule {
        self.times(u64::MAX)
    }

    /// Answers with this status code and reason instead of doing anything.
    pub fn error(self, code: u16, reason: &str) -> Fault {
        self.with(Effect::Refuse { code, reason: reason.into() })
    }

    /// Answers with a conflict.
    pub fn conflict(self) -> Fault {
        self.error(409, "Conflict")
    }

    /// Answers that the resourceVersion is too old.
    pub fn expired(self) -> Fault {
        self.error(410, "Expired")
    }

    /// Delays the request before the server gets it.
    pub fn delay(self, duration: Duration) -> Fault {
        self.with(Effect::Delay(duration))
    }

    /// The connection breaks before the server gets the request.
    pub fn lose_request(self) -> Fault {
        self.with(Effect::LoseRequest)
    }

    /// The server carries out the request, and the connection breaks before the response.
    pub fn lose_answer(self) -> Fault {
        self.with(Effect::LoseAnswer)
    }

    /// The client waits for ever from the request on, which may be carried out before that: the test that waits for the
    /// [`CrashPoint`] drops the client then, as a crash would. Events do not count: they are written in the
    /// background, by a task that outlives its process here.
    pub fn crash(self, is_carried_out: bool) -> (Fault, CrashPoint) {
        let reached = Reached::default();
        (self.except("events").hang(is_carried_out, reached.clone()), CrashPoint(reached))
    }

    /// The client waits for ever, as if it had crashed here.
    pub fn hang(self, is_carried_out: bool, reached: Reached) -> Fault {
        self.with(Effect::Hang { is_carried_out, reached })
    }

    /// Answers a get or list with the state of so many revisions ago; starts a watch that much earlier.
    pub fn stale(self, revisions: u64) -> Fault {
        self.with(Effect::Stale(revisions))
    }

    /// Breaks the connection of a watch after so many events.
    pub fn cut_after(self, events: usize) -> Fault {
        self.with(Effect::Watch { after: events, end: WatchEnd::Broken })
    }

    /// Closes a watch properly after so many events.
    pub fn close_after(self, events: usize) -> Fault {
        self.with(Effect::Watch { after: events, end: WatchEnd::Closed })
    }

    /// Ends a watch after so many events with an ERROR event: its resourceVersion is too old.
    pub fn expire_after(self, events: usize) -> Fault {
        self.with(Effect::Watch { after: events, end: WatchEnd::Expired })
    }

    /// Delays every event of a watch.
    pub fn lag(self, duration: Duration) -> Fault {
        self.with(Effect::Lag(duration))
    }

    fn with(self, effect: Effect) -> Fault {
        Fault { rule: self, effect }
    }

    fn matches(&self, info: &RequestInfo, sender: &Sender) -> bool {
        let any = |wanted: &str, found: &str| wanted == ANY || wanted == found;
        let optional = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|it| it == found);
        (any(&self.verb, info.verb) || self.verb == WRITE && info.is_write())
            && any(&self.resource, &info.resource)
            && self.excepted.is_none_or(|resource| resource != info.resource)
            && optional(&self.namespace, &info.namespace)
            && optional(&self.name, &info.name)
            && optional(&self.group, &info.group)
            && optional(&self.caller, &sender.user)
            && self.agent.as_ref().is_none_or(|it| sender.agent.starts_with(it))
    }
}

/// A fault of a cluster.
#[derive(Clone, Debug)]
pub struct Injected(Arc<FaultState>);

#[derive(Debug)]
struct FaultState {
    fault: Fault,
    seen: AtomicU64,
    hits: AtomicU64,
    lifted: AtomicBool,
}

impl Injected {
    /// How many requests it has affected.
    pub fn hits(&self) -> u64 {
        self.0.hits.load(Ordering::SeqCst)
    }

    /// Ends the fault.
    pub fn lift(&self) {
        self.0.lifted.store(true, Ordering::SeqCst);
    }

    /// Counts a request, and returns whether it is affected.
    fn affects(&self, info: &RequestInfo, sender: &Sender) -> bool {
        let state = &*self.0;
        let rule = &state.fault.rule;
        if state.lifted.load(Ordering::SeqCst) || !rule.matches(info, sender) {
            return false;
        }
        let before = state.seen.fetch_add(1, Ordering::SeqCst);
        let affects = before >= rule.skipped && before - rule.skipped < rule.times;
        state.hits.fetch_add(u64::from(affects), Ordering::SeqCst);
        affects
    }
}

/// The faults of one cluster, in the order in which they were injected.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Injected>>);

impl Faults {
    /// Adds a fault.
    ///
    /// # Panics
    /// If there are too many.
    pub fn inject(&self, fault: Fault) -> Injected {
        let state = FaultState {
            fault,
            seen: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            lifted: AtomicBool::new(false),
        };
        let injected = Injected(Arc::new(state));
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.retain(|fault| !fault.0.lifted.load(Ordering::SeqCst));
        assert!(faults.len() < MAX_FAULTS, "more than {MAX_FAULTS} faults");
        faults.push(injected.clone());
        injected
    }

    pub fn lift_all(&self) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.drain(..).for_each(|fault| fault.lift());
    }

    /// What happens to a request. Every matching rule counts it.
    pub(crate) fn effects_on(&self, info: &RequestInfo, sender: &Sender) -> Vec<Effect> {
        let faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let affecting = faults.iter().filter(|fault| fault.affects(info, sender));
        affecting.map(|fault| fault.0.fault.effect.clone()).collect()
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Refuse { code, reason } => write!(out, "refused with {code} {reason}"),
            Effect::Delay(duration) => write!(out, "delayed by {duration:?}"),
            Effect::LoseRequest => out.write_str("request lost"),
            Effect::LoseAnswer => out.write_str("answer lost"),
            Effect::Hang { is_carried_out: false, .. } => out.write_str("crash before it"),
            Effect::Hang { is_carried_out: true, .. } => out.write_str("crash after it"),
            Effect::Stale(revisions) => write!(out, "{revisions} revisions stale"),
            Effect::Watch { after, end } => write!(out, "{end:?} after {after} events"),
            Effect::Lag(duration) => write!(out, "events {duration:?} late"),
        }
    }
}
