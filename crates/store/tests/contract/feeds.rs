//! Feeds: every commit once, in order, from any revision that is kept.

use super::{LIMITS, Stage, event, next, put};
use store::{Batch, Change, Commit, Error, Event, Previous, Revision};

pub(crate) async fn a_feed_tells_every_change_with_what_it_replaced(stage: Stage) {
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

pub(crate) async fn a_feed_has_a_commit_when_it_is_answered(stage: Stage) {
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
    assert!(feed.poll_next(&mut context).is_ready(), "what a batch lost against is told before the conflict");
}

pub(crate) async fn a_feed_tells_a_commit_once_and_only_its_own_part(stage: Stage) {
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

pub(crate) async fn a_feed_from_before_the_floor_is_refused(stage: Stage) {
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

pub(crate) async fn a_feed_from_the_future_is_refused(stage: Stage) {
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

pub(crate) async fn a_reader_that_nothing_concerns_never_falls_behind(stage: Stage) {
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
    // A mark that lies ahead comes when the head gets there, though nothing concerns the reader.
    feed.mark(Revision(seen.0 + 3));
    for _ in 0..3 {
        stage.commit(Batch::new().put("/other", "2")).await;
    }
    let Event::Progress(reached) = event(&stage.world, &mut feed).await.unwrap() else { panic!("no mark") };
    assert!(reached.0 >= seen.0 + 3, "{reached}");
}

pub(crate) async fn a_closed_store_ends_its_feeds(stage: Stage) {
    let Stage { world, store, .. } = stage;
    let mut feed = store.feed("/".into(), None).await.unwrap();
    store.commit(Batch::new().put("/a", "1")).await.unwrap();
    next(&world, &mut feed).await;
    drop(store);
    assert!(matches!(event(&world, &mut feed).await, Err(Error::Closed)));
}
