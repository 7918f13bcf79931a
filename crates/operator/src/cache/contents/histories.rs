//! Random histories: whatever comes before whatever, reads never go back, and in the end all is as
//! on the server.

use super::{tests::item, *};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// Few names, so that they meet.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// One thing that happens. Numbers choose among what is there.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody writes: this process (which hears the answer later) or another.
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
    /// One of the answers under way comes, in any order.
    Answer(usize),
    /// The watch tells the next event.
    Event,
    /// A bookmark: the watch has told all.
    Bookmark,
    /// The watch ends, and a list is asked for: the server reads it now, and sends it later.
    List,
    /// The next object of the list comes, or its end.
    Listed,
}

fn step() -> impl Strategy<Value = Step> {
    let write = || (0..NAMES.len(), any::<bool>());
    prop_oneof![
        3 => write().prop_map(|(name, is_own)| Step::Create { name, is_own }),
        3 => write().prop_map(|(name, is_own)| Step::Update { name, is_own }),
        2 => write().prop_map(|(name, is_own)| Step::Delete { name, is_own }),
        4 => any::<usize>().prop_map(Step::Answer),
        5 => Just(Step::Event),
        1 => Just(Step::Bookmark),
        1 => Just(Step::List),
        4 => Just(Step::Listed),
    ]
}

/// A server, a watch on it, the answers that are under way, and the contents that hear all that.
struct Stage {
    contents: Contents,
    version: u64,
    uids: u64,
    objects: BTreeMap<&'static str, Object>,
    /// Behind the version that each has.
    events: Vec<(bool, Item)>,
    /// How many events the watch has told.
    told: usize,
    list: Option<(VecDeque<Item>, u64, usize)>,
    answers: Vec<Answer>,
    /// What this process knows to have done to a name: the version, and the UIDs that it deleted.
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
enum Answer {
    Wrote(&'static str, Item),
    Deleted(&'static str, Item),
}

impl Stage {
    fn new() -> Stage {
        let mut stage = Stage {
            contents: Contents::new(vec![None]),
            version: 1,
            uids: 0,
            objects: BTreeMap::new(),
            events: Vec::new(),
            told: 0,
            list: None,
            answers: Vec::new(),
            known: BTreeMap::new(),
            dead: Vec::new(),
            read: BTreeMap::new(),
        };
        stage.list();
        stage
    }

    fn write(&mut self, name: &'static str, is_own: bool, uid: u64) {
        self.version += 1;
        let object = Object { uid, version: self.version };
        let item = object.item(name);
        self.objects.insert(name, object);
        self.events.push((false, item.clone()));
        if is_own {
            self.answers.push(Answer::Wrote(name, item));
        }
    }

    fn delete(&mut self, name: &'static str, is_own: bool) {
        let Some(object) = self.objects.remove(name) else { return };
        self.version += 1;
        let item = Object { version: self.version, ..object }.item(name);
        self.events.push((true, item.clone()));
        if is_own {
            self.answers.push(Answer::Deleted(name, item));
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
            Step::Answer(which) if !self.answers.is_empty() => {
                let answer = self.answers.swap_remove(which % self.answers.len());
                self.answer(answer);
            }
            Step::Event if self.list.is_none() => self.event(),
            Step::Bookmark if self.list.is_none() && self.told == self.events.len() => {
                self.contents.reach(0, self.version);
            }
            Step::List => self.list(),
            Step::Listed => self.listed(),
            Step::Create { .. } | Step::Answer(_) | Step::Event | Step::Bookmark => {}
        }
        self.check();
    }

    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Wrote(name, item) => {
                self.know(name, item.resource_version());
                self.contents.wrote(item);
            }
            Answer::Deleted(name, item) => {
                self.know(name, item.resource_version());
                self.dead.push(item.uid().to_owned());
                let is_known = self.contents.knows(item.uid());
                self.contents.deleted(item.key(), item.uid());
                match self.objects.get(name) {
                    _ if is_known => {}
                    Some(object) => drop(self.contents.wrote(object.item(name))),
                    None => drop(self.contents.absent(item.key(), self.version)),
                }
            }
        }
    }

    fn know(&mut self, name: &'static str, version: u64) {
        let known = self.known.entry(name).or_default();
        *known = version.max(*known);
    }

    fn event(&mut self) {
        let Some((is_removed, item)) = self.events.get(self.told).cloned() else { return };
        self.told += 1;
        let version = item.resource_version();
        if is_removed {
            self.contents.remove(&item);
        } else {
            self.contents.put(0, item);
        }
        self.contents.reach(0, version);
    }

    fn list(&mut self) {
        let items = self.objects.iter().map(|(name, object)| object.item(name)).collect();
        self.list = Some((items, self.version, self.events.len()));
        self.contents.begin(0);
    }

    fn listed(&mut self) {
        let Some((items, version, events)) = &mut self.list else { return };
        if let Some(item) = items.pop_front() {
            self.contents.put(0, item);
            return;
        }
        self.told = *events;
        let version = *version;
        self.list = None;
        self.contents.complete(0, version).expect("this server keeps its history");
    }

    /// Lets everything under way arrive.
    fn settle(&mut self) {
        while self.list.is_some() {
            self.take(Step::Listed);
        }
        while let Some(answer) = self.answers.pop() {
            self.answer(answer);
            self.check();
        }
        while self.told < self.events.len() {
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
    fn reads_never_go_back_and_end_as_the_server(steps in prop::collection::vec(step(), 1..80)) {
        let mut stage = Stage::new();
        for step in steps {
            stage.take(step);
        }
        stage.settle();
        let cached: Vec<String> = stage.contents.items().iter().map(|item| format!("{item:?}")).collect();
        let served: Vec<String> =
            stage.objects.iter().map(|(name, object)| format!("{:?}", object.item(name))).collect();
        prop_assert_eq!(cached, served);
    }
}
