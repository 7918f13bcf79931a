//! Stories in a small language: each line is a change, and after `=>` the objects to look at.

use super::*;
use operator::Key;

/// `a/pod:p` is the object with UID `p` and name `p` of kind Pod in namespace `a`; `node:n` has no namespace.
fn identity(text: &str) -> (Uid, Identity) {
    let (namespace, rest) =
        text.split_once('/').map_or((None, text), |(namespace, rest)| (Some(namespace), rest));
    let (kind, name) = rest.split_once(':').expect("kind:name");
    (Uid::from(name), Identity { kind: KindName::new("v1", kind), key: Key::new(namespace, name) })
}

/// An object, then its owners: `!pod:p` blocks the owner's deletion. `deleting`, `foreground` and `orphan` tell how
/// it is deleted.
fn observed(text: &str) -> Observed {
    let mut words = text.split_whitespace();
    let (uid, identity_) = identity(words.next().expect("an object"));
    let mut object =
        Observed { uid, identity: identity_, owners: Vec::new(), deletion: Deletion::NotDeleted };
    for word in words {
        match word {
            "deleting" => object.deletion = Deletion::Deleting,
            "foreground" => object.deletion = Deletion::AwaitsDependents,
            "orphan" => object.deletion = Deletion::OrphansDependents,
            owner => {
                let (uid, Identity { kind, key }) = identity(owner.trim_start_matches('!'));
                let blocks = owner.starts_with('!');
                object.owners.push(OwnerRef { uid, kind, name: key.name().into(), blocks });
            }
        }
    }
    object
}

fn check(story: &str) {
    let mut graph = Graph::default();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (change, expected) = line.split_once("=>").unwrap_or((line, ""));
        let (verb, rest) = change.trim().split_once(' ').expect("a verb and an object");
        let then = match verb {
            "see" => graph.observe(observed(rest)),
            "gone" => graph.delete(rest.trim()),
            "absent" => {
                let (uid, identity) = identity(rest.trim());
                graph.confirm_absent(&uid, &identity)
            }
            "unserved" => {
                let (uid, identity) = identity(rest.trim());
                graph.forget(&uid, &identity.kind)
            }
            other => panic!("{other} is no verb"),
        };
        let mut found: Vec<String> = then.attempts.iter().map(ToString::to_string).collect();
        found.extend(then.invalid_owners.iter().map(|it| format!("invalid({},{})", it.dependent, it.owner)));
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(found, expected, "{line} in {story}");
    }
}

#[test]
fn an_owner_that_goes_away_makes_its_dependents_candidates() {
    check(
        "see a/set:s
        see a/pod:p a/set:s
        see a/pod:q a/set:s
        see a/pod:r
        gone s => p q
        gone p
        gone s",
    );
}

#[test]
fn an_unknown_owner_is_asked_for_once() {
    check(
        "see a/pod:p a/set:s => s
        see a/pod:q a/set:s
        absent a/set:s => p q
        absent a/set:s",
    );
    check(
        "see a/pod:p a/set:s => s
        see a/set:s
        see a/pod:q a/set:s",
    );
}

#[test]
fn a_new_reference_to_a_deleted_owner_asks_for_it_again() {
    check(
        "see a/set:s
        gone s
        see a/pod:p a/set:s => s
        absent a/set:s => p",
    );
}

#[test]
fn foreground_deletion_asks_for_dependents_and_the_owner_until_the_last_is_gone() {
    check(
        "see a/set:s
        see a/pod:p !a/set:s
        see a/pod:q !a/set:s
        see a/set:s foreground => p q s
        see a/set:s foreground
        see a/pod:p !a/set:s deleting
        gone p => s
        gone q => s
        see a/set:s deleting
        gone s",
    );
}

#[test]
fn a_dependent_that_no_longer_blocks_lets_its_owner_go_on() {
    check(
        "see a/set:s foreground => s
        see a/pod:p !a/set:s
        see a/pod:p a/set:s => s
        see a/pod:q !a/set:s
        see a/pod:q => s",
    );
}

#[test]
fn orphaning_asks_for_the_owner_alone() {
    check(
        "see a/set:s
        see a/pod:p a/set:s
        see a/set:s orphan => s
        see a/pod:p
        see a/set:s deleting
        gone s",
    );
}

#[test]
fn an_owner_in_another_namespace_is_reported() {
    // The owner is known first.
    check(
        "see b/set:s
        see a/pod:p b/set:s => p invalid(p,s)",
    );
    // The dependent is known first.
    check(
        "see a/pod:p a/set:s => s
        see b/set:s => p invalid(p,s)
        see b/pod:q b/set:s",
    );
    // The server says that it is not in the namespace of the dependent, though it is elsewhere.
    check(
        "see b/set:s
        see b/pod:q b/set:s
        see a/pod:p b/set:s => p invalid(p,s)
        absent a/set:s => p
        gone s => p q",
    );
}

#[test]
fn an_owner_of_the_cluster_may_be_named_from_any_namespace() {
    check(
        "see node:n
        see a/pod:p node:n
        see b/pod:q node:n
        see node:m node:n
        gone n => m p q",
    );
}

#[test]
fn dependents_that_name_an_owner_differently_are_decided_one_by_one() {
    // `s` is a set to one of them and a job to the other; the server has neither.
    check(
        "see a/pod:p a/set:s => s
        see a/pod:q a/job:s => q
        absent a/set:s => p s
        absent a/job:s => q s",
    );
    // Its real kind turns up: the dependent that names another one must be checked.
    check(
        "see a/pod:p a/set:s => s
        see a/job:s => p",
    );
}

#[test]
fn an_owner_whose_kind_is_no_longer_served_keeps_its_dependents() {
    check(
        "see a/cart:c
        see a/pod:p a/cart:c
        unserved a/cart:c
        see a/pod:q a/cart:c
        see a/cart:c
        gone c => p q",
    );
    // Another version of its API group has taken over.
    check(
        "see a/cart:c
        see a/pod:p a/cart:c
        see a/trolley:c
        unserved a/cart:c
        gone c => p",
    );
    // Objects of a kind that is not served block no owner.
    check(
        "see a/set:s foreground => s
        see a/cart:c !a/set:s
        unserved a/cart:c => s
        absent a/set:s",
    );
}

#[test]
fn subjects_know_whether_their_dependents_wait() {
    let mut graph = Graph::default();
    let mut dependents_of = |text: &str| {
        let object = observed(text);
        let uid = Uid::clone(&object.uid);
        graph.observe(object);
        (graph.subject("a").map(|it| it.dependents), graph.blocking_dependents(&uid).len())
    };
    assert_eq!(dependents_of("x/pod:a !x/pod:b"), (Some(Dependents::None), 0));
    assert_eq!(dependents_of("x/pod:b !x/pod:a"), (Some(Dependents::Some), 1));
    assert_eq!(dependents_of("x/pod:b !x/pod:a foreground"), (Some(Dependents::SomeAwaitTheirs), 1));
}

#[test]
fn known_absent_owners_have_a_namespace_or_none() {
    let mut graph = Graph::default();
    graph.observe(observed("a/pod:p a/set:s"));
    let (uid, identity_) = identity("a/set:s");
    graph.confirm_absent(&uid, &identity_);
    let owner = observed("a/pod:p a/set:s").owners.remove(0);
    assert!(graph.is_known_absent(&owner, Some("a")));
    assert!(!graph.is_known_absent(&owner, Some("b")));
    let (uid, identity_) = identity("set:s");
    graph.add_absent(&uid, &identity_);
    assert!(graph.is_known_absent(&owner, Some("b")), "it is no object of the cluster either");
}
