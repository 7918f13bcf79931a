//! Events, in the form of the core group or of `events.k8s.io`: they are the same objects.

use serde_json::Value;

use super::row::{Row, instant, number, or, row, text};

pub(super) fn event(event: &Row<'_>) -> Vec<Value> {
    let first = match either(event, "firstTimestamp", "deprecatedFirstTimestamp") {
        moment if instant(moment).is_some() => event.since(moment),
        _ => event.since(event.at("/eventTime")),
    };
    let last = match either(event, "lastTimestamp", "deprecatedLastTimestamp") {
        moment if instant(moment).is_some() => event.since(moment),
        _ => first.clone(),
    };
    let (last, count) = match event.at("/series") {
        Value::Null => match number(either(event, "count", "deprecatedCount")) {
            0 => (last, 1),
            count => (last, count),
        },
        series => (event.since(&series["lastObservedTime"]), number(&series["count"])),
    };
    let about = either(event, "involvedObject", "regarding");
    row![
        last,
        event.text("/type"),
        event.text("/reason"),
        target(about),
        text(&about["fieldPath"]),
        source(event),
        text(either(event, "message", "note")).trim(),
        first,
        count,
        event.name(),
    ]
}

fn either<'a>(event: &Row<'a>, core: &str, newer: &str) -> &'a Value {
    match &event.object[core] {
        Value::Null => &event.object[newer],
        value => value,
    }
}

fn target(about: &Value) -> String {
    let kind = text(&about["kind"]).to_lowercase();
    match text(&about["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Row<'_>) -> String {
    let source = either(event, "source", "deprecatedSource");
    let controller = text(either(event, "reportingComponent", "reportingController"));
    let component = or(text(&source["component"]), controller);
    match or(text(&source["host"]), event.text("/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
