//! The contract of a store: tests written once and run on every store.
//!
//! A test target provides its store with `run_contract!(fixture)`.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use store::{
    Batch, Bytes, Change, Commit, Entry, Error, Event, Feed, Limits, MAX_BATCH_BYTES, Memory, Previous,
    Range, ReadStore, Revision, Store,
};
use world::World;

/// Small, so that a test can fall out of the window.
pub(crate) const LIMITS: Limits = Limits { changes: 300, bytes: 64 << 20, live_bytes: u64::MAX };

/// An empty store, and what it needs to live.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) scratch: tempfile::TempDir,
    /// Outlives the store: a server process, or nothing.
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
            a_conflict_returns_the_current_entry
            a_condition_on_a_deleted_key_fails
            deleting_an_absent_key_changes_nothing
            malformed_batches_are_rejected
            a_mebibyte_comes_back_whole
            keys_that_are_prefixes_of_each_other_are_kept_apart
            ranges_respect_start_end_limit_and_order
            a_long_range_is_read_at_one_revision
            the_past_can_be_read
            the_future_cannot_be_read
            compaction_drops_only_old_versions
            a_feed_delivers_every_change_with_its_previous_value
            a_feed_has_a_commit_when_it_is_acknowledged
            a_feed_delivers_a_commit_once_and_only_the_part_under_its_prefix
            a_feed_from_the_past_catches_up_without_a_gap
            a_feed_survives_a_compaction_that_it_is_ahead_of
            a_feed_from_before_the_floor_fails
            a_feed_from_the_future_fails
            a_slow_reader_is_cut_off_and_blocks_no_writer
            a_reader_that_no_commit_touches_never_falls_behind
            a_mark_comes_after_everything_before_it
            two_writers_race_and_one_wins
            concurrent_increments_with_conditions_are_not_lost
            feeds_see_concurrent_commits_in_order
            a_backup_under_load_holds_one_revision
            a_closed_store_ends_its_feeds
            random_histories_agree_with_a_model
        }
    };
}
pub(crate) use each_promise;

// ---------------------------------------------------------------------------------------------

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

/// The next commit of a feed; the timeout makes a test that waits in vain fail soon.
async fn next(world: &World, feed: &mut Feed) -> Arc<Commit> {
    match event(world, feed).await.unwrap() {
        Event::Commit(commit) => commit,
        Event::Progress(revision) => panic!("progress to {revision} instead of a commit"),
    }
}

async fn event(world: &World, feed: &mut Feed) -> Result<Event, Error> {
    world.timeout(Duration::from_secs(20), feed.next()).await.expect("the feed delivers an event")
}

fn put(key: &'static str, value: &'static str) -> Change {
    Change { key: key.into(), value: Some(value.into()), previous: None }
}

fn conflict(error: Error) -> store::Conflict {
    match error {
        Error::Conflict(conflict) => *conflict,
        other => panic!("expected a conflict, got: {other}"),
    }
}

// ---------------------------------------------------------------------------------------------

pub(crate) async fn each_commit_is_one_revision_further(stage: Stage) {
    let start = stage.revision().await;
    let first = stage.commit(Batch::new().put("/a", "1")).await;
    let second = stage.commit(Batch::new().put("/b", "1").put("/c", "1").delete("/a")).await;
    assert_eq!((first.0, second.0), (start.0 + 1, start.0 + 2));
    assert_eq!(stage.revision().await, second);
    let page = stage.store.range(Range::all()).await.unwrap();
    let read: Vec<_> = page.entries.iter().map(|entry| (&entry.key[..], entry.revision)).collect();
    assert_eq!(read, [(&b"/b"[..], second), (b"/c", second)]);
    assert_eq!(page.revision, second);
}

pub(crate) async fn an_empty_batch_changes_nothing(stage: Stage) {
    let first = stage.commit(Batch::new().put("/a", "1")).await;
    assert_eq!(stage.commit(Batch::new()).await, first);
    assert_eq!(stage.revision().await, first);
}

pub(crate) async fn a_batch_happens_whole_or_not_at_all(stage: Stage) {
    let first = stage.commit(Batch::new().put("/a", "1").put("/b", "1")).await;
    let batch = Batch::new().put("/a", "2").create("/b", "2").put("/c", "2");
    let conflict = conflict(stage.store.commit(batch).await.unwrap_err());
    assert_eq!((conflict.index, &conflict.key[..]), (1, &b"/b"[..]));
    assert_eq!(stage.value("/a").await.unwrap(), "1");
    assert_eq!(stage.value("/c").await, None);
    assert_eq!(stage.revision().await, first);
}

pub(crate) async fn a_conflict_returns_the_current_entry(stage: Stage) {
    let first = stage.commit(Batch::new().create("/a", "1")).await;
    let second = stage.commit(Batch::new().replace("/a", "2", first)).await;
    let found = Some(Entry { key: "/a".into(), value: "2".into(), revision: second });
    let batches = [
        Batch::new().create("/a", "3"),
        Batch::new().replace("/a", "3", first),
        Batch::new().delete_at("/a", first),
        Batch::new().replace("/a", "3", Revision(0)),
        Batch::new().replace("/a", "3", Revision(second.0 + 100)),
    ];
    for batch in batches {
        let conflict = conflict(stage.store.commit(batch).await.unwrap_err());
        assert_eq!((conflict.index, conflict.found), (0, found.clone()));
        assert_eq!(conflict.revision, second);
    }
    assert!(stage.commit(Batch::new().delete_at("/a", second)).await > second);
}

pub(crate) async fn a_condition_on_a_deleted_key_fails(stage: Stage) {
    let first = stage.commit(Batch::new().create("/a", "1")).await;
    stage.commit(Batch::new().delete("/a")).await;
    for batch in [
        Batch::new().replace("/a", "2", first),
        Batch::new().delete_at("/a", first),
        Batch::new().replace("/never", "2", first),
        Batch::new().replace("/never", "2", Revision(0)),
    ] {
        let conflict = conflict(stage.store.commit(batch).await.unwrap_err());
        assert_eq!(conflict.found, None);
    }
    let again = stage.commit(Batch::new().create("/a", "2")).await;
    assert_eq!(stage.store.get("/a".into(), None).await.unwrap().entry.unwrap().revision, again);
}

pub(crate) async fn deleting_an_absent_key_changes_nothing(stage: Stage) {
    let first = stage.commit(Batch::new().put("/a", "1")).await;
    assert_eq!(stage.commit(Batch::new().delete("/b")).await, first);
    assert_eq!(stage.revision().await, first);
}

pub(crate) async fn malformed_batches_are_rejected(stage: Stage) {
    let many = (0..129).fold(Batch::new(), |batch, number| batch.put(format!("/{number}"), ""));
    let batches = [
        Batch::new().put("", "1"),
        Batch::new().put("/a", "1").delete("/a"),
        Batch::new().put("k".repeat(4097), "1"),
        many,
    ];
    for batch in batches {
        let refused = stage.store.commit(batch).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let large = stage.store.commit(Batch::new().put("/a", vec![0; MAX_BATCH_BYTES])).await;
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
    assert_eq!(stage.keys(Range::all()).await, Vec::<Bytes>::new());
}

pub(crate) async fn a_mebibyte_comes_back_whole(stage: Stage) {
    let value = Bytes::from((0..1 << 20).map(|at: u32| (at.wrapping_mul(31) >> 3) as u8).collect::<Vec<_>>());
    let mut feed = stage.store.feed("/".into(), None).await.unwrap();
    stage.commit(Batch::new().put("/big", value.clone())).await;
    let largest = Bytes::from(vec![7; MAX_BATCH_BYTES - "/largest".len()]);
    stage.commit(Batch::new().put("/largest", largest.clone())).await;
    stage.commit(Batch::new().put("/nothing", "")).await;
    assert_eq!(stage.value("/big").await.unwrap(), value);
    assert_eq!(stage.value("/nothing").await.unwrap(), "");
    let page = stage.store.range(Range::prefix("/")).await.unwrap();
    let values: Vec<_> = page.entries.into_iter().map(|entry| entry.value).collect();
    assert_eq!(values, [value.clone(), largest, Bytes::new()]);
    assert_eq!(next(&stage.world, &mut feed).await.changes[0].value, Some(value));
}

pub(crate) async fn keys_that_are_prefixes_of_each_other_are_kept_apart(stage: Stage) {
    let keys: [&[u8]; 9] = [b"/a", b"/a/", b"/a/b", b"/a/b/c", b"/a0", b"/ab", b"\0", b"\xff", b"\xff\xff"];
    let mut feed = stage.store.feed("/a/".into(), None).await.unwrap();
    let batch = keys.iter().fold(Batch::new(), |batch, key| batch.put(*key, *key));
    stage.commit(batch).await;
    let expect = |keys: &[&'static [u8]]| keys.iter().map(|key| Bytes::from_static(key)).collect::<Vec<_>>();
    assert_eq!(stage.keys(Range::prefix("/a/")).await, expect(&[b"/a/", b"/a/b", b"/a/b/c"]));
    assert_eq!(stage.keys(Range::prefix("/a/b")).await, expect(&[b"/a/b", b"/a/b/c"]));
    assert_eq!(stage.keys(Range::prefix(&b"\xff"[..])).await, expect(&[b"\xff", b"\xff\xff"]));
    let all = expect(&[b"\0", b"/a", b"/a/", b"/a/b", b"/a/b/c", b"/a0", b"/ab", b"\xff", b"\xff\xff"]);
    assert_eq!(stage.keys(Range::all()).await, all);
    let keys: Vec<_> =
        next(&stage.world, &mut feed).await.changes.iter().map(|change| change.key.clone()).collect();
    assert_eq!(keys, expect(&[b"/a/", b"/a/b", b"/a/b/c"]));
    stage.commit(Batch::new().delete("/a/b")).await;
    assert_eq!(stage.keys(Range::prefix("/a/")).await, expect(&[b"/a/", b"/a/b/c"]));
}

pub(crate) async fn ranges_respect_start_end_limit_and_order(stage: Stage) {
    let batch = (0..10).rev().fold(Batch::new(), |batch, number| batch.put(format!("/k/{number}"), "v"));
    let written = stage.commit(batch.put("/j", "v").put("/l", "v")).await;
    let check = async |range: Range, expected: &str, more: bool| {
        let page = stage.store.range(range.clone()).await.unwrap();
        let found: String = page.entries.iter().map(|entry| *entry.key.last().unwrap() as char).collect();
        assert_eq!((&*found, page.more, page.revision), (expected, more, written), "{range:?}");
        let all = stage.store.range(range.clone().limit(0)).await.unwrap().entries.len() as u64;
        assert_eq!(stage.store.count(range.clone()).await.unwrap(), all, "{range:?}");
    };
    let all = Range::prefix("/k/");
    check(all.clone(), "0123456789", false).await;
    check(all.clone().limit(3), "012", true).await;
    check(all.clone().limit(10), "0123456789", false).await;
    check(all.clone().limit(11), "0123456789", false).await;
    check(all.clone().after(b"/k/2").limit(3), "345", true).await;
    check(all.clone().from("/k/7"), "789", false).await;
    check(all.clone().after(b"/k/9"), "", false).await;
    check(all.clone().from("/z"), "", false).await;
    check(Range::all().limit(1), "j", true).await;
    check(Range { end: Some("/k/2".into()), ..Range::all() }, "j01", false).await;
    check(Range { start: "/k/5".into(), end: Some("/k/5".into()), limit: 0, at: None }, "", false).await;
}

pub(crate) async fn a_long_range_is_read_at_one_revision(stage: Stage) {
    for page in 0..30 {
        let batch = (0..100)
            .fold(Batch::new(), |batch, number| batch.put(format!("/k/{page:02}/{number:02}"), "old"));
        stage.commit(batch).await;
    }
    let at = stage.revision().await;
    stage.commit(Batch::new().put("/k/29/99", "new").delete("/k/00/00").put("/k/99", "new")).await;
    let page = stage.store.range(Range::prefix("/k/").at(at)).await.unwrap();
    assert_eq!((page.entries.len(), page.revision, page.more), (3000, at, false));
    assert!(page.entries.iter().all(|entry| entry.value == "old"));
    assert!(page.entries.is_sorted_by(|a, b| a.key < b.key));
    assert_eq!(stage.keys(Range::prefix("/k/")).await.len(), 3000);
    // Many deleted keys whose versions are still kept.
    let batch = (0..100).fold(Batch::new(), |batch, number| batch.delete(format!("/k/10/{number:02}")));
    stage.commit(batch).await;
    assert_eq!(stage.keys(Range::prefix("/k/")).await.len(), 2900);
    assert_eq!(stage.store.count(Range::prefix("/k/")).await.unwrap(), 2900);
    assert_eq!(stage.store.count(Range::prefix("/k/").at(at)).await.unwrap(), 3000);
}

pub(crate) async fn the_past_can_be_read(stage: Stage) {
    let start = stage.revision().await;
    let one = stage.commit(Batch::new().put("/a", "1")).await;
    let two = stage.commit(Batch::new().put("/a", "2").put("/b", "2")).await;
    let three = stage.commit(Batch::new().delete("/a")).await;
    let four = stage.commit(Batch::new().put("/a", "4")).await;
    for (at, a, b) in [
        (start, None, None),
        (one, Some(("1", one)), None),
        (two, Some(("2", two)), Some(("2", two))),
        (three, None, Some(("2", two))),
        (four, Some(("4", four)), Some(("2", two))),
    ] {
        if at == Revision(0) {
            continue; // Before the first write: etcd reads it as "latest".
        }
        let read = stage.store.get("/a".into(), Some(at)).await.unwrap();
        let found = read.entry.as_ref().map(|entry| (str::from_utf8(&entry.value).unwrap(), entry.revision));
        assert_eq!((found, read.revision), (a, at));
        let page = stage.store.range(Range::all().at(at)).await.unwrap();
        let found: Vec<_> = page
            .entries
            .iter()
            .map(|entry| (str::from_utf8(&entry.value).unwrap(), entry.revision))
            .collect();
        assert_eq!(found, a.into_iter().chain(b).collect::<Vec<_>>(), "at {at}");
        assert_eq!(page.revision, at);
    }
}

pub(crate) async fn the_future_cannot_be_read(stage: Stage) {
    let current = stage.commit(Batch::new().put("/a", "1")).await;
    let future = Revision(current.0 + 5);
    for error in [
        stage.store.get("/a".into(), Some(future)).await.unwrap_err(),
        stage.store.range(Range::all().at(future)).await.unwrap_err(),
        stage.store.compact(future).await.unwrap_err(),
    ] {
        let as_expected =
            matches!(error, Error::Future { asked, current: now } if asked == future && now == current);
        assert!(as_expected, "{error:?}");
    }
}

pub(crate) async fn compaction_drops_only_old_versions(stage: Stage) {
    let one = stage.commit(Batch::new().put("/a", "1").put("/gone", "1")).await;
    let two = stage.commit(Batch::new().put("/a", "2").delete("/gone")).await;
    let three = stage.commit(Batch::new().put("/a", "3").put("/b", "3")).await;
    stage.store.compact(two).await.unwrap();
    for error in [
        stage.store.get("/a".into(), Some(one)).await.unwrap_err(),
        stage.store.range(Range::all().at(one)).await.unwrap_err(),
        stage.store.compact(one).await.unwrap_err(),
    ] {
        let as_expected = matches!(error, Error::Compacted { asked, floor } if asked == one && floor == two);
        assert!(as_expected, "{error:?}");
    }
    let read = |at| stage.store.get("/a".into(), Some(at));
    assert_eq!(read(two).await.unwrap().entry.unwrap().value, "2");
    assert_eq!(read(three).await.unwrap().entry.unwrap().value, "3");
    assert_eq!(stage.keys(Range::all().at(two)).await, ["/a"]);
    assert_eq!(stage.keys(Range::all()).await, ["/a", "/b"]);
    stage.store.compact(two).await.unwrap();
    stage.store.compact(three).await.unwrap();
    assert_eq!(stage.keys(Range::all()).await, ["/a", "/b"]);
}

pub(crate) async fn a_feed_delivers_every_change_with_its_previous_value(stage: Stage) {
    stage.commit(Batch::new().put("/f/a", "0")).await;
    let mut feed = stage.store.feed("/f/".into(), None).await.unwrap();
    let zero = stage.revision().await;
    let one = stage.commit(Batch::new().put("/f/a", "1")).await;
    stage.commit(Batch::new().put("/other", "1")).await;
    let two = stage.commit(Batch::new().put("/f/b", "2")).await;
    let three = stage.commit(Batch::new().delete("/f/a")).await;
    let four = stage.commit(Batch::new().put("/f/a", "4")).await;
    let previous = |value: &'static str, revision| Some(Previous { value: value.into(), revision });
    let expected = [
        (one, Change { previous: previous("0", zero), ..put("/f/a", "1") }),
        (two, put("/f/b", "2")),
        (three, Change { value: None, previous: previous("1", one), ..put("/f/a", "") }),
        (four, put("/f/a", "4")),
    ];
    for (revision, change) in expected {
        let commit = next(&stage.world, &mut feed).await;
        assert_eq!((commit.revision, &commit.changes[..]), (revision, &[change][..]));
    }
}

pub(crate) async fn a_feed_has_a_commit_when_it_is_acknowledged(stage: Stage) {
    let mut feed = stage.store.feed("/a/".into(), None).await.unwrap();
    let waker = futures::task::noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    for _ in 0..100 {
        let revision = stage.commit(Batch::new().put("/a/x", "1")).await;
        let polled = feed.poll_next(&mut context);
        let std::task::Poll::Ready(Ok(Event::Commit(commit))) = polled else {
            panic!("commit {revision} is answered, and the feed does not have it")
        };
        assert_eq!(commit.revision, revision);
    }
    stage.commit(Batch::new().put("/a/y", "1")).await;
    stage.store.commit(Batch::new().create("/a/y", "2")).await.unwrap_err();
    assert!(
        feed.poll_next(&mut context).is_ready(),
        "the conflicting commit is delivered before the conflict is returned"
    );
}

pub(crate) async fn a_feed_delivers_a_commit_once_and_only_the_part_under_its_prefix(stage: Stage) {
    let mut one = stage.store.feed("/one/".into(), None).await.unwrap();
    let mut all = stage.store.feed("".into(), None).await.unwrap();
    let revision = stage.commit(Batch::new().put("/one/a", "1").put("/two/a", "1").put("/one/b", "1")).await;
    let keys = |commit: &Commit| commit.changes.iter().map(|change| change.key.clone()).collect::<Vec<_>>();
    let (one, all) = (next(&stage.world, &mut one).await, next(&stage.world, &mut all).await);
    assert_eq!((one.revision, all.revision), (revision, revision));
    assert_eq!(keys(&one), ["/one/a", "/one/b"]);
    assert_eq!(keys(&all), ["/one/a", "/two/a", "/one/b"]);
}

pub(crate) async fn a_feed_from_the_past_catches_up_without_a_gap(stage: Stage) {
    let start = stage.commit(Batch::new().put("/f/0", "v")).await;
    for number in 1..=100 {
        stage.commit(Batch::new().put(format!("/f/{number}"), "v")).await;
    }
    let mut feed = stage.store.feed("/f/".into(), Some(start)).await.unwrap();
    for number in 101..=150 {
        stage.commit(Batch::new().put(format!("/f/{number}"), "v")).await;
    }
    for number in 1..=150 {
        let commit = next(&stage.world, &mut feed).await;
        assert_eq!(commit.revision.0, start.0 + number);
        assert_eq!(commit.changes[0].key, format!("/f/{number}"));
    }
}

pub(crate) async fn a_feed_survives_a_compaction_that_it_is_ahead_of(stage: Stage) {
    let mut feed = stage.store.feed("/f/".into(), None).await.unwrap();
    stage.commit(Batch::new().put("/f/a", "1")).await;
    next(&stage.world, &mut feed).await;
    stage.commit(Batch::new().put("/other", "1")).await;
    let floor = stage.revision().await;
    stage.store.compact(floor).await.unwrap();
    let revision = stage.commit(Batch::new().put("/f/a", "2")).await;
    assert_eq!(next(&stage.world, &mut feed).await.revision, revision);
    let mut from_floor = stage.store.feed("/f/".into(), Some(floor)).await.unwrap();
    assert_eq!(next(&stage.world, &mut from_floor).await.revision, revision);
}

pub(crate) async fn a_feed_from_before_the_floor_fails(stage: Stage) {
    let one = stage.commit(Batch::new().put("/a", "1")).await;
    let two = stage.commit(Batch::new().put("/a", "2")).await;
    let mut behind = stage.store.feed("/".into(), Some(one)).await.unwrap();
    stage.commit(Batch::new().put("/a", "3")).await;
    let floor = stage.commit(Batch::new().put("/a", "4")).await;
    stage.store.compact(floor).await.unwrap();
    let refused = stage.store.feed("/".into(), Some(two)).await.unwrap_err();
    assert!(matches!(refused, Error::Compacted { asked, .. } if asked == two), "{refused:?}");
    let cut_off = event(&stage.world, &mut behind).await.unwrap_err();
    assert!(matches!(cut_off, Error::Compacted { .. }), "{cut_off:?}");
}

pub(crate) async fn a_feed_from_the_future_fails(stage: Stage) {
    let current = stage.commit(Batch::new().put("/a", "1")).await;
    let asked = Revision(current.0 + 1);
    let refused = stage.store.feed("/".into(), Some(asked)).await.unwrap_err();
    assert!(matches!(refused, Error::Future { .. }), "{refused:?}");
}

pub(crate) async fn a_slow_reader_is_cut_off_and_blocks_no_writer(stage: Stage) {
    let mut slow = stage.store.feed("/f/".into(), None).await.unwrap();
    for number in 0..LIMITS.changes * 2 {
        stage.commit(Batch::new().put("/f/key", format!("{number}"))).await;
    }
    let head = stage.revision().await;
    let mut fresh = stage.store.feed("/f/".into(), None).await.unwrap();
    fresh.mark(head);
    assert_eq!(event(&stage.world, &mut fresh).await.unwrap(), Event::Progress(head));
    let cut_off = event(&stage.world, &mut slow).await.unwrap_err();
    assert!(matches!(cut_off, Error::Compacted { .. }), "{cut_off:?}");
}

pub(crate) async fn a_reader_that_no_commit_touches_never_falls_behind(stage: Stage) {
    let mut quiet = stage.store.feed("/quiet/".into(), None).await.unwrap();
    for number in 0..LIMITS.changes * 2 {
        stage.commit(Batch::new().put("/busy", format!("{number}"))).await;
    }
    let revision = stage.commit(Batch::new().put("/quiet/a", "1")).await;
    assert_eq!(next(&stage.world, &mut quiet).await.revision, revision);
}

pub(crate) async fn a_mark_comes_after_everything_before_it(stage: Stage) {
    let mut feed = stage.store.feed("/f/".into(), None).await.unwrap();
    stage.commit(Batch::new().put("/f/a", "1")).await;
    let elsewhere = stage.commit(Batch::new().put("/other", "1")).await;
    feed.mark(stage.revision().await);
    next(&stage.world, &mut feed).await;
    let Event::Progress(seen) = event(&stage.world, &mut feed).await.unwrap() else { panic!("no mark") };
    assert!(seen >= elsewhere, "{seen}");
    // A mark ahead of the head comes when the head gets there, though no commit is under the prefix.
    feed.mark(Revision(seen.0 + 3));
    for _ in 0..3 {
        stage.commit(Batch::new().put("/other", "2")).await;
    }
    let Event::Progress(reached) = event(&stage.world, &mut feed).await.unwrap() else { panic!("no mark") };
    assert!(reached.0 >= seen.0 + 3, "{reached}");
}

pub(crate) async fn two_writers_race_and_one_wins(stage: Stage) {
    let mut current = stage.commit(Batch::new().create("/prize", "start")).await;
    for round in 0..50 {
        let racers = ["left", "right"].map(|name| {
            let store = Arc::clone(&stage.store);
            let batch = Batch::new().replace("/prize", name, current);
            stage
                .world
                .spawn("racer", async move { store.commit(batch).await.map(|revision| (name, revision)) })
        });
        let mut winners = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(winner) => winners.push(winner),
                Err(error) => drop(conflict(error)),
            }
        }
        let [(name, revision)] = winners[..] else { panic!("round {round}: {winners:?}") };
        let prize = stage.store.get("/prize".into(), None).await.unwrap().entry.unwrap();
        assert_eq!((prize.value, prize.revision), (name.into(), revision));
        current = revision;
    }
}

pub(crate) async fn concurrent_increments_with_conditions_are_not_lost(stage: Stage) {
    stage.commit(Batch::new().create("/count", "0")).await;
    let counters = (0..8).map(|_| {
        let store = Arc::clone(&stage.store);
        stage.world.spawn("counter", async move {
            for _ in 0..20 {
                loop {
                    let entry = store.get("/count".into(), None).await.unwrap().entry.unwrap();
                    let count: u32 = str::from_utf8(&entry.value).unwrap().parse().unwrap();
                    let batch = Batch::new().replace("/count", (count + 1).to_string(), entry.revision);
                    match store.commit(batch).await {
                        Ok(_) => break,
                        Err(error) => drop(conflict(error)),
                    }
                }
            }
        })
    });
    for counter in counters.collect::<Vec<_>>() {
        counter.await.unwrap();
    }
    assert_eq!(stage.value("/count").await.unwrap(), "160");
}

pub(crate) async fn feeds_see_concurrent_commits_in_order(stage: Stage) {
    let start = stage.revision().await;
    let mut feeds = Vec::new();
    for _ in 0..4 {
        feeds.push(stage.store.feed("/f/".into(), Some(start)).await.unwrap());
    }
    let writers = (0..5).map(|writer| {
        let store = Arc::clone(&stage.store);
        stage.world.spawn("writer", async move {
            for number in 0..50 {
                let key = format!("/f/{writer}");
                store.commit(Batch::new().put(key, format!("{number}"))).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for feed in &mut feeds {
        let mut latest: BTreeMap<Bytes, u32> = BTreeMap::new();
        for number in 1..=250 {
            let commit = next(&stage.world, feed).await;
            assert_eq!(commit.revision.0, start.0 + number, "no gap and no duplicate");
            let [Change { key, value: Some(value), .. }] = &commit.changes[..] else { panic!("{commit:?}") };
            let value: u32 = str::from_utf8(value).unwrap().parse().unwrap();
            let before = latest.insert(key.clone(), value);
            assert_eq!(value, before.map_or(0, |before| before + 1), "each writer's order is kept");
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

pub(crate) async fn a_backup_under_load_holds_one_revision(stage: Stage) {
    // Two keys that always change together: they would differ in a backup that mixes revisions.
    stage.commit(Batch::new().put("/0", "0").put("/z", "0")).await;
    for page in 0..20 {
        let batch =
            (0..100).fold(Batch::new(), |batch, number| batch.put(format!("/k/{page}/{number}"), "v"));
        stage.commit(batch).await;
    }
    let writer = {
        let store = Arc::clone(&stage.store);
        stage.world.spawn("writer", async move {
            for number in 1.. {
                let value = number.to_string();
                store.commit(Batch::new().put("/0", value.clone()).put("/z", value)).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    let file = stage.scratch.path().join("backup");
    let revision = stage.store.backup(file.clone()).await.unwrap();
    assert!(stage.store.backup(file.clone()).await.is_err(), "a backup never replaces a file");
    drop(writer);
    let restored = Memory::restore(&file).unwrap();
    assert_eq!(restored.revision().await.unwrap(), revision);
    let page = restored.range(Range::all()).await.unwrap();
    assert_eq!(page.entries.len(), 2002);
    assert_eq!(page.entries[0].value, page.entries[2001].value);
    let live = stage.store.range(Range::prefix("/k/")).await.unwrap().entries;
    assert_eq!(live, page.entries[1..2001]);
    // The restored store continues at the backup's revision.
    assert_eq!(restored.commit(Batch::new().put("/new", "v")).await.unwrap().0, revision.0 + 1);
}

pub(crate) async fn a_closed_store_ends_its_feeds(stage: Stage) {
    let Stage { world, store, .. } = stage;
    let mut feed = store.feed("/".into(), None).await.unwrap();
    store.commit(Batch::new().put("/a", "1")).await.unwrap();
    next(&world, &mut feed).await;
    drop(store);
    assert!(matches!(event(&world, &mut feed).await, Err(Error::Closed)));
}

/// The entries of a store at a revision: for each key the step that wrote it, and its revision.
type Snapshot = (Revision, BTreeMap<String, (u64, Revision)>);

/// Random writes; compares every read, now and in the past, with plain maps.
#[expect(clippy::print_stdout, reason = "the seed, shown when the test fails")]
pub(crate) async fn random_histories_agree_with_a_model(stage: Stage) {
    let seed = stage.world.draw();
    println!("seed {seed}");
    let mut random = Random(seed);
    let start = stage.revision().await;
    let mut feed = stage.store.feed("/m/".into(), Some(start)).await.unwrap();
    let mut model: Vec<Snapshot> = vec![(start, BTreeMap::new())];
    for step in 0..250 {
        let (revision, mut state) = model.last().cloned().unwrap();
        let mut batch = Batch::new();
        let mut changed = BTreeSet::new();
        let mut holds = true;
        for number in random.distinct(1 + random.peek() % 4, 12) {
            let key = format!("/m/{number}");
            let current = state.get(&key).map(|(_, revision)| *revision);
            let (write, fits) = match random.below(6) {
                0 => (batch.create(key.clone(), step.to_string()), current.is_none()),
                1 => (
                    batch.replace(
                        key.clone(),
                        step.to_string(),
                        Revision(revision.0 - random.below(3).min(revision.0)),
                    ),
                    false,
                ),
                2 | 3 => (batch.put(key.clone(), step.to_string()), true),
                _ => (batch.delete(key.clone()), true),
            };
            let write_ok = match write.writes().last().unwrap().condition {
                store::Condition::At(at) => current == Some(at),
                _ => fits,
            };
            holds &= write_ok;
            let next = Revision(revision.0 + 1);
            match write.writes().last().unwrap().value {
                Some(_) => drop((state.insert(key.clone(), (step, next)), changed.insert(key))),
                None => drop(state.remove(&key).map(|_| changed.insert(key))),
            }
            batch = write;
        }
        match stage.store.commit(batch).await {
            Ok(at) if changed.is_empty() => assert_eq!(at, revision),
            Ok(at) => {
                assert!(holds, "step {step}");
                assert_eq!(at.0, revision.0 + 1);
                model.push((at, state));
                let commit = next(&stage.world, &mut feed).await;
                let keys: BTreeSet<_> = commit
                    .changes
                    .iter()
                    .map(|change| String::from_utf8(change.key.to_vec()).unwrap())
                    .collect();
                assert_eq!((commit.revision, keys), (at, changed), "step {step}");
            }
            Err(error) => {
                conflict(error);
                assert!(!holds, "step {step}");
            }
        }
        let (at, expected) = &model[random.below(model.len() as u64) as usize];
        if *at > start {
            let page = stage.store.range(Range::prefix("/m/").at(*at)).await.unwrap();
            let found: BTreeMap<_, _> = page
                .entries
                .iter()
                .map(|entry| {
                    let value = str::from_utf8(&entry.value).unwrap().parse().unwrap();
                    (String::from_utf8(entry.key.to_vec()).unwrap(), (value, entry.revision))
                })
                .collect();
            assert_eq!(&found, expected, "step {step} at {at}");
        }
    }
}

/// A small deterministic random generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, width: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % width
    }

    fn peek(&self) -> u64 {
        self.0 >> 40
    }

    /// `count` different numbers below `width`.
    fn distinct(&mut self, count: u64, width: u64) -> BTreeSet<u64> {
        (0..count).map(|_| self.below(width)).collect()
    }
}
