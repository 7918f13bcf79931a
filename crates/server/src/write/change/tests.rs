//! The outcome of every sort of change, with and without other writers in between.

use super::*;
use crate::{
    Config, Server,
    write::{ByServer, OwnPart},
};
use api::object;
use serde_json::json;
use std::sync::Arc;

/// A change that is interrupted by another writer in its first attempts.
struct Script {
    next: fn(&Value) -> Next,
    interruptions: usize,
    is_unconditional: bool,
    creates: Option<Value>,
    attempts: usize,
}

impl Script {
    fn new(next: fn(&Value) -> Next) -> Script {
        Script { next, interruptions: 0, is_unconditional: true, creates: None, attempts: 0 }
    }

    fn interrupted(self, interruptions: usize) -> Script {
        Script { interruptions, ..self }
    }

    fn conditional(self) -> Script {
        Script { is_unconditional: false, ..self }
    }

    fn creating(self, object: Value) -> Script {
        Script { creates: Some(object), ..self }
    }
}

impl Change for Script {
    async fn next(&mut self, call: &Call, stored: &Stored, live: Value) -> Result<Next, Refusal> {
        self.attempts += 1;
        if self.attempts <= self.interruptions {
            let mut other = live.clone();
            object::set_generation(&mut other, self.attempts as i64);
            let other = Checked::by_server(OwnPart::Deletion, &live, other);
            assert!(matches!(replace(call, other, stored).await?, Outcome::Done(_)), "the other write");
        }
        Ok((self.next)(&live))
    }

    async fn absent(&mut self, call: &Call) -> Result<Option<Checked>, Refusal> {
        self.attempts += 1;
        if self.attempts <= self.interruptions {
            create(call, unchecked(config_map(&[]))).await?;
        }
        Ok(self.creates.clone().map(unchecked))
    }

    fn is_unconditional(&self) -> bool {
        self.is_unconditional
    }
}

fn unchecked(object: Value) -> Checked {
    Checked::by_server(OwnPart::Deletion, &Value::Null, object)
}

fn config_map(finalizers: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "finalizers": finalizers}})
}

fn deleting(finalizers: &[&str]) -> Value {
    let mut object = config_map(finalizers);
    object["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    object
}

fn with_finalizers(live: &Value, finalizers: &[&str]) -> Checked {
    let mut next = live.clone();
    object::set_finalizers(&mut next, finalizers.iter().copied());
    Checked::by_server(OwnPart::Deletion, live, next)
}

fn keep(_: &Value) -> Next {
    Next::Keep
}

fn write_one_finalizer(live: &Value) -> Next {
    Next::Write(with_finalizers(live, &["example.com/one"]))
}

fn write_no_finalizers(live: &Value) -> Next {
    Next::Write(with_finalizers(live, &[]))
}

fn mark_without_finalizers(live: &Value) -> Next {
    Next::Mark(with_finalizers(live, &[]))
}

fn remove(_: &Value) -> Next {
    Next::Remove { marked: None }
}

fn remove_marked(live: &Value) -> Next {
    Next::Remove { marked: Some(with_finalizers(live, &[])) }
}

fn call(server: &Server) -> Call {
    let target = ByServer {
        resource: ("", "v1", "configmaps"),
        namespace: "default",
        name: "a",
        ..ByServer::default()
    };
    target.call(&server.0).unwrap()
}

/// The outcome, and the finalizers of the object that is stored afterwards.
async fn outcome(
    server: &Server,
    before: Option<Value>,
    script: &mut Script,
) -> (&'static str, Option<usize>) {
    let call = call(server);
    if let Some(before) = before {
        create(&call, unchecked(before)).await.unwrap();
    }
    let outcome = match change(&call, script).await {
        Ok(Changed::Kept(_)) => "kept",
        Ok(Changed::Created(_)) => "created",
        Ok(Changed::Written(_)) => "written",
        Ok(Changed::Removed(_)) => "removed",
        Ok(Changed::Absent) => "absent",
        Ok(Changed::Lost) => "lost",
        Err(_) => "refused",
    };
    let stored = lookup::of_call(&call, "a").await.unwrap();
    (outcome, stored.map(|stored| object::finalizers(&stored.value().unwrap()).count()))
}

#[test]
fn changes_are_carried_out_once_and_retried_after_conflicts() {
    let plain = || Some(config_map(&["example.com/two"]));
    let cases = [
        (plain(), Script::new(keep), "kept", Some(1), 1),
        (plain(), Script::new(write_one_finalizer), "written", Some(1), 1),
        (plain(), Script::new(write_no_finalizers), "written", Some(0), 1),
        (plain(), Script::new(write_no_finalizers).interrupted(3), "written", Some(0), 4),
        (plain(), Script::new(write_no_finalizers).interrupted(ATTEMPTS), "lost", Some(1), ATTEMPTS),
        (plain(), Script::new(write_no_finalizers).interrupted(1).conditional(), "lost", Some(1), 1),
        // The last finalizer of an object that is being deleted releases it, but not with a mark.
        (Some(deleting(&["example.com/two"])), Script::new(write_no_finalizers), "written", None, 1),
        (Some(deleting(&["example.com/two"])), Script::new(write_one_finalizer), "written", Some(1), 1),
        (Some(deleting(&["example.com/two"])), Script::new(mark_without_finalizers), "written", Some(0), 1),
        (plain(), Script::new(remove), "removed", None, 1),
        (plain(), Script::new(remove).interrupted(2), "removed", None, 3),
        (plain(), Script::new(remove_marked), "removed", None, 1),
        (plain(), Script::new(remove_marked).interrupted(ATTEMPTS), "lost", Some(1), ATTEMPTS),
        (None, Script::new(keep), "absent", None, 1),
        (None, Script::new(keep).creating(config_map(&[])), "created", Some(0), 1),
        // Another writer creates it first: then there is an object to change.
        (
            None,
            Script::new(write_one_finalizer).creating(config_map(&[])).interrupted(1),
            "written",
            Some(1),
            2,
        ),
    ];
    for (number, (before, mut script, expected, finalizers, attempts)) in cases.into_iter().enumerate() {
        let run = world::simulate(5, |world| async move {
            let store = Arc::new(store::Memory::new());
            let server = Server::start(&world, store, Config::default()).await.unwrap();
            let found = outcome(&server, before, &mut script).await;
            assert_eq!((found, script.attempts), ((expected, finalizers), attempts), "case {number}");
        });
        run.unwrap();
    }
}

/// What another client does to the object `a` between the deletionTimestamp and the removal.
#[derive(Clone, Copy, Debug)]
enum Between {
    Writes,
    Removes,
    /// Removes it, and creates one of the same name.
    Replaces,
    AddsFinalizer,
}

impl Between {
    async fn act(self, call: &Call, shown: &Stored) {
        let live = shown.value().unwrap();
        let done = match self {
            Between::Writes => {
                let mut other = live.clone();
                object::set_generation(&mut other, 7);
                replace(call, Checked::by_server(OwnPart::Deletion, &live, other), shown).await
            }
            Between::AddsFinalizer => {
                replace(call, with_finalizers(&live, &["example.com/one"]), shown).await
            }
            Between::Removes => crate::write::remove(call, "a", shown).await,
            Between::Replaces => {
                let removed = crate::write::remove(call, "a", shown).await;
                assert!(matches!(removed, Ok(Outcome::Done(_))));
                let mut other = config_map(&[]);
                other["metadata"]["uid"] = "another".into();
                create(call, unchecked(other)).await
            }
        };
        assert!(matches!(done, Ok(Outcome::Done(_))), "{self:?}");
    }
}

#[test]
fn a_delete_succeeds_although_a_watcher_of_the_deletion_timestamp_was_faster() {
    world::simulate(1, |world| async move {
        for (between, outcome, uid) in [
            (Between::Writes, "removed", None),
            (Between::Removes, "removed", None),
            (Between::Replaces, "removed", Some("another")),
            (Between::AddsFinalizer, "written", Some("u")),
        ] {
            let store = Arc::new(store::Memory::new());
            let server = Server::start(&world, store, Config::default()).await.unwrap();
            let call = call(&server);
            let Outcome::Done(shown) = create(&call, unchecked(deleting(&[]))).await.unwrap() else {
                panic!("it is new")
            };
            between.act(&call, &shown).await;
            let found = match remove_shown(&call, shown).await.unwrap() {
                Changed::Removed(_) => "removed",
                Changed::Written(_) => "written",
                _ => "neither",
            };
            let stored = lookup::of_call(&call, "a").await.unwrap();
            let stored = stored.map(|stored| stored.text_at(&["metadata", "uid"]).into_owned());
            assert_eq!((found, stored.as_deref()), (outcome, uid), "{between:?}");
        }
    })
    .unwrap();
}
