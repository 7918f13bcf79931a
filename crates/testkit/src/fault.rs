//! Faults by request: which requests are struck, how often, and what becomes of them.

mod strike;

pub(crate) use strike::{Lost, refusal};

use crate::asked::Asked;
use api::status::Reason;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Rules that a story may have in force at once.
const MAX_FAULTS: usize = 10_000;
const ANY: &str = "*";
const WRITE: &str = "write";

/// Something that goes wrong, for the requests that a [`Rule`] names.
///
/// ```
/// use std::time::Duration;
/// use testkit::Fault;
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

/// Which requests a fault strikes: by default the first that fits.
#[derive(Clone, Debug)]
pub struct Rule {
    verb: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
    caller: Option<String>,
    /// So many that fit are let through first.
    spared: u64,
    times: u64,
}

/// What becomes of a request that is struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse {
        code: u16,
        reason: Reason,
    },
    Delay(Duration),
    LoseRequest,
    LoseAnswer,
    /// Answered as of so many revisions ago.
    Stale(u64),
    /// What becomes of a watch after so many events.
    Watch {
        after: usize,
        end: End,
    },
    /// Every event of a watch comes this much later.
    Lag(Duration),
}

/// How a watch is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In the middle of it all, as when a connection breaks.
    Broken,
    /// In order, as when the server wants connections to be made anew.
    Closed,
    /// With an event that says that the version is too old.
    Expired,
}

impl Fault {
    /// Names a verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`) and a resource (`pods`, `pods/status`); `*` stands for any, and `write`
    /// for any verb that is no read.
    pub fn on(verb: &str, resource: &str) -> Rule {
        Rule {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            namespace: None,
            name: None,
            caller: None,
            spared: 0,
            times: 1,
        }
    }
}

impl Rule {
    pub fn named(mut self, name: &str) -> Rule {
        self.name = Some(name.to_owned());
        self
    }

    pub fn in_namespace(mut self, namespace: &str) -> Rule {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only the requests of this user.
    pub fn by(mut self, user: &str) -> Rule {
        self.caller = Some(user.to_owned());
        self
    }

    /// Only the `n`th that fits, counted from 1.
    pub fn nth(mut self, n: u64) -> Rule {
        (self.spared, self.times) = (n.saturating_sub(1), 1);
        self
    }

    /// The first `n` that fit.
    pub fn times(mut self, n: u64) -> Rule {
        self.times = n;
        self
    }

    /// The `n`th that fits and all after it, counted from 1: with the [loss](Rule::lose_request) of
    /// everything that somebody asks for, this is where it crashed.
    pub fn from(mut self, n: u64) -> Rule {
        (self.spared, self.times) = (n.saturating_sub(1), u64::MAX);
        self
    }

    /// Every one that fits, until the fault is [lifted](Injected::lift).
    pub fn always(self) -> Rule {
        self.times(u64::MAX)
    }

    /// Answers with this status code and reason, and does nothing.
    pub fn error(self, code: u16, reason: &str) -> Fault {
        self.with(Effect::Refuse { code, reason: reason.into() })
    }

    /// Says that somebody else was faster.
    pub fn conflict(self) -> Fault {
        self.error(409, "Conflict")
    }

    /// Says that the version is too old to list or watch from.
    pub fn expired(self) -> Fault {
        self.error(410, "Expired")
    }

    /// Holds the request back for so long before the server sees it.
    pub fn delay(self, duration: Duration) -> Fault {
        self.with(Effect::Delay(duration))
    }

    /// The connection breaks before the server has seen the request.
    pub fn lose_request(self) -> Fault {
        self.with(Effect::LoseRequest)
    }

    /// The server does what is asked, and the connection breaks before it can say so.
    pub fn lose_answer(self) -> Fault {
        self.with(Effect::LoseAnswer)
    }

    /// Answers a get or list as it was so many revisions ago; starts a watch that much earlier.
    pub fn stale(self, revisions: u64) -> Fault {
        self.with(Effect::Stale(revisions))
    }

    /// Breaks the connection of a watch after so many events.
    pub fn cut_after(self, events: usize) -> Fault {
        self.with(Effect::Watch { after: events, end: End::Broken })
    }

    /// Ends a watch in good order after so many events.
    pub fn close_after(self, events: usize) -> Fault {
        self.with(Effect::Watch { after: events, end: End::Closed })
    }

    /// Ends a watch after so many events with one that says that its version is too old.
    pub fn expire_after(self, events: usize) -> Fault {
        self.with(Effect::Watch { after: events, end: End::Expired })
    }

    /// Tells every event of a watch so much later.
    pub fn lag(self, duration: Duration) -> Fault {
        self.with(Effect::Lag(duration))
    }

    fn with(self, effect: Effect) -> Fault {
        Fault { rule: self, effect }
    }

    fn fits(&self, asked: &Asked, caller: &str) -> bool {
        let any = |wanted: &str, found: &str| wanted == ANY || wanted == found;
        let said = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|it| it == found);
        (any(&self.verb, asked.verb) || self.verb == WRITE && asked.is_write())
            && any(&self.resource, &asked.resource)
            && said(&self.namespace, &asked.namespace)
            && said(&self.name, &asked.name)
            && said(&self.caller, caller)
    }
}

/// A fault in force.
#[derive(Clone, Debug)]
pub struct Injected(Arc<State>);

#[derive(Debug)]
struct State {
    fault: Fault,
    seen: AtomicU64,
    hits: AtomicU64,
    lifted: AtomicBool,
}

impl Injected {
    /// How many requests it has struck.
    pub fn hits(&self) -> u64 {
        self.0.hits.load(Ordering::SeqCst)
    }

    /// Strikes no more.
    pub fn lift(&self) {
        self.0.lifted.store(true, Ordering::SeqCst);
    }

    /// Counts a request; says whether it is struck.
    fn strikes(&self, asked: &Asked, caller: &str) -> bool {
        let state = &*self.0;
        let rule = &state.fault.rule;
        if state.lifted.load(Ordering::SeqCst) || !rule.fits(asked, caller) {
            return false;
        }
        let before = state.seen.fetch_add(1, Ordering::SeqCst);
        let strikes = before >= rule.spared && before - rule.spared < rule.times;
        state.hits.fetch_add(u64::from(strikes), Ordering::SeqCst);
        strikes
    }
}

/// The faults of one cluster, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Vec<Injected>>);

impl Faults {
    pub(crate) fn inject(&self, fault: Fault) -> Injected {
        let state =
            State { fault, seen: AtomicU64::new(0), hits: AtomicU64::new(0), lifted: AtomicBool::new(false) };
        let injected = Injected(Arc::new(state));
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(faults.len() < MAX_FAULTS, "more than {MAX_FAULTS} faults");
        faults.push(injected.clone());
        injected
    }

    pub(crate) fn lift_all(&self) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.drain(..).for_each(|fault| fault.lift());
    }

    /// What happens to a request. Every rule that it fits counts it.
    pub(crate) fn striking(&self, asked: &Asked, caller: &str) -> Vec<Effect> {
        let faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let striking = faults.iter().filter(|fault| fault.strikes(asked, caller));
        striking.map(|fault| fault.0.fault.effect.clone()).collect()
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Refuse { code, reason } => write!(out, "refused with {code} {reason}"),
            Effect::Delay(duration) => write!(out, "delayed by {duration:?}"),
            Effect::LoseRequest => out.write_str("request lost"),
            Effect::LoseAnswer => out.write_str("answer lost"),
            Effect::Stale(revisions) => write!(out, "{revisions} revisions stale"),
            Effect::Watch { after, end } => write!(out, "{end:?} after {after} events"),
            Effect::Lag(duration) => write!(out, "events {duration:?} late"),
        }
    }
}
