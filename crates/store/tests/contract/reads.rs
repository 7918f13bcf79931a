//! Gets and ranges, now and in the past, until compaction forgets it.

use super::{Stage, next};
use store::{Batch, Bytes, Error, MAX_BATCH_BYTES, Range, Revision};

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
    let told: Vec<_> =
        next(&stage.world, &mut feed).await.changes.iter().map(|change| change.key.clone()).collect();
    assert_eq!(told, expect(&[b"/a/", b"/a/b", b"/a/b/c"]));
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
    // A long stretch that is not there any more, and not forgotten yet.
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
            continue; // Nothing was ever written there: etcd takes it for "now".
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

pub(crate) async fn compaction_forgets_the_past_and_nothing_else(stage: Stage) {
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
