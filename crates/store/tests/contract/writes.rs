//! Batches: conditions, conflicts, and revisions that rise by one.

use super::{Stage, conflict};
use store::{Batch, Bytes, Entry, Error, MAX_BATCH_BYTES, Range, Revision};

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

pub(crate) async fn a_conflict_tells_what_stands_there(stage: Stage) {
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

pub(crate) async fn deleting_what_is_not_there_changes_nothing(stage: Stage) {
    let first = stage.commit(Batch::new().put("/a", "1")).await;
    assert_eq!(stage.commit(Batch::new().delete("/b")).await, first);
    assert_eq!(stage.revision().await, first);
}

pub(crate) async fn senseless_batches_are_refused(stage: Stage) {
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
