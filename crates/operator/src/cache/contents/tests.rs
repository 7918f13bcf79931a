//! Sequences of updates and own writes, and the deltas that each makes.

use super::*;
use crate::cache::test_item as item;

fn text(item: &Item) -> String {
    format!("{}:{}@{}", item.key().name(), item.uid(), item.resource_version())
}

/// Carries out one line of a test: `list`, `listed a:1@1`, `complete 5`, `changed …`, `removed …`,
/// `reached 7` for updates; `wrote …`, `deleted …`, `absent …` for own writes. Returns the deltas.
fn carry_out(contents: &mut Contents, line: &str) -> String {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let update = |contents: &mut Contents, update| contents.apply(0, update);
    let deltas = match verb {
        "list" => update(contents, CacheUpdate::ListStarted),
        "listed" => update(contents, CacheUpdate::Listed(item(rest))),
        "complete" => update(contents, CacheUpdate::ListComplete(rest.parse().unwrap())),
        "changed" => update(contents, CacheUpdate::Applied(item(rest))),
        "removed" => update(contents, CacheUpdate::Deleted(item(rest))),
        "reached" => update(contents, CacheUpdate::CaughtUpTo(rest.parse().unwrap())),
        "wrote" => Ok(contents.wrote(item(rest))),
        "deleted" => Ok(contents.deleted(item(rest).key(), item(rest).uid())),
        "absent" => Ok(contents.absent(item(rest).key(), item(rest).resource_version())),
        other => panic!("{other}"),
    };
    let Ok(deltas) = deltas else { return "stale".to_owned() };
    let shown = deltas.iter().map(|Delta { before, after, .. }| match (before, after) {
        (None, Some(after)) => format!("+{}", text(after)),
        (Some(before), None) => format!("-{}", text(before)),
        (Some(_), Some(after)) => format!("~{}", text(after)),
        (None, None) => panic!("a delta without an object"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Behind `=>` are the deltas that the line makes.
fn check(story: &str) {
    let mut contents = Contents::new(vec![None]);
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (action, expected) = line.split_once("=>").unwrap_or((line, ""));
        assert_eq!(carry_out(&mut contents, action.trim()), expected.trim(), "{line}\nin{story}");
    }
}

#[test]
fn a_list_and_then_watch_events() {
    check(
        "list
         listed a:1@3 => +a:1@3
         listed b:2@4 => +b:2@4
         complete 5
         changed a:1@6 => ~a:1@6
         removed b:2@7 => -b:2@4
         removed b:2@7
         changed b:3@8 => +b:3@8",
    );
}

#[test]
fn a_second_list_reports_only_differences() {
    check(
        "list
         listed a:1@3 => +a:1@3
         listed b:2@4 => +b:2@4
         listed c:5@4 => +c:5@4
         complete 5
         list
         listed a:1@3
         listed c:6@9 => -c:5@4 +c:6@9
         complete 9 => -b:2@4",
    );
}

#[test]
fn an_older_event_does_not_undo_an_own_write() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 5
         wrote a:1@8 => ~a:1@8
         changed a:1@6
         changed a:1@8
         changed a:1@9 => ~a:1@9
         wrote a:1@7",
    );
}

#[test]
fn an_older_list_does_not_undo_an_own_write() {
    check(
        "list
         wrote a:1@8 => +a:1@8
         listed a:1@3
         wrote b:2@9 => +b:2@9
         wrote c:3@4 => +c:3@4
         complete 5 => -c:3@4
         changed a:1@8
         changed b:2@9",
    );
}

#[test]
fn an_object_this_process_deleted_stays_away() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 5
         deleted a:1@0 => -a:1@3
         changed a:1@6
         wrote a:1@7
         removed a:1@8
         changed a:2@9 => +a:2@9",
    );
}

#[test]
fn an_absent_name_hides_earlier_objects_of_that_name() {
    check(
        "list
         complete 2
         absent a:9@6
         changed a:1@3
         removed a:1@4
         changed a:2@5
         removed a:2@6
         changed a:3@7 => +a:3@7
         absent a:9@6",
    );
}

#[test]
fn a_list_that_started_before_a_deletion_does_not_undo_it() {
    check(
        "list
         listed a:1@3 => +a:1@3
         deleted a:1@0 => -a:1@3
         listed a:1@3
         complete 5
         changed a:1@4
         removed a:1@6",
    );
}

#[test]
fn a_list_brings_back_an_object_that_was_not_deleted_after_all() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 5
         deleted a:1@0 => -a:1@3
         list
         listed a:1@3
         complete 6 => +a:1@3",
    );
}

#[test]
fn a_late_response_does_not_bring_back_a_deleted_object() {
    check(
        "list
         complete 5
         changed a:1@6 => +a:1@6
         removed a:1@7 => -a:1@6
         wrote a:1@6
         reached 12
         wrote b:2@11
         wrote b:2@13 => +b:2@13",
    );
}

#[test]
fn a_new_object_of_the_same_name_replaces_the_one_before() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 5
         wrote a:2@9 => -a:1@3 +a:2@9
         removed a:1@8
         changed a:2@9",
    );
}

#[test]
fn an_object_that_left_the_scope_stays_out_until_it_returns() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 5
         absent a:1@8 => -a:1@3
         changed a:1@6
         removed a:1@8
         changed a:1@9 => +a:1@9
         absent a:1@7",
    );
}

#[test]
fn the_third_stale_list_in_a_row_is_accepted() {
    check(
        "list
         listed a:1@3 => +a:1@3
         listed b:2@9 => +b:2@9
         complete 10
         list
         listed a:1@2
         complete 4 => stale
         list
         listed a:1@2
         complete 4 => stale
         list
         complete 4 => stale
         list
         listed a:1@2 => ~a:1@2
         wrote c:3@5 => +c:3@5
         complete 4 => -b:2@9
         changed a:1@6 => ~a:1@6",
    );
}

#[test]
fn a_stale_list_is_not_accepted() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 10
         changed a:1@11 => ~a:1@11
         removed a:1@12 => -a:1@11
         changed a:1@11
         list
         listed a:1@11
         complete 11 => stale
         list
         complete 12",
    );
}

#[test]
fn a_reflector_only_changes_its_own_namespace() {
    let mut contents = Contents::new(vec![Some("other".to_owned()), Some("prod".to_owned())]);
    assert_eq!(contents.reflector_of(Some("prod")), Some(1));
    assert_eq!(contents.reflector_of(Some("dev")), None);
    assert_eq!(contents.reflector_of(None), None);
    contents.apply(1, CacheUpdate::ListStarted).unwrap();
    assert_eq!(contents.apply(1, CacheUpdate::Listed(item("a:1@3"))).unwrap().len(), 1);
    contents.apply(1, CacheUpdate::ListComplete(5)).unwrap();
    assert!(!contents.is_synced());
    contents.apply(0, CacheUpdate::ListStarted).unwrap();
    let deltas = contents.apply(0, CacheUpdate::ListComplete(6)).unwrap();
    assert_eq!(deltas.len(), 0, "the other reflector's objects stay");
    assert!(contents.is_synced());
}

#[test]
fn indexes_are_updated_with_the_objects() {
    let by_length = |item: &Item| vec![item.key().name().len().to_string()];
    let find =
        |contents: &Contents, value| contents.indexes().find("length", value).map(text).collect::<Vec<_>>();
    let mut contents = Contents::new(vec![None]);
    let mut apply = |update| contents.apply(0, update).unwrap();
    apply(CacheUpdate::ListStarted);
    apply(CacheUpdate::Listed(item("aa:1@3")));
    contents.add_index("length", IndexFunction::of_items(by_length));
    let mut apply = |update| contents.apply(0, update).unwrap();
    apply(CacheUpdate::Listed(item("bb:2@4")));
    apply(CacheUpdate::Listed(item("c:3@4")));
    assert_eq!(find(&contents, "2"), ["aa:1@3", "bb:2@4"]);
    let mut apply = |update| contents.apply(0, update).unwrap();
    apply(CacheUpdate::Deleted(item("aa:1@5")));
    apply(CacheUpdate::Listed(item("bb:2@6")));
    assert_eq!(find(&contents, "2"), ["bb:2@6"]);
    assert_eq!(find(&contents, "1"), ["c:3@4"]);
    assert_eq!(contents.items().by_uid("3").map(text).as_deref(), Some("c:3@4"));
    assert_eq!(contents.items().by_uid("1").map(text), None);
}
