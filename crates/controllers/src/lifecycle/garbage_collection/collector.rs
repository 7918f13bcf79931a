//! The graph, the views that feed it, and the attempts that follow from it.

use super::{
    graph::{Consequences, Graph, InvalidOwner, Subject},
    identity::{Deletion, Identity, KindName, Observed, OwnerRef, Uid},
};
use crate::discovery::{Discovered, Resource};
use kube::core::{DynamicObject, PartialObjectMeta};
use operator::{
    Key, World,
    cache::{Caches, Delta, Origin, Scope, View},
    queue::{Queue, Reason},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};
use world::Moment;

/// Kubernetes: attempts do not wait longer for the lists of all kinds. A kind whose objects cannot be listed must
/// not stop the others.
const SYNC_LIMIT: Duration = Duration::from_secs(30);

/// Metadata that the collector does not read: it would be most of what is kept for each object.
const UNUSED: [&str; 6] =
    ["annotations", "creationTimestamp", "generateName", "generation", "labels", "selfLink"];

/// Kubernetes: events are many, short-lived and never owners.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

#[derive(Default)]
pub(super) struct Collector {
    state: Mutex<State>,
    queue: OnceLock<Queue>,
}

#[derive(Default)]
struct State {
    graph: Graph,
    /// The attempts that are asked for, each with the number of the latest request.
    asked: BTreeMap<Uid, u64>,
    asks: u64,
    /// To be recorded as events, by dependent.
    invalid_owners: BTreeMap<Uid, Vec<InvalidOwner>>,
    discovered: Arc<Discovered>,
    /// By apiVersion and plural.
    monitors: BTreeMap<(String, String), Arc<Monitor>>,
    /// The attempts that wait for a kind to be served.
    without_kind: BTreeSet<Uid>,
}

/// The watch of one kind.
struct Monitor {
    kind: KindName,
    view: View<PartialObjectMeta<DynamicObject>>,
    opened: Moment,
    /// Whether it was there from the start.
    is_first: bool,
}

/// Which lists an attempt needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// Those of the kinds that were there from the start. With less, most owners would seem unknown.
    First,
    /// Those of all kinds: it depends on which dependents there are.
    All,
}

impl Collector {
    /// Attempts go into this queue from now on.
    pub(super) fn connect(self: &Arc<Collector>, queue: Queue) {
        let collector = Arc::downgrade(self);
        queue.refill_from(move || {
            let Some(collector) = collector.upgrade() else { return Vec::new() };
            let state = collector.state();
            state.asked.keys().map(|uid| Key::parse(uid)).collect()
        });
        let _ = self.queue.set(queue);
    }

    /// Watches what discovery has found, and nothing else.
    pub(super) fn follow(self: &Arc<Collector>, caches: &Caches, world: &World, discovered: Discovered) {
        let is_monitored = |resource: &&Resource| {
            resource.has_verbs(&["delete", "list", "watch"])
                && !IGNORED.iter().any(|(group, plural)| resource.is(group, plural))
        };
        let wanted: BTreeMap<(String, String), &Resource> = discovered
            .preferred()
            .filter(is_monitored)
            .map(|resource| ((resource.api.api_version.clone(), resource.api.plural.clone()), resource))
            .collect();
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        {
            let mut state = self.state();
            let is_first = state.monitors.is_empty();
            for (name, resource) in &wanted {
                if !state.monitors.contains_key(name) {
                    let monitor = Arc::new(Monitor {
                        kind: KindName::new(&resource.api.api_version, &resource.api.kind),
                        view: caches.dynamic_metadata(&resource.api, scope()),
                        opened: world.now(),
                        is_first,
                    });
                    state.graph.add_kind(&monitor.kind);
                    state.monitors.insert(name.clone(), Arc::clone(&monitor));
                    opened.push(monitor);
                }
            }
            // A version whose own server does not answer may still be there.
            state.monitors.retain(|name, monitor| {
                let stays = wanted.contains_key(name) || discovered.stale.contains(&name.0);
                if !stays {
                    closed.push(Arc::clone(monitor));
                }
                stays
            });
        }
        // Outside of the lock: the first objects are reported at once.
        for monitor in opened {
            let weak: (Weak<Collector>, Weak<Monitor>) = (Arc::downgrade(self), Arc::downgrade(&monitor));
            monitor.view.subscribe(Arc::new(move |delta: &Delta| {
                if let (Some(collector), Some(monitor)) = (weak.0.upgrade(), weak.1.upgrade()) {
                    collector.change(&monitor.kind, delta);
                }
            }));
        }
        closed.into_iter().for_each(|monitor| self.close(caches, &monitor));
        self.set_discovered(discovered);
    }

    fn close(&self, caches: &Caches, monitor: &Monitor) {
        caches.close(&monitor.view);
        let mut state = self.state();
        for item in monitor.view.keys().iter().filter_map(|key| monitor.view.item(key)) {
            let then = state.graph.forget(item.uid(), &monitor.kind);
            self.carry_on(&mut state, then);
        }
        state.graph.remove_kind(&monitor.kind);
    }

    fn set_discovered(&self, discovered: Discovered) {
        let mut state = self.state();
        state.discovered = Arc::new(discovered);
        let attempts = std::mem::take(&mut state.without_kind);
        self.carry_on(&mut state, Consequences { attempts, ..Consequences::default() });
    }

    /// A watch has reported a change.
    fn change(&self, kind: &KindName, delta: &Delta) {
        if delta.origin == Origin::Resync {
            return;
        }
        let mut state = self.state();
        let then = match (&delta.after, &delta.before) {
            (Some(item), _) => {
                let graph = &state.graph;
                let known_kind =
                    |api_version: &str, kind: &str| graph.known_kind(&KindName::new(api_version, kind));
                match Observed::read(item, kind, |uid| graph.known_uid(uid), known_kind) {
                    Ok(object) => {
                        // It need not be asked for any more whether a virtual owner exists.
                        if graph.is_virtual(&object.uid) {
                            state.asked.remove(&object.uid);
                            state.without_kind.remove(&object.uid);
                        }
                        state.graph.observe(object)
                    }
                    Err(problem) => {
                        tracing::warn!(object = %item.key(), %problem, "the owners of an object cannot be read");
                        return;
                    }
                }
            }
            (None, Some(item)) => {
                state.asked.remove(item.uid());
                state.without_kind.remove(item.uid());
                state.invalid_owners.remove(item.uid());
                state.graph.delete(item.uid())
            }
            (None, None) => return,
        };
        self.carry_on(&mut state, then);
    }

    /// Adds what follows from a change to the queue.
    fn carry_on(&self, state: &mut State, then: Consequences) {
        for uid in then.attempts {
            state.asks += 1;
            if let Some(queue) = self.queue.get() {
                queue.add(&Key::parse(&uid), Reason::Changed);
            }
            state.asked.insert(uid, state.asks);
        }
        for invalid in then.invalid_owners {
            state.invalid_owners.entry(Uid::clone(&invalid.dependent)).or_default().push(invalid);
        }
    }

    /// Waits until the views are complete, or it has taken too long.
    pub(super) async fn synced(&self, world: &World, needed: Needed) {
        let is_needed = |monitor: &&Arc<Monitor>| needed == Needed::All || monitor.is_first;
        let is_missing = |monitor: &&Arc<Monitor>| is_needed(monitor) && !monitor.view.is_synced();
        let missing: Vec<Arc<Monitor>> = self.state().monitors.values().filter(is_missing).cloned().collect();
        for monitor in missing {
            let left = SYNC_LIMIT.saturating_sub(world.now().since(monitor.opened));
            if !left.is_zero() && world.timeout(left, monitor.view.synced()).await.is_err() {
                tracing::warn!(kind = ?monitor.kind, "a kind cannot be listed: its objects are left out");
            }
        }
    }

    // ------------------------------------------------------------------- for attempts

    /// The UID and the number of an attempt that is asked for.
    pub(super) fn asked(&self, uid: &str) -> Option<(Uid, u64)> {
        self.state().asked.get_key_value(uid).map(|(uid, number)| (Uid::clone(uid), *number))
    }

    /// The attempt is over, unless it was asked for again meanwhile.
    pub(super) fn done(&self, uid: &Uid, number: u64) {
        let mut state = self.state();
        if state.asked.get(uid) == Some(&number) {
            state.asked.remove(uid);
        }
    }

    /// Tries again when other kinds are served than `seen` has.
    pub(super) fn wait_for_kind(&self, uid: &Uid, seen: &Arc<Discovered>) {
        let mut state = self.state();
        if Arc::ptr_eq(&state.discovered, seen) {
            state.without_kind.insert(Uid::clone(uid));
        } else {
            let attempts = BTreeSet::from([Uid::clone(uid)]);
            self.carry_on(&mut state, Consequences { attempts, ..Consequences::default() });
        }
    }

    pub(super) fn take_invalid_owners(&self, uid: &Uid) -> Vec<InvalidOwner> {
        self.state().invalid_owners.remove(uid).unwrap_or_default()
    }

    pub(super) fn discovered(&self) -> Arc<Discovered> {
        Arc::clone(&self.state().discovered)
    }

    pub(super) fn subject(&self, uid: &Uid) -> Option<Subject> {
        self.state().graph.subject(uid)
    }

    pub(super) fn dependents(&self, uid: &Uid) -> Vec<(Uid, Identity)> {
        self.state().graph.dependents(uid)
    }

    /// Asks to delete the dependents that block the deletion of an owner; returns whether there are any.
    pub(super) fn ask_to_delete_blocking(&self, uid: &Uid) -> bool {
        let mut state = self.state();
        let blocking = state.graph.blocking_dependents(uid);
        let is_blocked = !blocking.is_empty();
        let alive = blocking.into_iter().filter(|(_, deletion)| *deletion == Deletion::NotDeleted);
        let attempts = alive.map(|(uid, _)| uid).collect();
        self.carry_on(&mut state, Consequences { attempts, ..Consequences::default() });
        is_blocked
    }

    pub(super) fn confirm_absent(&self, uid: &Uid, identity: &Identity) {
        let mut state = self.state();
        let then = state.graph.confirm_absent(uid, identity);
        self.carry_on(&mut state, then);
    }

    pub(super) fn is_known_absent(&self, owner: &OwnerRef, namespace: Option<&str>) -> bool {
        self.state().graph.is_known_absent(owner, namespace)
    }

    pub(super) fn add_absent(&self, uid: &Uid, identity: &Identity) {
        self.state().graph.add_absent(uid, identity);
    }

    /// Whether a watch will report objects of this kind.
    pub(super) fn is_monitored(&self, kind: &KindName) -> bool {
        self.state().graph.known_kind(kind).is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn scope() -> Scope {
    UNUSED.iter().fold(Scope::default(), |scope, name| scope.without(&["metadata", name]))
}
