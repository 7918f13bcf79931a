//! Recorded events on a server: one for each story, counted, and never in the way.

use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use operator::event::Recorder;
use serde_json::json;
use std::time::Duration;
use testkit::{Cluster, Fault};

async fn subject(cluster: &Cluster) -> ConfigMap {
    let object = json!({ "metadata": { "name": "web", "namespace": "default" } });
    cluster.create(&serde_json::from_value(object).unwrap()).await
}

fn recorder(cluster: &Cluster) -> Recorder {
    Recorder::new(cluster.world(), cluster.client(), "example.com/web", "web-0")
}

/// Reason, tone and count of every event.
async fn told(cluster: &Cluster) -> Vec<String> {
    let line = |event: &Event| {
        let count = event.series.as_ref().map_or(1, |series| series.count);
        let [reason, tone] = [&event.reason, &event.type_].map(|text| text.as_deref().unwrap_or_default());
        format!("{tone} {reason} {count}")
    };
    let mut lines: Vec<_> = cluster.list::<Event>("default").await.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn repeated_events_become_one_with_a_count() {
    testkit::run(|cluster| async move {
        let (object, recorder) = (subject(&cluster).await, recorder(&cluster));
        for _ in 0..5 {
            recorder.normal(&object, "Created", "CreateChild", "made a child");
        }
        recorder.warning(&object, "Failed", "CreateChild", "no room");
        cluster.settle().await;
        assert_eq!(told(&cluster).await, ["Normal Created 2", "Warning Failed 1"]);

        // The rest of the count follows when the story is over.
        cluster.advance(Duration::from_secs(7 * 60)).await;
        assert_eq!(told(&cluster).await, ["Normal Created 5", "Warning Failed 1"]);
        recorder.normal(&object, "Created", "CreateChild", "made a child");
        cluster.settle().await;
        assert_eq!(told(&cluster).await, ["Normal Created 1", "Normal Created 5", "Warning Failed 1"]);
    });
}

#[test]
fn an_event_has_its_reporter_and_its_object() {
    testkit::run(|cluster| async move {
        let (object, recorder) = (subject(&cluster).await, recorder(&cluster));
        recorder.normal(&object, "Created", "CreateChild", "made a child");
        cluster.settle().await;
        let events = cluster.list::<Event>("default").await;
        let [event] = events.as_slice() else { panic!("there is one event, not {events:?}") };
        let regarding = event.regarding.as_ref().unwrap();
        assert_eq!(regarding.uid, object.metadata.uid);
        assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("ConfigMap"), Some("web")));
        assert_eq!(event.reporting_controller.as_deref(), Some("example.com/web"));
        assert_eq!(event.reporting_instance.as_deref(), Some("web-0"));
        assert_eq!(event.note.as_deref(), Some("made a child"));
    });
}

#[test]
fn an_event_is_retried_after_a_lost_connection_and_dropped_when_refused() {
    testkit::run(|cluster| async move {
        let (object, recorder) = (subject(&cluster).await, recorder(&cluster));
        cluster.inject(Fault::on("create", "events").nth(1).lose_request());
        cluster.inject(Fault::on("create", "events").nth(3).error(403, "Forbidden"));
        recorder.normal(&object, "One", "Act", "");
        recorder.normal(&object, "Two", "Act", "");
        recorder.normal(&object, "Three", "Act", "");
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(told(&cluster).await, ["Normal One 1", "Normal Three 1"]);
    });
}

#[test]
fn counts_are_written_when_the_recorder_is_dropped() {
    testkit::run(|cluster| async move {
        let (object, recorder) = (subject(&cluster).await, recorder(&cluster));
        for _ in 0..4 {
            recorder.normal(&object, "Created", "CreateChild", "made a child");
        }
        drop(recorder);
        cluster.settle().await;
        assert_eq!(told(&cluster).await, ["Normal Created 4"]);
    });
}

#[test]
fn core_events_of_a_component_on_a_node_have_its_host() {
    testkit::run(|cluster| async move {
        let object = subject(&cluster).await;
        let recorder = Recorder::core_on(cluster.world(), cluster.client(), "kubelet", "node-0");
        recorder.normal(&object, "Started", "", "it runs");
        cluster.settle().await;
        let events = cluster.list::<k8s_openapi::api::core::v1::Event>("default").await;
        let source = events[0].source.clone().unwrap();
        assert_eq!((source.component.as_deref(), source.host.as_deref()), (Some("kubelet"), Some("node-0")));
        assert_eq!(events[0].reporting_instance.as_deref(), Some("node-0"));
    });
}
