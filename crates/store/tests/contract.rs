//! The contract of a store: what every one of them does, written once and run on each.
//!
//! A test target says which store it brings with `run_contract!(fixture)`.

mod feeds;
mod histories;
mod races;
mod reads;
mod writes;

pub(crate) use feeds::*;
pub(crate) use histories::*;
pub(crate) use races::*;
pub(crate) use reads::*;
pub(crate) use writes::*;

use std::{any::Any, sync::Arc, time::Duration};
use store::{Batch, Bytes, Change, Commit, Error, Event, Feed, Limits, Range, Revision, Store};
use world::World;

/// Small, so that a test can fall out of the window.
pub(crate) const LIMITS: Limits = Limits { changes: 300, bytes: 64 << 20, live_bytes: u64::MAX };

/// An empty store, and what it needs to live.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) scratch: tempfile::TempDir,
    /// Whatever must outlive the store: a server process, or nothing.
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) behind: Box<dyn Any + Send>,
}

macro_rules! run_contract {
    ($fixture:path) => {
        contract::each_promise!(promise, $fixture);
    };
}
pub(crate) use run_contract;

macro_rules! promise {
    ($fixture:path, $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                world::run(|world| async move { contract::$name($fixture(world).await).await }).unwrap();
            }
        )*
    };
}
pub(crate) use promise;

macro_rules! each_promise {
    ($then:ident, $fixture:path) => {
        contract::$then! { $fixture,
            each_commit_is_one_revision_further
            an_empty_batch_changes_nothing
            a_batch_happens_whole_or_not_at_all
            a_conflict_tells_what_stands_there
            a_condition_on_a_deleted_key_fails
            deleting_what_is_not_there_changes_nothing
            senseless_batches_are_refused
            a_mebibyte_comes_back_whole
            keys_that_are_prefixes_of_each_other_are_kept_apart
            ranges_respect_start_end_limit_and_order
            a_long_range_is_read_at_one_revision
            the_past_can_be_read
            the_future_cannot_be_read
            compaction_forgets_the_past_and_nothing_else
            a_feed_tells_every_change_with_what_it_replaced
            a_feed_has_a_commit_when_it_is_answered
            a_feed_tells_a_commit_once_and_only_its_own_part
            a_feed_from_the_past_catches_up_without_a_gap
            a_feed_survives_a_compaction_that_it_is_ahead_of
            a_feed_from_before_the_floor_is_refused
            a_feed_from_the_future_is_refused
            a_slow_reader_is_cut_off_and_blocks_no_writer
            a_reader_that_nothing_concerns_never_falls_behind
            a_mark_comes_after_everything_before_it
            two_writers_race_and_one_wins
            counting_with_conditions_loses_nothing
            feeds_see_concurrent_commits_in_order
            a_backup_under_load_holds_one_revision
            a_closed_store_ends_its_feeds
            random_histories_agree_with_a_model
        }
    };
}
pub(crate) use each_promise;

impl Stage {
    async fn commit(&self, batch: Batch) -> Revision {
        self.store.commit(batch).await.unwrap()
    }

    async fn value(&self, key: &'static str) -> Option<Bytes> {
        self.store.get(key.into(), None).await.unwrap().entry.map(|entry| entry.value)
    }

    async fn revision(&self) -> Revision {
        self.store.revision().await.unwrap()
    }

    async fn keys(&self, range: Range) -> Vec<Bytes> {
        self.store.range(range).await.unwrap().entries.into_iter().map(|entry| entry.key).collect()
    }
}

/// The next commit that a feed tells; a test that waits for one in vain should fail soon.
async fn next(world: &World, feed: &mut Feed) -> Arc<Commit> {
    match event(world, feed).await.unwrap() {
        Event::Commit(commit) => commit,
        Event::Progress(revision) => panic!("progress to {revision} instead of a commit"),
    }
}

async fn event(world: &World, feed: &mut Feed) -> Result<Event, Error> {
    world.timeout(Duration::from_secs(20), feed.next()).await.expect("the feed tells something")
}

fn put(key: &'static str, value: &'static str) -> Change {
    Change { key: key.into(), value: Some(value.into()), previous: None }
}

fn conflict(error: Error) -> store::Conflict {
    match error {
        Error::Conflict(conflict) => *conflict,
        other => panic!("a conflict, not: {other}"),
    }
}
