//! Shrinks a story that shows a difference: fewer requests, simpler forms, smaller bodies.
//!
//! The last step of the story is the one that differs. Every smaller story is run; a change that hides the
//! difference is undone.

use crate::{
    json::Json,
    story::{Body, JSON, Request, Step, Story},
};

/// Runs of one shrink: enough for twenty requests with bodies of thirty members.
const PLAY_LIMIT: usize = 220;

/// Gives the smallest story found for which `shows` still holds.
pub async fn shrink(story: Story, mut shows: impl AsyncFnMut(&Story) -> bool) -> Story {
    let mut search = Search { best: story, plays: 0 };
    search.drop_steps(&mut shows).await;
    search.simplify_requests(&mut shows).await;
    search.shrink_bodies(&mut shows).await;
    search.drop_steps(&mut shows).await;
    search.best
}

struct Search {
    best: Story,
    plays: usize,
}

impl Search {
    async fn accept(&mut self, candidate: Story, shows: &mut impl AsyncFnMut(&Story) -> bool) -> bool {
        if self.plays >= PLAY_LIMIT {
            return false;
        }
        self.plays += 1;
        let shown = shows(&candidate).await;
        if shown {
            self.best = candidate;
        }
        shown
    }

    /// Tries to drop ever shorter runs of steps; the last step stays.
    async fn drop_steps(&mut self, shows: &mut impl AsyncFnMut(&Story) -> bool) {
        let mut width = (self.best.steps.len() / 2).max(1);
        loop {
            let mut at = self.best.steps.len().saturating_sub(1);
            while at > 0 {
                let from = at.saturating_sub(width);
                let mut candidate = self.best.clone();
                candidate.steps.drain(from..at);
                self.accept(candidate, shows).await;
                at = from;
            }
            if width == 1 {
                return;
            }
            width /= 2;
        }
    }

    async fn simplify_requests(&mut self, shows: &mut impl AsyncFnMut(&Story) -> bool) {
        for at in 0..self.best.steps.len() {
            for simpler in SIMPLER {
                let mut candidate = self.best.clone();
                if simpler(&mut candidate.steps[at]) {
                    self.accept(candidate, shows).await;
                }
            }
            let pairs: Vec<String> = split_query(&self.best.steps[at].request);
            for pair in pairs.into_iter().filter(|pair| !is_needed(pair)) {
                let mut candidate = self.best.clone();
                let kept: Vec<_> =
                    split_query(&candidate.steps[at].request).into_iter().filter(|it| *it != pair).collect();
                candidate.steps[at].request.query = kept.join("&");
                self.accept(candidate, shows).await;
            }
        }
    }

    async fn shrink_bodies(&mut self, shows: &mut impl AsyncFnMut(&Story) -> bool) {
        for at in 0..self.best.steps.len() {
            let mut removal = 0;
            while let Some(body) = self.best.steps[at].request.body.json() {
                let mut smaller = body.clone();
                if !remove_nth(&mut smaller, &mut removal.clone(), 0) {
                    break;
                }
                let mut candidate = self.best.clone();
                candidate.steps[at].request.body = candidate.steps[at].request.body.with(smaller);
                if !self.accept(candidate, shows).await {
                    removal += 1;
                }
            }
        }
    }
}

/// Simplifies a request and returns whether that changed it.
type Simpler = fn(&mut Step) -> bool;
const SIMPLER: [Simpler; 3] = [
    |step| std::mem::take(&mut step.request.http2),
    |step| {
        let is_plain = step.request.accepted() == JSON;
        step.request = step.request.clone().accept(JSON);
        !is_plain
    },
    |step| match &step.request.body {
        Body::Yaml(json) | Body::Protobuf(json) => {
            step.request = step.request.clone().json(json.clone());
            true
        }
        Body::None | Body::Json(_) | Body::Raw(_) => false,
    },
];

/// Without the letters of the run, objects of other stories would match; without its start, a watch has other
/// events.
fn is_needed(pair: &str) -> bool {
    ["{id}", "{firstlist}", "watch="].iter().any(|part| pair.contains(part))
}

fn split_query(request: &Request) -> Vec<String> {
    request.query.split('&').filter(|pair| !pair.is_empty()).map(str::to_owned).collect()
}

/// Removes the `left`th member or item, counted from the outside in. The object's own names stay.
fn remove_nth(value: &mut Json, left: &mut usize, depth: usize) -> bool {
    match value {
        Json::Object(members) => {
            let stays = |name: &str| depth == 0 && matches!(name, "apiVersion" | "kind" | "metadata");
            let removable: Vec<_> = (0..members.len()).filter(|at| !stays(&members[*at].0)).collect();
            if *left < removable.len() {
                members.remove(removable[*left]);
                return true;
            }
            *left -= removable.len();
            members.iter_mut().any(|(_, member)| remove_nth(member, left, depth + 1))
        }
        Json::List(items) => {
            if *left < items.len() {
                items.remove(*left);
                return true;
            }
            *left -= items.len();
            items.iter_mut().any(|item| remove_nth(item, left, depth + 1))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(bodies: &[&str]) -> Story {
        let step = |body: &&str| {
            let request = Request::new("POST", "/x").query("dryRun=All&pretty=1").json(Json::literal(body));
            Request { http2: true, ..request }.compared()
        };
        let steps = bodies.iter().map(step).collect();
        Story { theme: "test", setup: vec![], steps, cleanup: vec![] }
    }

    fn shrunk(bodies: &[&str], shows: fn(&str) -> bool) -> String {
        let play = async |story: &Story| {
            let all: Vec<_> = story.steps.iter().map(|step| step.request.to_string()).collect();
            shows(&all.join("\n"))
        };
        let smallest = world::simulate(1, |_| shrink(story(bodies), play)).unwrap().output;
        let all: Vec<_> = smallest.steps.iter().map(|step| step.request.to_string()).collect();
        all.join("\n")
    }

    #[test]
    fn only_what_causes_the_difference_is_left() {
        let bodies = [r#"{"a":1}"#, r#"{"b":{"c":[1,2,3],"d":4}}"#, r#"{"e":5}"#, r#"{"f":6}"#];
        let found = shrunk(&bodies, |text| text.contains('3') && text.contains("dryRun"));
        assert_eq!(
            found,
            "POST '/x' -H 'content-type: application/json' -d '{\"b\":{\"c\":[3]}}'\n\
             POST '/x?dryRun=All' -H 'content-type: application/json' -d '{}'"
        );
    }

    #[test]
    fn the_last_step_stays() {
        assert_eq!(
            shrunk(&["{}", "{}", "{}"], |_| true),
            "POST '/x' -H 'content-type: application/json' -d '{}'"
        );
    }
}
