//! The fleet: what all simulated nodes of a process share.

use crate::{
    ledger::Ledger,
    obstacles::Needed,
    settings::{NODE, SIMULATED, STOPPED, Settings},
};
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{Client, ResourceExt};
use operator::{Context, Key, event::Recorder};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Makes the client of a node, by its name.
pub(crate) type ClientOf = Arc<dyn Fn(&str) -> Client + Send + Sync>;

pub(crate) struct Fleet {
    pub(crate) settings: Settings,
    client_of: ClientOf,
    accounts: Mutex<BTreeMap<String, Account>>,
    ledger: Mutex<Ledger>,
    heartbeats: Mutex<BTreeMap<String, Heartbeat>>,
    /// Pods that wait for objects.
    waiting: Mutex<BTreeMap<(Needed, Key), BTreeSet<Key>>>,
}

/// How a node writes.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) client: Client,
    pub(crate) events: Recorder,
}

/// What this process knows of a node that it has registered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat {
    pub(crate) lease: Option<Lease>,
    pub(crate) renewed: Option<Timestamp>,
}

impl Fleet {
    pub(crate) fn new(settings: Settings, client_of: ClientOf) -> Fleet {
        Fleet {
            settings,
            client_of,
            accounts: Mutex::default(),
            ledger: Mutex::default(),
            heartbeats: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Whether a Node object is one of ours.
    pub(crate) fn simulates(&self, node: &Node) -> bool {
        let value = node.annotations().get(NODE).map(String::as_str);
        self.settings.index(&node.name_any()).is_some() || matches!(value, Some(SIMULATED | STOPPED))
    }

    /// The account of a node, made when it is first used.
    pub(crate) fn account<S>(&self, context: &Context<S>, node: &str) -> Account {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get(node) {
            return account.clone();
        }
        let client = context.client_around(&(self.client_of)(node));
        let events = context.core_events_on(client.clone(), "kubelet", node);
        let account = Account { client, events };
        accounts.insert(node.to_owned(), account.clone());
        account
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The heartbeat of a node that this process has registered.
    pub(crate) fn heartbeat(&self, node: &str) -> Option<Heartbeat> {
        self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner).get(node).cloned()
    }

    pub(crate) fn set_heartbeat(&self, node: &str, heartbeat: Heartbeat) {
        let mut heartbeats = self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
        heartbeats.insert(node.to_owned(), heartbeat);
    }

    /// Reconciles a pod when this object changes.
    pub(crate) fn wait(&self, needed: Needed, object: Key, pod: &Key) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry((needed, object)).or_default().insert(pod.clone());
    }

    pub(crate) fn stop_waiting(&self, needed: Needed, object: Key, pod: &Key) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut pods) = waiting.entry((needed, object)) {
            pods.get_mut().remove(pod);
            if pods.get().is_empty() {
                pods.remove();
            }
        }
    }

    /// The pods that have waited for this object; each is returned once, and waits again if it must.
    pub(crate) fn waiting_for(&self, needed: Needed, object: Key) -> Vec<Key> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&(needed, object)).into_iter().flatten().collect()
    }
}

/// Whether a node has been stopped by its annotation.
pub(crate) fn is_stopped(node: &Node) -> bool {
    node.annotations().get(NODE).is_some_and(|value| value == STOPPED)
}

impl fmt::Debug for Fleet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fleet").field("settings", &self.settings).finish_non_exhaustive()
    }
}
