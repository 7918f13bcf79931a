//! Random histories: in whichever order events, lists and responses arrive, reads never go back in time,
//! and in the end the cache equals the server.

use super::*;
use crate::cache::test_item as item;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// Few names, so that writes often meet.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// One step of a history. Numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A write by this process (which gets the response later) or by another.
    Create {
        name: usize,
        is_own: bool,
    },
    Update {
        name: usize,
        is_own: bool,
    },
    Delete {
        name: usize,
        is_own: bool,
    },
    /// One of the pending responses arrives, in any order.
    Response(usize),
    /// The next event of the watch arrives.
    Event,
    /// A bookmark, when there are no more events.
    Bookmark,
    /// The watch ends, and a list is requested: the server reads it now, and sends it later.
    List,
    /// The next object of the list arrives, or its end.
    Listed,
}

fn step() -> impl Strategy<Value = Step> {
    let write = || (0..NAMES.len(), any::<bool>());
    prop_oneof![
        3 => write().prop_map(|(name, is_own)| Step::Create { name, is_own }),
        3 => write().prop_map(|(name, is_own)| Step::Update { name, is_own }),
        2 => write().prop_map(|(name, is_own)| Step::Delete { name, is_own }),
        4 => any::<usize>().prop_map(Step::Response),
        5 => Just(Step::Event),
        1 => Just(Step::Bookmark),
        1 => Just(Step::List),
        4 => Just(Step::Listed),
    ]
}

/// A server, a watch on it, pending responses, and the contents of a cache that receives all that.
struct Simulation {
    contents: Contents,
    version: u64,
    uids: u64,
    objects: BTreeMap<&'static str, Object>,
    /// Whether the event is a deletion, and its object.
    events: Vec<(bool, Item)>,
    /// How many events the watch has delivered.
    delivered: usize,
    list: Option<(VecDeque<Item>, u64, usize)>,
    responses: Vec<WriteResponse>,
    /// By name, the last version that this process has written; and the UIDs that it has deleted.
    known: BTreeMap<&'static str, u64>,
    dead: Vec<String>,
    /// What was read last.
    read: BTreeMap<&'static str, u64>,
}

#[derive(Clone)]
struct Object {
    uid: u64,
    version: u64,
}

#[derive(Clone)]
enum WriteResponse {
    Wrote(&'static str, Item),
    Deleted(&'static str, Item),
}

impl Simulation {
    fn new() -> Simulation {
        let mut simulation = Simulation {
            contents: Contents::new(vec![None]),
            version: 1,
            uids: 0,
            objects: BTreeMap::new(),
            events: Vec::new(),
            delivered: 0,
            list: None,
            responses: Vec::new(),
            known: BTreeMap::new(),
            dead: Vec::new(),
            read: BTreeMap::new(),
        };
        simulation.list();
        simulation
    }

    fn write(&mut self, name: &'static str, is_own: bool, uid: u64) {
        self.version += 1;
        let object = Object { uid, version: self.version };
        let item = object.item(name);
        self.objects.insert(name, object);
        self.events.push((false, item.clone()));
        if is_own {
            self.responses.push(WriteResponse::Wrote(name, item));
        }
    }

    fn delete(&mut self, name: &'static str, is_own: bool) {
        let Some(object) = self.objects.remove(name) else { return };
        self.version += 1;
        let item = Object { version: self.version, ..object }.item(name);
        self.events.push((true, item.clone()));
        if is_own {
            self.responses.push(WriteResponse::Deleted(name, item));
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Create { name, is_own } if !self.objects.contains_key(NAMES[name]) => {
                self.uids += 1;
                self.write(NAMES[name], is_own, self.uids);
            }
            Step::Update { name, is_own } => {
                if let Some(Object { uid, .. }) = self.objects.get(NAMES[name]).cloned() {
                    self.write(NAMES[name], is_own, uid);
                }
            }
            Step::Delete { name, is_own } => self.delete(NAMES[name], is_own),
            Step::Response(which) if !self.responses.is_empty() => {
                let response = self.responses.swap_remove(which % self.responses.len());
                self.respond(response);
            }
            Step::Event if self.list.is_none() => self.event(),
            Step::Bookmark if self.list.is_none() && self.delivered == self.events.len() => {
                self.apply(CacheUpdate::CaughtUpTo(self.version));
            }
            Step::List => self.list(),
            Step::Listed => self.listed(),
            Step::Create { .. } | Step::Response(_) | Step::Event | Step::Bookmark => {}
        }
        self.check();
    }

    fn respond(&mut self, response: WriteResponse) {
        match response {
            WriteResponse::Wrote(name, item) => {
                self.know(name, item.resource_version());
                self.contents.wrote(item);
            }
            WriteResponse::Deleted(name, item) => {
                self.know(name, item.resource_version());
                self.dead.push(item.uid().to_owned());
                let is_known = self.contents.has_seen(item.uid());
                self.contents.deleted(item.key(), item.uid());
                match self.objects.get(name) {
                    _ if is_known => {}
                    Some(object) => drop(self.contents.wrote(object.item(name))),
                    None => drop(self.contents.absent(item.key(), self.version)),
                }
            }
        }
    }

    fn apply(&mut self, update: CacheUpdate) {
        self.contents.apply(0, update).expect("this server keeps its history");
    }

    fn know(&mut self, name: &'static str, version: u64) {
        let known = self.known.entry(name).or_default();
        *known = version.max(*known);
    }

    fn event(&mut self) {
        let Some((is_removed, item)) = self.events.get(self.delivered).cloned() else { return };
        self.delivered += 1;
        self.apply(if is_removed { CacheUpdate::Deleted(item) } else { CacheUpdate::Applied(item) });
    }

    fn list(&mut self) {
        let items = self.objects.iter().map(|(name, object)| object.item(name)).collect();
        self.list = Some((items, self.version, self.events.len()));
        self.apply(CacheUpdate::ListStarted);
    }

    fn listed(&mut self) {
        let Some((items, version, events)) = &mut self.list else { return };
        if let Some(item) = items.pop_front() {
            return self.apply(CacheUpdate::Listed(item));
        }
        self.delivered = *events;
        let version = *version;
        self.list = None;
        self.apply(CacheUpdate::ListComplete(version));
    }

    /// Delivers everything that is pending.
    fn settle(&mut self) {
        while self.list.is_some() {
            self.take(Step::Listed);
        }
        while let Some(response) = self.responses.pop() {
            self.respond(response);
            self.check();
        }
        while self.delivered < self.events.len() {
            self.take(Step::Event);
        }
    }

    fn check(&mut self) {
        for name in NAMES {
            let found = self.contents.items().get(&format!("prod/{name}")).cloned();
            let known = self.known.get(name).copied().unwrap_or_default();
            match &found {
                Some(item) => {
                    let version = item.resource_version();
                    assert!(version >= known, "{item:?} is older than version {known}, which is known");
                    assert!(!self.dead.iter().any(|uid| uid == item.uid()), "{item:?} was deleted");
                    let read = self.read.insert(name, version).unwrap_or_default();
                    assert!(version >= read, "{item:?} was read as {read} before");
                }
                None => {
                    let went = self.events.iter().any(|(is_removed, item)| {
                        *is_removed && item.key().name() == name && item.resource_version() >= known
                    });
                    assert!(known == 0 || went, "{name} is missing, though version {known} is known");
                }
            }
        }
    }
}

impl Object {
    fn item(&self, name: &str) -> Item {
        item(&format!("{name}:{}@{}", self.uid, self.version))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn reads_never_go_back_and_end_equal_to_the_server(steps in prop::collection::vec(step(), 1..80)) {
        let mut simulation = Simulation::new();
        for step in steps {
            simulation.take(step);
        }
        simulation.settle();
        let cached: Vec<String> = simulation.contents.items().iter().map(|item| format!("{item:?}")).collect();
        let served: Vec<String> =
            simulation.objects.iter().map(|(name, object)| format!("{:?}", object.item(name))).collect();
        prop_assert_eq!(cached, served);
    }
}
