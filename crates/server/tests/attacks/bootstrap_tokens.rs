//! Bootstrap tokens: only a whole, current one from kube-system lets a node in, and only as a bootstrapper.

use super::{SELF_REVIEW, bearer};
use crate::access::{Place, place, place_with};
use serde_json::{Value, json};
use server::Config;
use std::time::Duration;
use world::{Timestamp, World};

const TOKEN: &str = "abcdef.0123456789abcdef";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const REVIEW: &str = "POST /apis/authentication.k8s.io/v1/tokenreviews";

async fn with_tokens(world: World) -> Place {
    place_with(world, Config { accepts_bootstrap_tokens: true, ..Config::default() }).await
}

/// The Secret of a token.
fn secret(id: &str) -> Value {
    json!({
        "metadata": {"name": format!("bootstrap-token-{id}")},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:workers,system:bootstrappers:blue",
        },
    })
}

/// The answer to who the token is: a code, and the user.
async fn who(place: &Place, token: &str) -> (u16, Value) {
    let (code, text) = place.send(&bearer(token), SELF_REVIEW, json!({})).await;
    assert!(!text.contains(token) || token.is_empty(), "{token} is echoed");
    let answer: Value = serde_json::from_str(&text).unwrap();
    (code, answer["status"]["userInfo"].clone())
}

#[test]
fn a_bootstrap_token_is_a_user_of_the_bootstrappers() {
    let run = world::simulate(1, |world| async move {
        let place = with_tokens(world).await;
        place.root(&format!("POST {SECRETS}"), secret("abcdef")).await;
        let groups = [
            "system:bootstrappers",
            "system:bootstrappers:blue",
            "system:bootstrappers:workers",
            "system:authenticated",
        ];
        let user = json!({"username": "system:bootstrap:abcdef", "groups": groups});
        assert_eq!(who(&place, TOKEN).await, (201, user.clone()));
        let review = async |audiences: Value| {
            let spec = json!({"token": TOKEN, "audiences": audiences});
            place.root(REVIEW, json!({"spec": spec})).await["status"].clone()
        };
        let ours = json!(["https://kubernetes.default.svc"]);
        assert_eq!(review(json!([])).await, json!({"authenticated": true, "user": user, "audiences": ours}));
        let other = review(json!(["vault"])).await;
        assert_ne!(other["authenticated"], true, "for another audience: {other}");
        let (code, answer) =
            place.by(TOKEN, &format!("GET {SECRETS}/bootstrap-token-abcdef"), Value::Null).await;
        assert_eq!(code, 403, "it may not even read itself: {answer}");
    });
    run.unwrap();
}

#[test]
fn bootstrap_tokens_are_rejected_unless_they_are_turned_on() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        place.root(&format!("POST {SECRETS}"), secret("abcdef")).await;
        assert_eq!(who(&place, TOKEN).await.0, 401);
    });
    run.unwrap();
}

#[test]
fn guessed_and_malformed_bootstrap_tokens_are_rejected() {
    let run = world::simulate(1, |world| async move {
        let place = with_tokens(world).await;
        place.root(&format!("POST {SECRETS}"), secret("abcdef")).await;
        let slashed = json!({"metadata": {"name": "abcdef"}, "type": "bootstrap.kubernetes.io/token",
            "stringData": secret("abcdef")["stringData"]});
        place.root(&format!("POST {SECRETS}"), slashed).await;
        assert_eq!(who(&place, TOKEN).await.0, 201);
        for (attack, token) in [
            ("another secret", "abcdef.0123456789abcdee"),
            ("no secret", "abcdef."),
            ("no id", ".0123456789abcdef"),
            ("an id that is not there", "abcdeg.0123456789abcdef"),
            ("a shorter secret", "abcdef.0123456789abcde"),
            ("a longer secret", "abcdef.0123456789abcdef0"),
            ("capital letters", "ABCDEF.0123456789ABCDEF"),
            ("an id that is a path", "../../.0123456789abcdef"),
            ("a third part", "abcdef.0123456789abcdef.x"),
            ("another separator", "abcdef:0123456789abcdef"),
            ("the name of the secret", "bootstrap-token-abcdef.0123456789abcdef"),
            ("a secret in base64", "abcdef.MDEyMzQ1Njc4OWFi"),
            ("a wildcard", "*.0123456789abcdef"),
        ] {
            assert_eq!(who(&place, token).await.0, 401, "{attack}");
        }
    });
    run.unwrap();
}

#[test]
fn secrets_that_are_not_whole_and_current_bootstrap_tokens_are_rejected() {
    let run = world::simulate(1, |world| async move {
        let place = with_tokens(world).await;
        let long = "a".repeat(257);
        for (number, (attack, field, value)) in [
            ("no usage", "usage-bootstrap-authentication", ""),
            ("another usage", "usage-bootstrap-authentication", "True"),
            ("the id of another", "token-id", "zzzzzz"),
            ("no id", "token-id", ""),
            ("another key", "token-secret", "0123456789abcdee"),
            ("a key and more", "token-secret", "0123456789abcdef\n"),
            ("an expiration in the past", "expiration", "1999-01-01T00:00:00Z"),
            ("an expiration that is no time", "expiration", "tomorrow"),
            ("the group of administrators", "auth-extra-groups", "system:masters"),
            ("it and another", "auth-extra-groups", "system:bootstrappers:a,system:masters"),
            ("the group of nodes", "auth-extra-groups", "system:nodes"),
            ("a group that begins alike", "auth-extra-groups", "system:bootstrappersx:a"),
            ("an empty group", "auth-extra-groups", "system:bootstrappers:a,"),
            ("a group with a space", "auth-extra-groups", "system:bootstrappers:a b"),
            ("a long group", "auth-extra-groups", &format!("system:bootstrappers:{long}")),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("a{number:05}");
            let mut secret = secret(&id);
            secret["stringData"][field] = json!(value);
            place.root(&format!("POST {SECRETS}"), secret).await;
            let (code, user) = who(&place, &format!("{id}.0123456789abcdef")).await;
            assert_eq!(code, 401, "{attack}: {user}");
        }
        let mut opaque = secret("abcdef");
        opaque["type"] = json!("Opaque");
        place.root(&format!("POST {SECRETS}"), opaque).await;
        assert_eq!(who(&place, TOKEN).await.0, 401, "a secret of another type");
        let elsewhere = secret("bbbbbb");
        place.root("POST /api/v1/namespaces/a/secrets", elsewhere).await;
        assert_eq!(who(&place, "bbbbbb.0123456789abcdef").await.0, 401, "a secret of another namespace");
    });
    run.unwrap();
}

#[test]
fn a_bootstrap_token_ends_when_it_expires_loses_its_usage_or_is_deleted() {
    let run = world::simulate(1, |world| async move {
        let place = with_tokens(world).await;
        let end = Timestamp::from_second(place.world.wall().as_second() + 60).unwrap();
        let mut soon = secret("aaaaaa");
        soon["stringData"]["expiration"] = json!(end.to_string());
        place.root(&format!("POST {SECRETS}"), soon).await;
        assert_eq!(who(&place, "aaaaaa.0123456789abcdef").await.0, 201);
        place.world.sleep(Duration::from_secs(60)).await;
        assert_eq!(who(&place, "aaaaaa.0123456789abcdef").await.0, 401, "it has expired");

        let mut held = secret("abcdef");
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        place.root(&format!("POST {SECRETS}"), held).await;
        assert_eq!(who(&place, TOKEN).await.0, 201);
        place.root(&format!("DELETE {SECRETS}/bootstrap-token-abcdef"), Value::Null).await;
        assert_eq!(who(&place, TOKEN).await.0, 401, "it is being deleted, though a finalizer holds it");

        place.root(&format!("POST {SECRETS}"), secret("bbbbbb")).await;
        let usage = json!({"data": {"usage-bootstrap-authentication": null}});
        place.root(&format!("PATCH {SECRETS}/bootstrap-token-bbbbbb"), usage).await;
        assert_eq!(who(&place, "bbbbbb.0123456789abcdef").await.0, 401, "it has lost its usage");
        place.root(&format!("POST {SECRETS}"), secret("cccccc")).await;
        assert_eq!(who(&place, "cccccc.0123456789abcdef").await.0, 201);
        place.root(&format!("DELETE {SECRETS}/bootstrap-token-cccccc"), Value::Null).await;
        assert_eq!(who(&place, "cccccc.0123456789abcdef").await.0, 401, "it is deleted");
    });
    run.unwrap();
}
