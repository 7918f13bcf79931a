//! Stories of news over time, and what is written of them.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn news(object: &str, reason: &str) -> News {
    News {
        regarding: ObjectReference { name: Some(object.into()), ..ObjectReference::default() },
        tone: Tone::Normal,
        reason: reason.into(),
        action: "Act".into(),
        note: "note".into(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn show(write: Option<Write>) -> String {
    write.map_or("nothing".into(), |w| {
        let verb = if w.name.is_some() { "count" } else { "create" };
        format!("{verb} {} {}", w.news.reason, w.count)
    })
}

#[test]
fn repeated_news_are_counted_on_one_event() {
    let mut book = Book::default();
    let story = [
        (0, "A", "create A 1"),
        (1, "A", "count A 2"),
        (2, "A", "nothing"),
        (2, "B", "create B 1"),
        (7, "A", "nothing"),
        // B fell silent six minutes ago.
        (8, "B", "create B 1"),
    ];
    for (minute, reason, expected) in story {
        let write = book.enter(MINUTE * minute, news("o", reason));
        let id = write.as_ref().map(|write| write.id);
        assert_eq!(show(write), expected, "minute {minute}");
        if let Some(id) = id {
            book.name(id, "event".into());
        }
    }
    assert_eq!(book.due(), Some(MINUTE * 13));
    let writes = book.settle(MINUTE * 13);
    assert_eq!(writes.into_iter().map(|w| show(Some(w))).collect::<Vec<_>>(), ["count A 4"]);
    assert_eq!(book.settle(MINUTE * 14), []);
    assert_eq!((book.due(), book.series.len()), (None, 0));
}

#[test]
fn a_long_series_is_written_each_half_hour() {
    let mut book = Book::default();
    let mut written = Vec::new();
    for minute in 0..70 {
        let now = MINUTE * minute;
        let due = book.due().is_some_and(|due| due <= now);
        let writes = if due { book.settle(now) } else { Vec::new() };
        for write in writes.into_iter().chain(book.enter(now, news("o", "A"))) {
            written.push((minute, write.count));
            book.name(write.id, "event".into());
        }
    }
    assert_eq!(written, [(0, 1), (1, 2), (31, 31), (61, 61)]);
    assert_eq!(book.close().into_iter().map(|w| w.count).collect::<Vec<_>>(), [70]);
}

#[test]
fn an_object_has_a_budget() {
    let mut book = Book::default();
    let mut tell = |minute: u32, object: &str, times: u32| {
        let now = MINUTE * minute;
        let writes =
            (0..times).filter(|i| book.enter(now, news(object, &format!("R{minute}.{i}"))).is_some());
        writes.count()
    };
    assert_eq!(tell(0, "loud", 40), BURST as usize);
    assert_eq!(tell(1, "quiet", 3), 3);
    assert_eq!(tell(4, "loud", 40), 0);
    assert_eq!(tell(5, "loud", 40), 1);
    assert_eq!(tell(16, "loud", 40), 2);
}

#[test]
fn memory_is_bounded() {
    let mut book = Book::default();
    for i in 0..SERIES + 100 {
        book.enter(Duration::from_millis(i as u64), news(&format!("o{i}"), "A"));
    }
    assert_eq!((book.series.len(), book.budgets.len()), (SERIES, BUDGETS));
    book.settle(MINUTE * 600);
    assert_eq!((book.series.len(), book.budgets.len()), (0, 0));
}

#[test]
fn an_event_fits_the_rules() {
    let source = Source { controller: "web.example.com".into(), instance: "i".repeat(200) };
    let long = News { note: "ä".repeat(1000), reason: "R".repeat(200), ..news("o", "") };
    let event = long.event("o.1".into(), &source, None);
    assert_eq!(event.note.unwrap().len(), 1024);
    assert_eq!((event.reason.unwrap().len(), event.reporting_instance.unwrap().len()), (128, 128));
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
}
