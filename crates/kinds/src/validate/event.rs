//! Events, old and new: the same objects under two groups, with stricter rules in `events.k8s.io`.

use api::field::{Error, ErrorList, Path};
use api::name::{Format, NameRule};

use super::at::{At, IMMUTABLE};
use super::{internal, metadata};

const MAX_WORD_BYTES: usize = 128;
const MAX_NOTE_BYTES: usize = 1024;

/// Through the core group. The metadata is not looked at.
pub(super) fn legacy(event: &At<'_, '_>, errors: &mut ErrorList) {
    check(event, "reportingComponent", errors);
}

pub(super) fn legacy_change(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    legacy(new, errors);
}

/// Through `events.k8s.io`.
pub(super) fn body(event: &At<'_, '_>, errors: &mut ErrorList) {
    check(event, "reportingController", errors);
    metadata::create(event.value(), api::meta::Scope::Namespaced, NameRule::DnsSubdomain, errors);
    series(event, errors);
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

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check(new, "reportingController", errors);
    metadata::update(new.value(), old.value(), errors);
    if new.field("series").value() != old.field("series").value() {
        series(new, errors);
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

fn series(event: &At<'_, '_>, errors: &mut ErrorList) {
    let series = event.field("series");
    if series.is_set() && series.int_of("count") < 2 {
        series.field("count").invalid_as(errors, "", "should be at least 2");
    }
    if series.is_set() && !series.has("lastObservedTime") {
        series.field("lastObservedTime").required(errors, "");
    }
}

fn check(event: &At<'_, '_>, controller: &str, errors: &mut ErrorList) {
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
        words(event, controller, errors);
    }
    errors.extend(Format::Dns1123Subdomain.check(&Path::new("namespace"), namespace));
}

fn words(event: &At<'_, '_>, controller: &str, errors: &mut ErrorList) {
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
