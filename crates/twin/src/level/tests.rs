//! What is replaced in answers, and what is left as it is.

use super::*;

fn levelled(path: &str, bodies: &[&str]) -> Vec<String> {
    let now: jiff::Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
    let mut leveller = Normalizer::new("ns-q1q", "q1q", now);
    let level = |body: &&str| {
        let content = match Json::parse(body.as_bytes()) {
            Some((json, [])) => Content::Json(json),
            _ => Content::Text((*body).to_owned()),
        };
        let mut answer = Answer { status: 200, headers: Vec::new(), content };
        leveller.level(&Request::new("GET", path), &mut answer);
        match answer.content {
            Content::Json(json) => json.to_string(),
            Content::Text(text) => text,
            _ => String::new(),
        }
    };
    bodies.iter().map(level).collect()
}

const OBJECT: &str = "/api/v1/namespaces/ns-q1q/configmaps/a";
const LIST: &str = "/api/v1/namespaces/ns-q1q/configmaps";

#[test]
fn values_are_numbered_so_that_equal_ones_stay_equal() {
    let one = r#"{"metadata":{"namespace":"ns-q1q","uid":"11111111-2222-3333-4444-555555555555","resourceVersion":"7"}}"#;
    let two = r#"{"metadata":{"namespace":"ns-q1q","uid":"11111111-2222-3333-4444-555555555555","resourceVersion":"9"}}"#;
    assert_eq!(
        levelled(OBJECT, &[one, two]),
        [
            r#"{"metadata":{"namespace":"{ns}","uid":"{uid 0}","resourceVersion":"{rv 0}"}}"#,
            r#"{"metadata":{"namespace":"{ns}","uid":"{uid 0}","resourceVersion":"{rv 1}"}}"#
        ]
    );
}

#[test]
fn the_version_of_a_list_is_not_that_of_an_object() {
    let list = r#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"resourceVersion":"9"}}]}"#;
    assert_eq!(
        levelled(LIST, &[list]),
        [r#"{"metadata":{"resourceVersion":"{list}"},"items":[{"metadata":{"resourceVersion":"{rv 0}"}}]}"#]
    );
}

#[test]
fn objects_with_generated_names_are_listed_in_the_order_of_their_creation() {
    let made = |name: &str| format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    let list = |one: &str, other: &str| format!(r#"{{"items":[{},{}]}}"#, made(one), made(other));
    let (early, late) = ("gen-zzzzz", "gen-bbbbb");
    let answers = levelled(LIST, &[&made(early), &made(late), &list(late, early)]);
    assert_eq!(answers[2], list("{generated 0}", "{generated 1}"));
}

#[test]
fn only_times_of_now_are_levelled() {
    let body = r#"{"a":"2026-05-04T09:59:59Z","b":"2001-01-01T00:00:00Z","c":"2026-05-04T09:59:59.123456Z"}"#;
    assert_eq!(
        levelled(OBJECT, &[body]),
        [r#"{"a":"{time}","b":"2001-01-01T00:00:00Z","c":"{time with fractions}"}"#]
    );
}

#[test]
fn yaml_is_levelled_as_text() {
    let body = "metadata:\n  name: gen-bcdfg\n  resourceVersion: \"12\"\n";
    assert_eq!(levelled(OBJECT, &[body]), ["metadata:\n  name: {generated 0}\n  resourceVersion: {rv 0}\n"]);
    assert_eq!(levelled(LIST, &[body]), ["metadata:\n  name: {generated 0}\n  resourceVersion: {list}\n"]);
}

#[test]
fn managers_in_yaml_are_sorted() {
    let entry = |manager: &str, time: &str| {
        format!("  - apiVersion: v1\n    manager: {manager}\n    time: \"2026-05-04T10:00:0{time}Z\"\n")
    };
    let object =
        |entries: [String; 2]| format!("metadata:\n  managedFields:\n{}  name: a\n", entries.concat());
    let one = object([entry("a", "1"), entry("b", "2")]);
    let other = object([entry("b", "1"), entry("a", "2")]);
    let levelled = levelled(OBJECT, &[&one, &other]);
    assert_eq!(levelled[0], levelled[1]);
    assert_eq!(levelled[0].lines().count(), 9);
}

#[test]
fn a_path_tells_objects_from_collections() {
    for (path, expected) in [
        ("/api/v1/namespaces", false),
        ("/api/v1/namespaces/a", true),
        ("/api/v1/namespaces/a/pods", false),
        ("/api/v1/namespaces/a/pods/b", true),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale", true),
        ("/apis/apps/v1/deployments", false),
        ("/apis/storage.k8s.io/v1/storageclasses/x", true),
    ] {
        assert_eq!(names_an_object(path), expected, "{path}");
    }
}
