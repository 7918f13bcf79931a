//! `events.k8s.io/v1` events: one for each reason and action, with a series when it is repeated.

use super::{
    NewEvent, Reporter,
    correlator::Correlator,
    cut,
    writer::{EventApi, EventWrite},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::events::v1::{Event, EventSeries},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Kubernetes: longer texts are refused.
const NOTE_BYTES: usize = 1024;
const WORD_BYTES: usize = 128;

impl EventApi for Correlator {
    type Id = u64;
    type Event = Event;

    fn add(&mut self, now: Duration, event: NewEvent) -> Option<EventWrite<u64>> {
        Correlator::add(self, now, event)
    }

    fn set_name(&mut self, id: &u64, name: String) {
        Correlator::set_name(self, *id, name);
    }

    fn next_due(&self) -> Option<Duration> {
        Correlator::next_due(self)
    }

    fn write_due(&mut self, now: Duration) -> Vec<EventWrite<u64>> {
        Correlator::write_due(self, now)
    }

    fn close(&mut self) -> Vec<EventWrite<u64>> {
        Correlator::close(self)
    }

    fn event(write: &EventWrite<u64>, name: String, reporter: &Reporter) -> Event {
        let NewEvent { regarding, event_type, reason, action, note, .. } = &write.event;
        let series = || EventSeries { count: write.count, last_observed_time: micro(write.last) };
        Event {
            metadata: super::metadata(name, regarding),
            event_time: Some(micro(write.first)),
            series: (write.count > 1).then(series),
            reporting_controller: Some(reporter.controller.clone()),
            reporting_instance: Some(cut(&reporter.instance, WORD_BYTES).into()),
            action: Some(cut(action, WORD_BYTES).into()),
            reason: Some(cut(reason, WORD_BYTES).into()),
            regarding: Some(regarding.clone()),
            note: Some(cut(note, NOTE_BYTES).into()),
            type_: Some(event_type.as_str().into()),
            ..Event::default()
        }
    }

    fn count(event: &Event) -> Value {
        json!({ "series": event.series })
    }
}

fn micro(at: Timestamp) -> MicroTime {
    let whole = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
    MicroTime(whole)
}
