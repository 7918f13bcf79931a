//! Reads of an object and its collection in every representation that a client may request.

use super::subject::Subject;
use crate::{
    draw::Draw,
    story::{JSON, PROTOBUF, Request, Step, TABLE, YAML},
};

const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const PROTOBUF_TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
const PROTOBUF_METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PROTOBUF_METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const WRONG: [&str; 6] = [
    "text/plain",
    "application/json;as=Nothing;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v9;g=meta.k8s.io",
    "*/*",
    "application/*",
    "application/xml, application/json;q=0.5",
];

/// The representation of one object.
pub(super) fn object_form(draw: &mut Draw) -> &'static str {
    match draw.below(14) {
        0..5 => JSON,
        5 => YAML,
        6 | 7 => PROTOBUF,
        8 | 9 => TABLE,
        10 => METADATA,
        11 => PROTOBUF_METADATA,
        12 => PROTOBUF_TABLE,
        _ => draw.pick(&WRONG),
    }
}

fn list_form(draw: &mut Draw) -> &'static str {
    match draw.below(14) {
        0..4 => JSON,
        4 => YAML,
        5 | 6 => PROTOBUF,
        7 | 8 => TABLE,
        9 => METADATA_LIST,
        10 => PROTOBUF_METADATA_LIST,
        11 => KUBECTL,
        12 => PROTOBUF_TABLE,
        _ => draw.pick(&WRONG),
    }
}

const SELECTORS: [&str; 24] = [
    "labelSelector=a%3D1",
    "labelSelector=a!%3D1",
    "labelSelector=a+in+(1,2)",
    "labelSelector=a+notin+(1)",
    "labelSelector=a",
    "labelSelector=!a",
    "labelSelector=a>1",
    "labelSelector=a%3D%3D%3D1",
    "labelSelector=a+in+1",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=metadata.name!%3Da",
    "fieldSelector=metadata.namespace%3D{ns}",
    "fieldSelector=spec.nodeName%3Dx",
    "fieldSelector=status.phase%3DRunning",
    "fieldSelector=type%3DOpaque",
    "fieldSelector=spec.color%3Dred",
    "fieldSelector=nothing%3D1",
    "fieldSelector=metadata.name",
    "limit=1",
    "limit=2",
    "limit=-1",
    "limit=x",
    "resourceVersion={list}&resourceVersionMatch=NotOlderThan",
    "resourceVersion={list}&resourceVersionMatch=Exact",
];
/// The index of the first query with a limit.
const LIMITS: usize = 18;
const OBJECT_OPTIONS: [&str; 2] = ["pretty=false", "unknownOption=1"];
const INCLUDE: [&str; 4] =
    ["includeObject=None", "includeObject=Metadata", "includeObject=Object", "includeObject=Wrong"];

/// A GET of one object.
pub(super) fn get(subject: &Subject, letter: &str, draw: &mut Draw) -> Step {
    let form = object_form(draw);
    let mut request = Request::new("GET", subject.path(letter)).accept(form);
    if form.contains("Table") && draw.one_in(2) {
        request = request.query(draw.pick(&INCLUDE));
    }
    if draw.one_in(12) {
        request = request.query(draw.pick(&OBJECT_OPTIONS));
    }
    request.http2 = draw.one_in(3);
    if draw.one_in(15) {
        request.method = "HEAD";
    }
    request.compared()
}

/// A LIST of the collection, of all namespaces or of this story's.
pub(super) fn list(subject: &Subject, draw: &mut Draw) -> Step {
    let form = list_form(draw);
    let everywhere = !subject.namespaced || draw.one_in(5);
    let path = if everywhere { subject.everywhere() } else { subject.collection() };
    let mut request = Request::new("GET", path).accept(form);
    // Whether a page is the last depends on objects of other stories, too.
    let usable = if everywhere { &SELECTORS[..LIMITS] } else { &SELECTORS[..] };
    let selector = if draw.one_in(2) { draw.pick(usable) } else { "" };
    // Exclude objects of other stories.
    if everywhere && !selector.starts_with("labelSelector") {
        request = request.query("labelSelector=story%3D{id}");
    } else if everywhere {
        let selector = selector.replacen("labelSelector=", "labelSelector=story%3D{id},", 1);
        request = request.query(selector);
    }
    if !everywhere || !selector.starts_with("labelSelector") {
        request = request.query(selector);
    }
    if form.contains("Table") && draw.one_in(3) {
        request = request.query(draw.pick(&INCLUDE));
    }
    request.http2 = draw.one_in(3);
    request.compared()
}

/// Pages through the collection of the namespace.
pub(super) fn pages(subject: &Subject, draw: &mut Draw) -> Vec<Step> {
    let form = draw.pick(&[JSON, JSON, PROTOBUF, TABLE, METADATA_LIST]);
    if !subject.namespaced {
        return Vec::new();
    }
    let page = |query: &str| {
        let request = Request::new("GET", subject.collection()).accept(form);
        request.query("labelSelector=story%3D{id}&limit=1").query(query).compared()
    };
    vec![page(""), page("continue={continue}"), page("continue={continue}")]
}

/// A list at the start of a story, from which watches begin.
pub(super) fn watch_start(subject: &Subject) -> Step {
    Request::new("GET", subject.everywhere()).query("labelSelector=story%3D{id}").uncompared()
}

/// A watch that begins with the existing objects as events.
fn initial_events(subject: &Subject, form: &str) -> Step {
    let mut request = Request::new("GET", subject.collection()).accept(form).query(
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=20",
    );
    request = request.query("labelSelector=story%3D{id}");
    request.watch_until = Some("k8s.io/initial-events-end".to_owned());
    request.compared()
}

/// A watch of the changes since the first list, up to the last object of the story.
pub(super) fn watch(subject: &Subject, draw: &mut Draw) -> Step {
    let form = draw.pick(&[JSON, JSON, JSON, PROTOBUF, TABLE, METADATA, PROTOBUF_METADATA, YAML, "*/*"]);
    if draw.one_in(4) {
        return initial_events(subject, form);
    }
    let everywhere = !subject.namespaced || draw.one_in(3);
    let path = if everywhere { subject.everywhere() } else { subject.collection() };
    let selector = match draw.below(6) {
        0 => "labelSelector=story%3D{id},a%3D1",
        1 => "labelSelector=story%3D{id},!a",
        _ => "labelSelector=story%3D{id}",
    };
    let request =
        Request::new("GET", path).accept(form).query("watch=1&resourceVersion={firstlist}").query(selector);
    let mut request = request.query("timeoutSeconds=20");
    request.http2 = draw.one_in(2);
    request.watch_until = Some("zz-last".to_owned());
    request.compared()
}
