//! One watch on the whole cluster, for every feed of this process.
//!
//! The watch covers the whole key space, so it sees every revision: when the mirror has reached a revision,
//! nothing before it is missing. That makes progress marks exact on every version of etcd, whose own progress
//! notifications were not always.

use super::{COMPACTION_KEY, connection::Connection, revision, wire};
use crate::{Change, Commit, Error, Limits, Previous, Revision, window::Window};
use bytes::Bytes;
use futures::{StreamExt, pin_mut};
use std::{sync::Arc, time::Duration};
use world::World;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Runs until its task is dropped.
pub(crate) async fn follow(world: World, connection: Arc<Connection>, window: Arc<Window>, limits: Limits) {
    let mut pause = FIRST_PAUSE;
    loop {
        let before = window.head();
        if let Err(error) = follow_once(&connection, &window, &limits).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the watch on etcd broke; going on");
        }
        // The head has moved: the connection worked for a while, so the pause starts over.
        pause = if window.head() == before { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        world.sleep(world.jitter(pause, 0.5)).await;
    }
}

async fn follow_once(connection: &Connection, window: &Window, limits: &Limits) -> Result<(), Error> {
    let start = window.head().next();
    let watch = connection.watch(wire::WatchCreateRequest {
        key: Bytes::from_static(wire::ZERO_KEY),
        range_end: Bytes::from_static(wire::ZERO_KEY),
        start_revision: start.0 as i64,
        prev_kv: true,
    });
    let responses = watch.await?;
    pin_mut!(responses);
    while let Some(response) = responses.next().await {
        let response = response?;
        if response.compact_revision > 0 {
            // The commits in between are compacted, for us and for every reader.
            window.skip_to(revision(response.compact_revision));
            return Ok(());
        }
        if response.canceled {
            return Err(Error::Unavailable(format!("etcd ended the watch: {}", response.cancel_reason)));
        }
        match commits(response.events) {
            Some(commits) => window.append(commits),
            None => window.skip_to(revision(response.header.map_or(0, |header| header.revision))),
        }
        if let Some(floor) = window.excess(limits) {
            window.forget(floor);
        }
    }
    Ok(())
}

/// Groups events into commits; `None` if one lacks its previous value, so that an update cannot be told from
/// a create.
fn commits(events: Vec<wire::KeyEvent>) -> Option<Vec<Arc<Commit>>> {
    let mut commits: Vec<(Revision, Vec<Change>)> = Vec::new();
    for event in events {
        let kv = event.kv?;
        let at = revision(kv.mod_revision);
        if commits.last().is_none_or(|(revision, _)| *revision != at) {
            commits.push((at, Vec::new()));
        }
        if kv.key == COMPACTION_KEY {
            continue;
        }
        let deleted = event.kind == wire::EventType::Delete as i32;
        let previous = match event.prev_kv {
            Some(kv) => Some(Previous { value: kv.value, revision: revision(kv.mod_revision) }),
            None if !deleted && kv.create_revision == kv.mod_revision => None,
            None => return None,
        };
        let change = Change { key: kv.key, value: (!deleted).then_some(kv.value), previous };
        commits.last_mut()?.1.push(change);
    }
    let commits = commits.into_iter();
    Some(commits.map(|(revision, changes)| Arc::new(Commit { revision, changes: changes.into() })).collect())
}
