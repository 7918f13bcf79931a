//! Event, of `events.k8s.io` and of the core group: the same objects, with other names for their fields.

use api::field::{Error, ErrorList, Path};
use api::meta::Scope;
use api::name::{Format, NameRule};
use serde_json::Value;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{Cell, NAME, TableColumn, string};
use crate::cells::row::{Row, instant, number, or, text};
use crate::convert::VersionConversion;
use crate::defaults::member::Members;
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::{GcPolicy, Strategy};
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::validation::{Metadata, UpdateChecks, Validation};
use crate::validate::{internal, metadata};

const MAX_WORD_BYTES: usize = 128;
const MAX_NOTE_BYTES: usize = 1024;

/// The name of a field in the core group, and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(crate) static EVENT: BuiltIn = BuiltIn::new(GROUP, "Event", "events")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.allow_create_on_update().gc_policy(GcPolicy::None))
    .validation(
        Validation::new(check)
            .update(UpdateChecks::CHANGE.compare(check_change))
            .metadata(Metadata::Unchecked),
    )
    .columns(COLUMNS)
    .selectable(Selectable::new(&[
        SelectableField::NAME,
        SelectableField::NAMESPACE,
        SelectableField::text("reason"),
        SelectableField::computed("regarding.apiVersion", object_field),
        SelectableField::computed("regarding.fieldPath", object_field),
        SelectableField::computed("regarding.kind", object_field),
        SelectableField::computed("regarding.name", object_field),
        SelectableField::computed("regarding.namespace", object_field),
        SelectableField::computed("regarding.resourceVersion", object_field),
        SelectableField::computed("regarding.uid", object_field),
        SelectableField::computed("reportingController", |_, event| controller(event)),
        SelectableField::text("type"),
    ]))
    .conversions(&[VersionConversion { from: (GROUP, "v1"), to: ("", "v1"), convert: to_core }]);

pub(crate) static CORE_EVENT: BuiltIn = BuiltIn::new("", "Event", "events")
    .strategy(
        // Kubernetes: events of the core group may be called anything.
        Strategy::PLAIN.named(NameRule::PathSegment).allow_create_on_update().gc_policy(GcPolicy::None),
    )
    .validation(
        Validation::new(check_core)
            .update(UpdateChecks::CHANGE.compare(|new, _, errors| check_core(new, errors)))
            .metadata(Metadata::Unchecked),
    )
    .columns(COLUMNS)
    .selectable(Selectable::new(&[
        SelectableField::computed("involvedObject.apiVersion", object_field),
        SelectableField::computed("involvedObject.fieldPath", object_field),
        SelectableField::computed("involvedObject.kind", object_field),
        SelectableField::computed("involvedObject.name", object_field),
        SelectableField::computed("involvedObject.namespace", object_field),
        SelectableField::computed("involvedObject.resourceVersion", object_field),
        SelectableField::computed("involvedObject.uid", object_field),
        SelectableField::NAME,
        SelectableField::NAMESPACE,
        SelectableField::text("reason"),
        SelectableField::computed("reportingComponent", |_, event| controller(event)),
        SelectableField::computed("source", |_, event| component(event)),
        SelectableField::text("type"),
    ]))
    .conversions(&[VersionConversion { from: ("", "v1"), to: (GROUP, "v1"), convert: from_core }]);

const COLUMNS: &[TableColumn] = &[
    string("Last Seen", Cell::Computed(|it| last_seen(it).into())),
    string("Type", Cell::Text("/type")),
    string("Reason", Cell::Text("/reason")),
    string("Object", Cell::Computed(|it| target(either(it.object, "involvedObject", "regarding")).into())),
    string(
        "Subobject",
        Cell::Computed(|it| text(&either(it.object, "involvedObject", "regarding")["fieldPath"]).into()),
    )
    .wide(),
    string("Source", Cell::Computed(|it| source(it).into())).wide(),
    string("Message", Cell::Computed(|it| text(either(it.object, "message", "note")).trim().into())),
    string("First Seen", Cell::Computed(|it| first_seen(it).into())).wide(),
    string("Count", Cell::Computed(|it| count(it).into())).wide(),
    NAME.wide(),
];

/// Through `events.k8s.io`.
fn check(event: &At<'_, '_>, errors: &mut ErrorList) {
    check_any(event, "reportingController", errors);
    metadata::create(event.value(), Scope::Namespaced, NameRule::DnsSubdomain, errors);
    check_series(event, errors);
    if !event.has("eventTime") {
        event.field("eventTime").required(errors, "");
    }
    let sort = event.field("type");
    if !matches!(sort.text(), "Normal" | "Warning") {
        sort.invalid_as(errors, "", format!("has invalid value: {}", sort.text()));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if !event.field(field).is_empty() {
            errors.push(Error::invalid(&Path::new(shown), "", "needs to be unset"));
        }
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check_any(new, "reportingController", errors);
    metadata::update(new.value(), old.value(), errors);
    if new.field("series").value() != old.field("series").value() {
        check_series(new, errors);
    }
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let now = new.field(field);
        if now.value() != old.field(field).value() {
            let shown_value = match field {
                "regarding" | "related" => internal::shown_core("ObjectReference", &now),
                "deprecatedSource" => internal::shown_core("EventSource", &now),
                // Kubernetes: the path names another field than ours, so that its type says nothing.
                "note" => now.text().into(),
                _ => now.value().into(),
            };
            errors.push(Error::invalid(&Path::new(shown), shown_value, IMMUTABLE));
        }
    }
}

/// Through the core group. The metadata is not looked at.
fn check_core(event: &At<'_, '_>, errors: &mut ErrorList) {
    check_any(event, "reportingComponent", errors);
}

fn check_series(event: &At<'_, '_>, errors: &mut ErrorList) {
    let series = event.field("series");
    if series.is_set() && series.int_of("count") < 2 {
        series.field("count").invalid_as(errors, "", "should be at least 2");
    }
    if series.is_set() && !series.has("lastObservedTime") {
        series.field("lastObservedTime").required(errors, "");
    }
}

fn check_any(event: &At<'_, '_>, controller: &str, errors: &mut ErrorList) {
    let metadata = event.field("metadata");
    let namespace = metadata.text_of("namespace");
    let object = ["involvedObject", "regarding"].map(|field| event.field(field));
    let object_namespace =
        object.iter().map(|it| it.text_of("namespace")).find(|it| !it.is_empty()).unwrap_or("");
    let is_new = event.has("eventTime");
    let is_wrong = match (object_namespace.is_empty(), is_new) {
        (true, false) => !matches!(namespace, "" | "default"),
        (true, true) => !matches!(namespace, "default" | "kube-system"),
        (false, false) => namespace != object_namespace,
        (false, true) => false,
    };
    if is_wrong {
        let path = Path::new("involvedObject.namespace");
        errors.push(Error::invalid(&path, object_namespace, "does not match event.namespace"));
    }
    if is_new {
        check_words(event, controller, errors);
    }
    errors.extend(Format::Dns1123Subdomain.check(&Path::new("namespace"), namespace));
}

fn check_words(event: &At<'_, '_>, controller: &str, errors: &mut ErrorList) {
    let reporter = event.field(controller);
    if reporter.text().is_empty() {
        reporter.required(errors, "");
    }
    reporter.is_format(errors, Format::QualifiedName);
    for field in ["reportingInstance", "action", "reason"] {
        let word = event.field(field);
        if word.text().is_empty() {
            word.required(errors, "");
        }
        if word.text().len() > MAX_WORD_BYTES {
            word.invalid_as(errors, "", format!("can have at most {MAX_WORD_BYTES} characters"));
        }
    }
    let note = ["message", "note"].iter().map(|field| event.text_of(field)).map(str::len).max();
    if note > Some(MAX_NOTE_BYTES) {
        let problem = format!("can have at most {MAX_NOTE_BYTES} characters");
        errors.push(Error::invalid(&Path::new("message"), "", problem));
    }
}

fn from_core(event: &mut Members) {
    NAMES.iter().for_each(|(core, other)| rename(event, core, other));
}

fn to_core(event: &mut Members) {
    NAMES.iter().for_each(|(core, other)| rename(event, other, core));
}

fn rename(event: &mut Members, from: &str, to: &str) {
    if let Some(value) = event.remove(from) {
        event.insert(to.to_owned(), value);
    }
}

/// What stands in a field that has another name in each group.
fn either<'a>(event: &'a Value, core: &str, newer: &str) -> &'a Value {
    match &event[core] {
        Value::Null => &event[newer],
        value => value,
    }
}

/// A field of the object that the event is about.
fn object_field<'a>(path: &'static str, event: &'a Value) -> &'a str {
    let (_, member) = path.split_once('.').unwrap_or_default();
    text(&either(event, "involvedObject", "regarding")[member])
}

fn controller(event: &Value) -> &str {
    text(either(event, "reportingComponent", "reportingController"))
}

fn component(event: &Value) -> &str {
    or(text(&either(event, "source", "deprecatedSource")["component"]), controller(event))
}

fn first_seen(event: &Row<'_>) -> String {
    match either(event.object, "firstTimestamp", "deprecatedFirstTimestamp") {
        moment if instant(moment).is_some() => event.since(moment),
        _ => event.since(event.at("/eventTime")),
    }
}

fn last_seen(event: &Row<'_>) -> String {
    let series = event.at("/series");
    if !series.is_null() {
        return event.since(&series["lastObservedTime"]);
    }
    match either(event.object, "lastTimestamp", "deprecatedLastTimestamp") {
        moment if instant(moment).is_some() => event.since(moment),
        _ => first_seen(event),
    }
}

fn count(event: &Row<'_>) -> i64 {
    let series = event.at("/series");
    if !series.is_null() {
        return number(&series["count"]);
    }
    match number(either(event.object, "count", "deprecatedCount")) {
        0 => 1,
        count => count,
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
    let (source, component) = (either(event.object, "source", "deprecatedSource"), component(event.object));
    match or(text(&source["host"]), event.text("/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
