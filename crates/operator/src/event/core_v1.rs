//! Core `v1` events, as Kubernetes' own components write them: one for each message, repeated ones counted.

use super::{
    NewEvent, Reporter,
    core_correlator::{CoreCorrelator, CoreKey},
    cut,
    writer::{EventApi, EventWrite},
};
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Kubernetes: longer messages are refused.
const MESSAGE_BYTES: usize = 1024;

impl EventApi for CoreCorrelator {
    type Id = CoreKey;
    type Event = Event;

    fn add(&mut self, now: Duration, event: NewEvent) -> Option<EventWrite<CoreKey>> {
        CoreCorrelator::add(self, now, event)
    }

    fn set_name(&mut self, id: &CoreKey, name: String) {
        CoreCorrelator::set_name(self, id, name);
    }

    fn event(write: &EventWrite<CoreKey>, name: String, reporter: &Reporter) -> Event {
        let NewEvent { regarding, event_type, reason, note, .. } = &write.event;
        // The instance of the reporter is the host, if there is one.
        let Reporter { controller: component, instance } = reporter;
        let host = Some(instance.clone()).filter(|host| !host.is_empty());
        Event {
            metadata: super::metadata(name, regarding),
            involved_object: ObjectReference::clone(regarding),
            reason: Some(reason.clone()),
            message: Some(cut(note, MESSAGE_BYTES).to_owned()),
            source: Some(EventSource { component: Some(component.clone()), host }),
            first_timestamp: Some(Time(write.first)),
            last_timestamp: Some(Time(write.last)),
            count: Some(write.count),
            type_: Some(event_type.as_str().into()),
            reporting_component: Some(component.clone()),
            reporting_instance: Some(instance.clone()),
            ..Event::default()
        }
    }

    fn count(event: &Event) -> Value {
        json!({"count": event.count, "lastTimestamp": event.last_timestamp, "message": event.message})
    }
}
