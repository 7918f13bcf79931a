//! Events over time, and what is written of them.

use super::*;
use crate::event::{Reporter, writer::EventApi};

const MINUTE: Duration = Duration::from_secs(60);

fn event(object: &str, reason: &str) -> NewEvent {
    NewEvent {
        regarding: ObjectReference { name: Some(object.into()), ..ObjectReference::default() },
        event_type: EventType::Normal,
        reason: reason.into(),
        action: "Act".into(),
        note: "note".into(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn show(write: Option<EventWrite<u64>>) -> String {
    write.map_or("nothing".into(), |w| {
        let verb = if w.name.is_some() { "count" } else { "create" };
        format!("{verb} {} {}", w.event.reason, w.count)
    })
}

#[test]
fn repeated_events_are_counted_in_one() {
    let mut correlator = Correlator::default();
    let story = [
        (0, "A", "create A 1"),
        (1, "A", "count A 2"),
        (2, "A", "nothing"),
        (2, "B", "create B 1"),
        (7, "A", "nothing"),
        // The last B was six minutes ago.
        (8, "B", "create B 1"),
    ];
    for (minute, reason, expected) in story {
        let write = correlator.add(MINUTE * minute, event("o", reason));
        let id = write.as_ref().map(|write| write.id);
        assert_eq!(show(write), expected, "minute {minute}");
        if let Some(id) = id {
            correlator.set_name(id, "event".into());
        }
    }
    assert_eq!(correlator.next_due(), Some(MINUTE * 13));
    let writes = correlator.write_due(MINUTE * 13);
    assert_eq!(writes.into_iter().map(|w| show(Some(w))).collect::<Vec<_>>(), ["count A 4"]);
    assert_eq!(correlator.write_due(MINUTE * 14), []);
    assert_eq!((correlator.next_due(), correlator.series.len()), (None, 0));
}

#[test]
fn a_long_series_is_written_each_half_hour() {
    let mut correlator = Correlator::default();
    let mut written = Vec::new();
    for minute in 0..70 {
        let now = MINUTE * minute;
        let due = correlator.next_due().is_some_and(|due| due <= now);
        let writes = if due { correlator.write_due(now) } else { Vec::new() };
        for write in writes.into_iter().chain(correlator.add(now, event("o", "A"))) {
            written.push((minute, write.count));
            correlator.set_name(write.id, "event".into());
        }
    }
    assert_eq!(written, [(0, 1), (1, 2), (31, 31), (61, 61)]);
    assert_eq!(correlator.close().into_iter().map(|w| w.count).collect::<Vec<_>>(), [70]);
}

#[test]
fn events_of_an_object_are_limited() {
    let mut correlator = Correlator::default();
    let mut record = |minute: u32, object: &str, times: u32| {
        let now = MINUTE * minute;
        let writes =
            (0..times).filter(|i| correlator.add(now, event(object, &format!("R{minute}.{i}"))).is_some());
        writes.count()
    };
    assert_eq!(record(0, "loud", 40), BURST as usize);
    assert_eq!(record(1, "quiet", 3), 3);
    assert_eq!(record(4, "loud", 40), 0);
    assert_eq!(record(5, "loud", 40), 1);
    assert_eq!(record(16, "loud", 40), 2);
}

#[test]
fn series_and_budgets_are_bounded() {
    let mut correlator = Correlator::default();
    for i in 0..SERIES + 100 {
        correlator.add(Duration::from_millis(i as u64), event(&format!("o{i}"), "A"));
    }
    assert_eq!((correlator.series.len(), correlator.budgets.len()), (SERIES, BUDGETS));
    correlator.write_due(MINUTE * 600);
    assert_eq!((correlator.series.len(), correlator.budgets.len()), (0, 0));
}

#[test]
fn long_texts_are_cut() {
    let reporter = Reporter { controller: "web.example.com".into(), instance: "i".repeat(200) };
    let long = NewEvent { note: "ä".repeat(1000), reason: "R".repeat(200), ..event("o", "") };
    let write = Correlator::default().add(Duration::ZERO, long).unwrap();
    let event = <Correlator as EventApi>::event(&write, "o.1".into(), &reporter);
    assert_eq!(event.note.unwrap().len(), 1024);
    assert_eq!((event.reason.unwrap().len(), event.reporting_instance.unwrap().len()), (128, 128));
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
}
