//! The last requests to the cluster and their responses.

use crate::request_info::{RequestInfo, Sender};
use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use world::World;
use world::watch;

/// Older requests are forgotten: the last ones explain a failure.
const KEPT: usize = 20_000;
/// The memory of their texts: anyone can send long ones.
const KEPT_BYTES: usize = 16 << 20;
/// The rest of a longer path, name or agent is left out.
const LONGEST_TEXT: usize = 1024;

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time since the cluster was started.
    pub at: Duration,
    /// The name of the user.
    pub caller: String,
    /// The User-Agent of its client; empty for most clients inside this process.
    pub agent: String,
    /// The verb, as RBAC names it.
    pub verb: &'static str,
    /// With the subresource: `pods`, `pods/status`.
    pub resource: String,
    /// Empty for cluster-scoped resources, and for all namespaces.
    pub namespace: String,
    /// Empty for lists.
    pub name: String,
    /// Path and query.
    pub path: String,
    /// The status code; `None` if the client got no response, or has not got it yet.
    pub code: Option<u16>,
    /// The resourceVersion of the response, if it has one.
    pub resource_version: Option<u64>,
    /// The faults that affected it.
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
    /// The last requests.
    pub entries: Vec<Entry>,
    /// How many earlier requests are forgotten.
    pub forgotten: u64,
}

impl Trace {
    /// The requests with this verb on this resource; `*` matches any.
    pub fn of(&self, verb: &str, resource: &str) -> Vec<&Entry> {
        let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
        self.entries.iter().filter(|it| fits(verb, it.verb) && fits(resource, &it.resource)).collect()
    }

    /// The requests that may have changed something.
    pub fn writes(&self) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| !matches!(entry.verb, "get" | "list" | "watch")).collect()
    }
}

/// One line for each request.
impl fmt::Display for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            writeln!(out, "… {} requests before", self.forgotten)?;
        }
        self.entries.iter().try_for_each(|entry| writeln!(out, "{entry}"))
    }
}

/// Records requests.
#[derive(Debug, Default)]
pub struct Recorder {
    recorded: Mutex<Recorded>,
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Recorded {
    entries: VecDeque<Entry>,
    /// Of their texts.
    bytes: usize,
    forgotten: u64,
}

/// The number of a recorded request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryId(u64);

impl Recorder {
    pub(crate) fn add(&self, at: Duration, sender: &Sender, info: &RequestInfo, path: String) -> EntryId {
        let RequestInfo { verb, resource, namespace, name, .. } = info.clone();
        let Sender { user: caller, agent, .. } = sender.clone();
        let (code, resource_version, fault) = (None, None, None);
        let [caller, agent, resource, namespace, name, path] =
            [caller, agent, resource, namespace, name, path].map(cut);
        let entry =
            Entry { at, caller, agent, verb, resource, namespace, name, path, code, resource_version, fault };
        self.count.modify(|count| *count += 1);
        self.with(|recorded| recorded.add(entry))
    }

    /// Changes an entry, unless it is forgotten.
    pub(crate) fn update(&self, id: EntryId, change: impl FnOnce(&mut Entry)) {
        self.with(|recorded| {
            let index = id.0.checked_sub(recorded.forgotten).map(|index| index as usize);
            if let Some(entry) = index.and_then(|index| recorded.entries.get_mut(index)) {
                change(entry);
            }
        });
    }

    pub fn trace(&self) -> Trace {
        self.with(|recorded| Trace {
            entries: recorded.entries.iter().cloned().collect(),
            forgotten: recorded.forgotten,
        })
    }

    /// Sleeps, but at most until there have been so many requests: virtual time does not pass while
    /// clients send requests without a pause.
    pub async fn sleep_or_overrun(&self, world: &World, duration: Duration, requests: u64) {
        let mut count = self.count.subscribe();
        let overrun = std::pin::pin!(count.wait_for(|count| *count >= requests));
        futures::future::select(std::pin::pin!(world.sleep(duration)), overrun).await;
    }

    /// How many requests there have been.
    pub fn count(&self) -> u64 {
        self.count.value()
    }

    fn with<R>(&self, act: impl FnOnce(&mut Recorded) -> R) -> R {
        act(&mut self.recorded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Recorded {
    fn add(&mut self, entry: Entry) -> EntryId {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > KEPT || self.bytes > KEPT_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.forgotten += 1;
        }
        EntryId(self.forgotten + self.entries.len() as u64 - 1)
    }
}

impl Entry {
    /// Of the texts that the client has chosen.
    fn bytes(&self) -> usize {
        let Entry { caller, agent, resource, namespace, name, path, .. } = self;
        [caller, agent, resource, namespace, name, path].iter().map(|text| text.len()).sum()
    }
}

/// A long text without its end.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_the_oldest_requests_are_forgotten() {
        let recorder = Recorder::default();
        let long = "é".repeat(30_000);
        let sender = Sender { user: "anyone".to_owned(), agent: long.clone(), ..Sender::default() };
        let info = RequestInfo { name: long.clone(), ..RequestInfo::default() };
        let add = || recorder.add(Duration::ZERO, &sender, &info, format!("/{long}"));
        add();
        let entry = &recorder.trace().entries[0];
        for text in [&entry.agent, &entry.name, &entry.path] {
            assert!(text.len() < LONGEST_TEXT + 8 && text.ends_with("é…"), "{} bytes", text.len());
        }
        let most = KEPT_BYTES / entry.bytes();
        assert!(most < KEPT);
        for _ in 0..KEPT {
            add();
        }
        let trace = recorder.trace();
        assert_eq!((trace.entries.len(), trace.forgotten), (most, (KEPT + 1 - most) as u64));
        let last = add();
        recorder.update(last, |entry| entry.code = Some(403));
        assert_eq!(recorder.trace().entries.last().unwrap().code, Some(403));
    }
}
