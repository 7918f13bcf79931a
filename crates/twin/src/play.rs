//! Runs a story on both servers at the same time and returns the normalized responses side by side.

use crate::{
    answer::Answer,
    client::{Client, ReadUntil},
    json::Json,
    level::Normalizer,
    protobuf,
    servers::Servers,
    story::{Body, JSON, Request, Step, Story},
};
use bytes::Bytes;
use http_body_util::Full;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use world::World;

/// How often a step is repeated while the real server catches up.
const UNTIL_TRIES: usize = 200;
const UNTIL_PAUSE: Duration = Duration::from_millis(30);

/// Numbers the runs, so that no two share a name.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Requests of all plays so far, those of setups, cleanups and shrinking included.
static SENT: AtomicU64 = AtomicU64::new(0);

pub fn requests_sent() -> u64 {
    SENT.load(Ordering::Relaxed)
}

/// One step that was compared.
#[derive(Debug)]
pub struct Compared {
    /// Its index in [`Story::steps`].
    pub at: usize,
    pub real: Answer,
    pub ours: Answer,
}

/// Both servers, for one story at a time.
#[derive(Debug)]
pub struct Stage {
    world: World,
    real: Client,
    ours: Client,
}

impl Stage {
    pub fn new(world: &World, servers: &Servers) -> Stage {
        let (real, ours) = (Client::new(world, servers.real), Client::new(world, servers.ours));
        Stage { world: world.clone(), real, ours }
    }

    pub async fn play(&mut self, story: &Story) -> Vec<Compared> {
        let count = story.setup.len() + story.steps.len() + story.cleanup.len();
        SENT.fetch_add(count as u64, Ordering::Relaxed);
        let id = run_id(RUNS.fetch_add(1, Ordering::Relaxed));
        let mut real = Player::new(&self.world, &mut self.real, true, &id);
        let mut ours = Player::new(&self.world, &mut self.ours, false, &id);
        let (real, ours) = futures::join!(real.play(story), ours.play(story));
        let both = real.into_iter().zip(ours).enumerate();
        let compared = both.filter(|(at, _)| story.steps[*at].compared);
        compared.map(|(at, (real, ours))| Compared { at, real, ours }).collect()
    }
}

/// Letters that occur nowhere else in a response.
fn run_id(number: u64) -> String {
    format!("q{number:06}q")
}

/// One server's side of a run.
struct Player<'s> {
    world: &'s World,
    client: &'s mut Client,
    is_real: bool,
    fill: Fill,
    normalizer: Normalizer,
}

impl<'s> Player<'s> {
    fn new(world: &'s World, client: &'s mut Client, is_real: bool, id: &str) -> Player<'s> {
        let namespace = format!("ns-{id}");
        let normalizer = Normalizer::new(&namespace, id, world.wall());
        let fill = Fill { namespace, id: id.to_owned(), ..Fill::default() };
        Player { world, client, is_real, fill, normalizer }
    }

    async fn play(&mut self, story: &Story) -> Vec<Answer> {
        for step in &story.setup {
            self.step(step).await;
        }
        let mut answers = Vec::new();
        for step in &story.steps {
            let mut answer = self.step(step).await;
            self.normalizer.level(&step.request, &mut answer);
            answers.push(answer);
        }
        for step in &story.cleanup {
            self.step(step).await;
        }
        answers
    }

    async fn step(&mut self, step: &Step) -> Answer {
        if step.real_only && !self.is_real {
            return Answer::failed();
        }
        let mut answer = self.send(&step.request).await;
        if let Some(text) = &step.until {
            for _ in 0..UNTIL_TRIES {
                if answer.object().is_some_and(|object| object.to_string().contains(text)) {
                    break;
                }
                self.world.sleep(UNTIL_PAUSE).await;
                answer = self.send(&step.request).await;
            }
        }
        answer
    }

    async fn send(&mut self, request: &Request) -> Answer {
        if request.may_be_stale() {
            // A consistent list first: its version makes the real server wait for its watch cache.
            let fresh = Request::new("GET", &request.path).user(request.user);
            self.send_once(&fresh).await;
        }
        self.send_once(request).await
    }

    async fn send_once(&mut self, request: &Request) -> Answer {
        let until = match (&request.watch_until, request.is_watch()) {
            (Some(text), true) => ReadUntil::Text(self.fill.text(text)),
            (None, true) => ReadUntil::Silence,
            (_, false) => ReadUntil::End,
        };
        let Some(filled) = self.fill.request(request) else { return Answer::failed() };
        match self.client.send(filled, request.http2, &until).await {
            Ok(reply) => {
                let mut answer = Answer::read(&reply, request.is_watch());
                if let ReadUntil::Text(text) = &until {
                    answer.end_events_with(text);
                }
                self.fill.learn(request, &answer);
                answer
            }
            Err(_) => Answer::failed(),
        }
    }
}

/// The values of this server's responses, to fill into later requests.
#[derive(Debug, Default)]
struct Fill {
    namespace: String,
    id: String,
    values: BTreeMap<String, String>,
}

impl Fill {
    fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            out.push_str(before);
            let known = behind.split_once('}').and_then(|(name, after)| Some((self.value(name)?, after)));
            match known {
                Some((value, after)) => {
                    out.push_str(&value);
                    rest = after;
                }
                None => {
                    out.push('{');
                    rest = behind;
                }
            }
        }
        out.push_str(rest);
        out
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "ns" => return Some(self.namespace.clone()),
            "id" => return Some(self.id.clone()),
            _ => {}
        }
        let is_ours = ["rv:", "firstrv:", "uid:", "firstlist", "list", "continue"]
            .iter()
            .any(|kind| name.starts_with(kind));
        // Shrinking may have dropped the request that returned it.
        is_ours.then(|| self.values.get(&self.key(name)).cloned().unwrap_or_else(|| "1".to_owned()))
    }

    fn key(&self, name: &str) -> String {
        name.replace("<ns>", &self.namespace).replace("<id>", &self.id)
    }

    fn json(&self, json: &Json) -> Json {
        let mut filled = json.clone();
        filled.each_text(&mut |text| *text = self.text(text));
        filled
    }

    fn request(&self, request: &Request) -> Option<http::Request<Full<Bytes>>> {
        let mut content_type = request.content_type.clone();
        let body: Bytes = match &request.body {
            Body::None => Bytes::new(),
            Body::Json(json) => self.json(json).to_string().into(),
            Body::Yaml(json) => self.json(json).to_yaml().into(),
            Body::Protobuf(json) => {
                let json = self.json(json);
                protobuf::encode(&json).map_or_else(
                    || {
                        content_type = Some(JSON.to_owned());
                        json.to_string().into()
                    },
                    Bytes::from,
                )
            }
            Body::Raw(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.text(text).into(),
                Err(_) => bytes.clone().into(),
            },
        };
        let target = self.text(&request.target());
        let target = if request.http2 { format!("https://twin{target}") } else { target };
        let mut builder = http::Request::builder().method(request.method).uri(target);
        builder = builder.header("user-agent", "twin").header("authorization", bearer(request.user));
        if !request.http2 {
            builder = builder.header("host", "twin");
        }
        for (name, value) in &request.headers {
            builder = builder.header(*name, self.text(value));
        }
        if let Some(content_type) = content_type {
            builder = builder.header("content-type", content_type);
        }
        builder.body(Full::new(body)).ok()
    }

    fn learn(&mut self, request: &Request, answer: &Answer) {
        let Some(object) = answer.object().filter(|_| answer.is_success()) else { return };
        let Some(metadata) = object.get("metadata") else { return };
        let version = metadata.text_at(&["resourceVersion"]);
        let Some(name) = metadata.text_at(&["name"]) else {
            if let Some(version) = version.filter(|_| request.method == "GET") {
                self.values.entry("firstlist".to_owned()).or_insert_with(|| version.clone());
                self.values.insert("list".to_owned(), version);
                let next = metadata.text_at(&["continue"]).unwrap_or_default();
                self.values.insert("continue".to_owned(), next);
            }
            return;
        };
        if let Some(version) = version {
            self.values.entry(format!("firstrv:{name}")).or_insert_with(|| version.clone());
            self.values.insert(format!("rv:{name}"), version);
        }
        if let Some(uid) = metadata.text_at(&["uid"]) {
            self.values.insert(format!("uid:{name}"), uid);
        }
    }
}

fn bearer(user: &str) -> String {
    format!("Bearer {user}-token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_from_responses() {
        let mut fill = Fill { namespace: "ns-q1q".into(), id: "q1q".into(), ..Fill::default() };
        fill.values.insert("rv:a-q1q".into(), "7".into());
        for (text, expected) in [
            ("/api/v1/namespaces/{ns}/pods", "/api/v1/namespaces/ns-q1q/pods"),
            ("{rv:a-<id>} {uid:b}", "7 1"),
            ("{\\\"x\\\":{id}}", "{\\\"x\\\":q1q}"),
            ("{unknown}", "{unknown}"),
        ] {
            assert_eq!(fill.text(text), expected, "{text}");
        }
    }
}
