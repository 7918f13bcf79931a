//! What was asked of the cluster, by whom, and what it answered: the last so many requests.

use crate::asked::Asked;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::watch;
use world::World;

/// Older requests are forgotten: a story that fails is explained by its end.
const KEPT: usize = 2_000;
/// So many of the last requests are printed when a test fails.
const PRINTED: usize = 100;

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time since the cluster was started.
    pub at: Duration,
    pub caller: String,
    pub verb: &'static str,
    /// With the subresource: `pods`, `pods/status`.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// Path and query.
    pub path: String,
    /// The code that the caller saw; `None` when it got no answer, or has not got one yet.
    pub code: Option<u16>,
    /// The resourceVersion of the answer, where it has one.
    pub resource_version: Option<u64>,
    /// What a fault did to it.
    pub fault: Option<String>,
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>12.6}s {:<16} {:<7} {} ", self.at.as_secs_f64(), self.caller, self.verb, self.path)?;
        match self.code {
            Some(code) => write!(out, "→ {code}")?,
            None => out.write_str("→ no answer")?,
        }
        if let Some(version) = self.resource_version {
            write!(out, " @{version}")?;
        }
        match &self.fault {
            Some(fault) => write!(out, "  ({fault})"),
            None => Ok(()),
        }
    }
}

/// Requests in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub entries: Vec<Entry>,
    /// How many came before and are forgotten.
    pub forgotten: u64,
}

impl Trace {
    /// Those with this verb on this resource; `*` stands for any.
    pub fn of(&self, verb: &str, resource: &str) -> Vec<&Entry> {
        let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
        self.entries.iter().filter(|it| fits(verb, it.verb) && fits(resource, &it.resource)).collect()
    }

    /// Those that may have changed something.
    pub fn writes(&self) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| !matches!(entry.verb, "get" | "list" | "watch")).collect()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.entries.len().saturating_sub(PRINTED);
        let before = self.forgotten + shown as u64;
        if before > 0 {
            writeln!(out, "… {before} requests before")?;
        }
        self.entries[shown..].iter().try_for_each(|entry| writeln!(out, "{entry}"))
    }
}

/// Where requests are noted.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    recorded: Mutex<Recorded>,
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Recorded {
    entries: VecDeque<Entry>,
    forgotten: u64,
}

/// The place of a request in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted(u64);

impl Recorder {
    pub(crate) fn note(&self, at: Duration, caller: &str, asked: &Asked, path: String) -> Noted {
        let Asked { verb, resource, namespace, name } = asked.clone();
        let caller = caller.to_owned();
        let (code, resource_version, fault) = (None, None, None);
        let entry =
            Entry { at, caller, verb, resource, namespace, name, path, code, resource_version, fault };
        self.count.send_modify(|count| *count += 1);
        self.with(|recorded| {
            if recorded.entries.len() == KEPT {
                recorded.entries.pop_front();
                recorded.forgotten += 1;
            }
            recorded.entries.push_back(entry);
            Noted(recorded.forgotten + recorded.entries.len() as u64 - 1)
        })
    }

    /// Adds to what was noted, if it is still known.
    pub(crate) fn amend(&self, noted: Noted, change: impl FnOnce(&mut Entry)) {
        self.with(|recorded| {
            let index = noted.0.checked_sub(recorded.forgotten).map(|index| index as usize);
            if let Some(entry) = index.and_then(|index| recorded.entries.get_mut(index)) {
                change(entry);
            }
        });
    }

    pub(crate) fn trace(&self) -> Trace {
        self.with(|recorded| Trace {
            entries: recorded.entries.iter().cloned().collect(),
            forgotten: recorded.forgotten,
        })
    }

    /// Sleeps, but not longer than until there have been so many requests: those who ask
    /// without pause let no time pass.
    pub(crate) async fn sleep_or_overrun(&self, world: &World, duration: Duration, requests: u64) {
        let mut count = self.count.subscribe();
        let overrun = std::pin::pin!(count.wait_for(|count| *count >= requests));
        futures::future::select(std::pin::pin!(world.sleep(duration)), overrun).await;
    }

    /// How many requests there have been.
    pub(crate) fn count(&self) -> u64 {
        *self.count.borrow()
    }

    fn with<R>(&self, act: impl FnOnce(&mut Recorded) -> R) -> R {
        act(&mut self.recorded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
