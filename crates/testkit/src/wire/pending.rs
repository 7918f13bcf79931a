//! What is under way between clients and server: requests without an answer, watches that broke.

use crate::asked::Asked;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{oneshot, watch};
use world::{Moment, World};

/// A client whose watch broke is expected back within this time; then it is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Who asks for what, whatever the query says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    caller: String,
    path: String,
}

impl Place {
    pub(crate) fn new(caller: &str, path: &str) -> Place {
        Place { caller: caller.to_owned(), path: path.to_owned() }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pending(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    requests: BTreeMap<u64, String>,
    watches: BTreeMap<u64, Watched>,
    /// Watches that were ended from this side, and when.
    owed: BTreeMap<Place, Moment>,
    /// Resources whose events are held back: how often, and who waits for that to end.
    held: BTreeMap<String, (usize, watch::Sender<()>)>,
}

#[derive(Debug)]
struct Watched {
    resource: String,
    /// Dropped to break the connection.
    _cut: oneshot::Sender<()>,
}

/// Taken off the list when dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pending: Pending,
    id: u64,
}

/// A resource whose watches stand still until this is dropped.
#[derive(Debug)]
#[must_use = "watches go on when this is dropped"]
pub struct Held {
    pending: Pending,
    resource: String,
}

impl Pending {
    pub(crate) fn begin(&self, asked: &Asked, place: &Place, path: &str) -> UnderWay {
        if matches!(asked.verb, "watch" | "list") {
            self.with(|state| state.owed.remove(place));
        }
        self.note(format!("{} {path} by {}", asked.verb, place.caller))
    }

    /// Something that is under way until what comes back is dropped.
    pub(crate) fn note(&self, what: String) -> UnderWay {
        let id = self.with(|state| {
            state.last_id += 1;
            state.requests.insert(state.last_id, what);
            state.last_id
        });
        UnderWay { pending: self.clone(), id }
    }

    /// Registers a watch; what comes back resolves when it shall break.
    pub(crate) fn watching(&self, resource: &str) -> (UnderWay, oneshot::Receiver<()>) {
        let (cut, is_cut) = oneshot::channel();
        let id = self.with(|state| {
            state.last_id += 1;
            state.watches.insert(state.last_id, Watched { resource: resource.to_owned(), _cut: cut });
            state.last_id
        });
        (UnderWay { pending: self.clone(), id }, is_cut)
    }

    /// A client's watch ended, and it should come back.
    pub(crate) fn owe(&self, world: &World, place: &Place) {
        self.with(|state| state.owed.insert(place.clone(), world.now()));
    }

    /// Breaks the connections of all watches of a resource; `*` stands for any. Says how many.
    pub(crate) fn cut(&self, resource: &str) -> usize {
        let cut: Vec<Watched> = self.with(|state| {
            let fits = |it: &Watched| resource == "*" || it.resource == resource;
            let ids: Vec<u64> = state.watches.iter().filter(|(_, it)| fits(it)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| state.watches.remove(id)).collect()
        });
        let count = cut.len();
        // A channel that is dropped says the same as one that is used.
        drop(cut);
        count
    }

    pub(crate) fn hold(&self, resource: &str) -> Held {
        self.with(|state| {
            let held = state.held.entry(resource.to_owned());
            held.or_insert_with(|| (0, watch::Sender::new(()))).0 += 1;
        });
        Held { pending: self.clone(), resource: resource.to_owned() }
    }

    /// Ends when events of the resource may pass.
    pub(crate) async fn released(&self, resource: &str) {
        loop {
            let held = self.with(|state| state.held.get(resource).map(|(_, held)| held.subscribe()));
            match held {
                // An error says that it is held no longer.
                Some(mut held) => drop(held.changed().await),
                None => return,
            }
        }
    }

    /// What has not come to its end, in words.
    pub(crate) fn busy(&self, world: &World) -> Vec<String> {
        let now = world.now();
        self.with(|state| {
            state.owed.retain(|_, since| now.since(*since) < PATIENCE);
            let owed =
                state.owed.keys().map(|it| format!("{} has not come back to watch {}", it.caller, it.path));
            state.requests.values().cloned().chain(owed).collect()
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let removed = self.pending.with(|state| {
            state.requests.remove(&self.id);
            state.watches.remove(&self.id)
        });
        drop(removed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let ended = self.pending.with(|state| {
            let held = state.held.get_mut(&self.resource)?;
            held.0 -= 1;
            (held.0 == 0).then(|| state.held.remove(&self.resource)).flatten()
        });
        drop(ended);
    }
}
