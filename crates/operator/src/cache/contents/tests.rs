//! What contents make of what they are told, case by case.

use super::*;
use crate::cache::{
    cut::{Cuts, Shape},
    item::Reader,
};
use std::sync::Arc;

/// An object, written `name:uid@version`.
pub(super) fn item(text: &str) -> Item {
    let (name, rest) = text.split_once(':').unwrap();
    let (uid, version) = rest.split_once('@').unwrap();
    let shape = Shape {
        api_version: "v1".to_owned(),
        kind: "Thing".to_owned(),
        metadata_only: false,
        cuts: Cuts::default(),
    };
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"prod","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    );
    Reader::new(Arc::new(shape)).read(&json).unwrap()
}

fn text(item: &Item) -> String {
    format!("{}:{}@{}", item.key().name(), item.uid(), item.resource_version())
}

/// Something that is told: `list`, `listed a:1@1`, `complete 5`, `changed …`, `removed …`,
/// `reached 7`, `wrote …`, `deleted …`, `absent …`. Answers what changed by it.
fn tell(contents: &mut Contents, news: &str) -> String {
    let (verb, rest) = news.split_once(' ').unwrap_or((news, ""));
    let moved = match verb {
        "list" => {
            contents.begin(0);
            Vec::new()
        }
        "listed" => contents.put(0, item(rest)),
        "changed" => {
            let moved = contents.put(0, item(rest));
            contents.reach(0, item(rest).resource_version());
            moved
        }
        "removed" => {
            let moved = contents.remove(&item(rest));
            contents.reach(0, item(rest).resource_version());
            moved
        }
        "reached" => {
            contents.reach(0, rest.parse().unwrap());
            Vec::new()
        }
        "complete" => match contents.complete(0, rest.parse().unwrap()) {
            Ok(moved) => moved,
            Err(Backwards) => return "backwards".to_owned(),
        },
        "wrote" => contents.wrote(item(rest)),
        "deleted" => contents.deleted(item(rest).key(), item(rest).uid()),
        "absent" => contents.absent(item(rest).key(), item(rest).resource_version()),
        other => panic!("{other}"),
    };
    let told = moved.iter().map(|Moved { before, after }| match (before, after) {
        (None, Some(after)) => format!("+{}", text(after)),
        (Some(before), None) => format!("-{}", text(before)),
        (Some(_), Some(after)) => format!("~{}", text(after)),
        (None, None) => panic!("nothing became nothing"),
    });
    told.collect::<Vec<_>>().join(" ")
}

/// Each line is what is told, and behind `=>` what changed by it.
fn check(story: &str) {
    let mut contents = Contents::new(vec![None]);
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (news, expected) = line.split_once("=>").unwrap_or((line, ""));
        assert_eq!(tell(&mut contents, news.trim()), expected.trim(), "{line}\nin{story}");
    }
}

#[test]
fn a_list_and_what_follows() {
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
fn a_second_list_tells_only_what_is_different() {
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
fn a_name_that_was_free_shows_nobody_who_had_it_before() {
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
fn a_deletion_is_remembered_through_a_list_that_began_before_it() {
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
fn a_deletion_that_was_none_is_healed_by_the_next_list() {
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
fn a_late_answer_does_not_bring_back_what_went_meanwhile() {
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
fn a_namesake_takes_the_place_of_the_one_before() {
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
fn what_left_the_scope_stays_out_until_it_is_back() {
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
fn a_history_that_was_set_back_is_taken_as_it_is() {
    check(
        "list
         listed a:1@3 => +a:1@3
         listed b:2@9 => +b:2@9
         complete 10
         list
         listed a:1@2
         complete 4 => backwards
         list
         listed a:1@2
         complete 4 => backwards
         list
         complete 4 => backwards
         list
         listed a:1@2 => ~a:1@2
         wrote c:3@5 => +c:3@5
         complete 4 => -b:2@9
         changed a:1@6 => ~a:1@6",
    );
}

#[test]
fn a_server_that_lags_behind_is_not_believed() {
    check(
        "list
         listed a:1@3 => +a:1@3
         complete 10
         changed a:1@11 => ~a:1@11
         removed a:1@12 => -a:1@11
         changed a:1@11
         list
         listed a:1@11
         complete 11 => backwards
         list
         complete 12",
    );
}

#[test]
fn a_feed_minds_its_own_namespace() {
    let mut contents = Contents::new(vec![Some("other".to_owned()), Some("prod".to_owned())]);
    assert_eq!(contents.feed_of(Some("prod")), Some(1));
    assert_eq!(contents.feed_of(Some("dev")), None);
    assert_eq!(contents.feed_of(None), None);
    contents.begin(1);
    assert_eq!(contents.put(1, item("a:1@3")).len(), 1);
    contents.complete(1, 5).unwrap();
    assert!(!contents.is_synced());
    contents.begin(0);
    assert_eq!(contents.complete(0, 6).unwrap().len(), 0, "the other feed's objects stay");
    assert!(contents.is_synced());
}

#[test]
fn indexes_follow() {
    let by_length = |item: &Item| vec![item.key().name().len().to_string()];
    let find = |contents: &Contents, value| contents.indexed("length", value).map(text).collect::<Vec<_>>();
    let mut contents = Contents::new(vec![None]);
    contents.begin(0);
    contents.put(0, item("aa:1@3"));
    contents.add_index("length", Arc::new(by_length));
    contents.put(0, item("bb:2@4"));
    contents.put(0, item("c:3@4"));
    assert_eq!(find(&contents, "2"), ["aa:1@3", "bb:2@4"]);
    contents.remove(&item("aa:1@5"));
    contents.put(0, item("bb:2@6"));
    assert_eq!(find(&contents, "2"), ["bb:2@6"]);
    assert_eq!(find(&contents, "1"), ["c:3@4"]);
    assert_eq!(contents.items().by_uid("3").map(text).as_deref(), Some("c:3@4"));
    assert_eq!(contents.items().by_uid("1").map(text), None);
}
