//! Generates a story from a seed and a number.

mod access;
mod bad_input;
mod definitions;
mod mutate;
mod reads;
mod reviews;
mod subject;
mod value;
mod writes;

use crate::{
    draw::Draw,
    json::Json,
    story::{Request, Step, Story},
};
use mutate::Wildness;
use subject::Subject;
use writes::Writer;

/// The requests before the first story: definitions of custom resources.
pub fn opening() -> Story {
    let setup = subject::definitions().iter().flat_map(subject::define).collect();
    Story { theme: "opening", setup, steps: Vec::new(), cleanup: Vec::new() }
}

pub fn story(seed: u64, number: u64) -> Story {
    let mut draw = Draw::new(seed, number);
    let subjects = subject::subjects();
    let (built_in, custom): (Vec<&Subject>, Vec<&Subject>) = subjects.iter().partition(|it| !it.is_custom());
    match draw.below(21) {
        0..4 => life("tame built-in", draw.pick(&built_in), Wildness::Tame, &mut draw),
        4..7 => life("wild built-in", draw.pick(&built_in), Wildness::Wild, &mut draw),
        7..11 => life("tame custom", draw.pick(&custom), Wildness::Tame, &mut draw),
        11..13 => life("wild custom", draw.pick(&custom), Wildness::Wild, &mut draw),
        13..15 => access::story(&mut draw),
        15..17 => bad_input::story(&mut draw),
        17 => reviews::documents(&mut draw),
        18 => definitions::story(&mut draw),
        19 => reviews::reviews(&mut draw),
        _ => reviews::pods(&mut draw),
    }
}

/// Creates the namespace of the story, on the real server also the objects that Setpoint puts into it.
fn namespace() -> Vec<Step> {
    let namespace =
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"{ns}","labels":{"story":"{id}"}}}"#;
    let account = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
    let authority = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt"},"data":{"ca.crt":"x"}}"#;
    let real_only = |step: Step| Step { real_only: true, ..step };
    vec![
        Request::new("POST", "/api/v1/namespaces").json(Json::literal(namespace)).uncompared(),
        real_only(
            Request::new("POST", "/api/v1/namespaces/{ns}/serviceaccounts")
                .json(Json::literal(account))
                .uncompared(),
        ),
        real_only(
            Request::new("POST", "/api/v1/namespaces/{ns}/configmaps")
                .json(Json::literal(authority))
                .uncompared(),
        ),
    ]
}

/// One to three objects of a kind: writes, with reads after each, then lists and watches of everything.
fn life(theme: &'static str, subject: &Subject, wildness: Wildness, draw: &mut Draw) -> Story {
    let mut steps = Vec::new();
    let mut setup = namespace();
    setup.push(reads::watch_start(subject));
    let letters = &["a", "b", "c"][..=draw.below(3)];
    let mut writers: Vec<_> =
        letters.iter().map(|letter| Writer::new(subject, letter, wildness, draw)).collect();
    for writer in &mut writers {
        steps.push(writer.first(draw));
        steps.push(reads::get(subject, writer.letter, draw));
    }
    for _ in 0..4 + draw.below(10) {
        let at = draw.below(writers.len());
        steps.push(writers[at].next(draw));
        steps.push(reads::get(subject, writers[at].letter, draw));
        if draw.one_in(2) {
            steps.push(reads::list(subject, draw));
        }
    }
    steps.extend(Writer::last(subject));
    let watches: Vec<_> = (0..2).map(|_| reads::watch(subject, draw)).collect();
    let lists: Vec<_> = (0..3).map(|_| reads::list(subject, draw)).collect();
    steps.extend(watches);
    steps.extend(lists);
    steps.extend(reads::pages(subject, draw));
    if draw.one_in(2) && subject.resource != "namespaces" {
        let request = Request::new("DELETE", subject.collection()).query("labelSelector=story%3D{id},a%3D1");
        steps.push(request.compared());
        steps.push(reads::list(subject, draw));
    }
    Story { theme, setup, steps, cleanup: cleanup(subject, letters) }
}

/// Deletes the objects of the story, finalizers first.
fn cleanup(subject: &Subject, letters: &[&'static str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for letter in letters.iter().chain(&["zz-last", "zz-last-too"]) {
        let path = subject.path(letter);
        let patch = Json::literal(r#"{"metadata":{"finalizers":null}}"#);
        let patch = crate::story::Body::Json(patch);
        if !letter.starts_with("zz-last") {
            steps.push(Request::new("PATCH", path.clone()).body(writes::MERGE, patch).uncompared());
        }
        steps.push(Request::new("DELETE", path).query("gracePeriodSeconds=0").uncompared());
    }
    steps
}
