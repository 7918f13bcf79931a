//! Follows a kind: lists it, then hears of every change, and never stops trying.
//!
//! What to do about each thing that happens is decided in `step`, which is pure; `wire` speaks
//! JSON and URLs; here is the rim that asks, waits and reads.

mod lines;
mod step;
mod wire;

use crate::cache::{Item, Reader};
use futures::StreamExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::{Client, client::Body};
use lines::Lines;
use std::time::Duration;
use step::{Ask, Happening, State, Tell, Then};
use wire::Frame;
use world::World;

pub(crate) use wire::{Wanted, page};

/// What a watch tells.
#[derive(Debug)]
pub(crate) enum News {
    /// A list begins, or begins again: what it has told so far may be older than what it tells now.
    Began,
    /// The list names this one.
    Listed(Item),
    /// The list is complete as of this version.
    Complete(u64),
    Changed(Item),
    Removed(Item),
    /// There is nothing else to tell up to this version.
    Reached(u64),
}

/// What the listener makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Understood,
    /// The list is older than what was told before it: the server has lost its history.
    Backwards,
}

/// How long the server may take until it begins to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A connection without a word for this long is dead: bookmarks come every minute.
const SILENCE_LIMIT: Duration = Duration::from_secs(150);

/// The server closes a watch after a time between these, so that watches do not end all at once.
const WATCH_SECONDS: std::ops::Range<u64> = 300..600;

/// A page of the largest objects that etcd takes is smaller.
const MOST_PAGE_BYTES: usize = 1 << 30;

/// What a refusal may say.
const MOST_REFUSAL_BYTES: usize = 1 << 20;

/// The pause after the first failure. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Up to this share longer, so that clients of a server that was away do not come back as one.
const PAUSE_JITTER: f64 = 1.0;

/// Tells `listener` all about `wanted`, for ever.
pub(crate) async fn follow(
    world: World,
    client: Client,
    wanted: Wanted,
    reader: Reader,
    listener: impl FnMut(News) -> Heard + Send,
) {
    let mut watch = Watch { world, client, wanted, reader, listener, state: State::new() };
    loop {
        let least = watch.turn().await;
        let pause = watch.pause(least);
        if !pause.is_zero() {
            watch.world.sleep(pause).await;
        }
    }
}

struct Watch<L> {
    world: World,
    client: Client,
    wanted: Wanted,
    reader: Reader,
    listener: L,
    state: State,
}

impl<L: FnMut(News) -> Heard + Send> Watch<L> {
    /// Asks once and hears the answer to its end; answers how long to wait at least.
    async fn turn(&mut self) -> Duration {
        let ask = self.state.ask();
        if ask.begins_list() {
            self.tell(News::Began);
        }
        let seconds = self.world.pick(WATCH_SECONDS);
        let request = match wire::request(&self.wanted, &ask, seconds) {
            Ok(request) => request,
            Err(problem) => return self.lost(&problem),
        };
        let answer = self.world.timeout(ANSWER_LIMIT, self.client.send(request)).await;
        match answer {
            Err(late) => self.lost(&late),
            Ok(Err(problem)) => self.lost(&problem),
            Ok(Ok(response)) if !response.status().is_success() => {
                let (head, body) = response.into_parts();
                let body = self.collect(body, MOST_REFUSAL_BYTES).await.unwrap_or_default();
                let refusal = wire::refusal(&head, &body);
                tracing::warn!(
                    path = self.wanted.path,
                    code = refusal.code,
                    refusal.message,
                    "a watch is refused"
                );
                self.happens(Happening::Refused(refusal)).unwrap_or_default()
            }
            Ok(Ok(response)) => match ask {
                Ask::Page { .. } => self.page(response.into_body()).await,
                Ask::Stream | Ask::Follow { .. } => self.events(response.into_body()).await,
            },
        }
    }

    async fn page(&mut self, body: Body) -> Duration {
        let Some(body) = self.collect(body, MOST_PAGE_BYTES).await else {
            return self.happens(Happening::Lost).unwrap_or_default();
        };
        let page = match wire::page(&body) {
            Ok(page) => page,
            Err(problem) => return self.lost(&problem),
        };
        for json in page.items {
            if let Some(item) = self.read(json.get()) {
                self.tell(News::Listed(item));
            }
        }
        self.happens(Happening::Page { version: page.version, next: page.next }).unwrap_or_default()
    }

    async fn collect(&self, body: Body, most: usize) -> Option<bytes::Bytes> {
        let collected = self.world.timeout(SILENCE_LIMIT, Limited::new(body, most).collect()).await;
        match collected {
            Ok(Ok(collected)) => Some(collected.to_bytes()),
            Ok(Err(problem)) => {
                let is_too_long = problem.is::<LengthLimitError>();
                tracing::warn!(path = self.wanted.path, is_too_long, %problem, "an answer broke off");
                None
            }
            Err(_late) => None,
        }
    }

    async fn events(&mut self, body: Body) -> Duration {
        let mut chunks = body.into_data_stream();
        let mut lines = Lines::default();
        loop {
            let happening = match self.world.timeout(SILENCE_LIMIT, chunks.next()).await {
                Err(_late) => Happening::Silent,
                Ok(None) => Happening::Ended,
                Ok(Some(Err(problem))) => {
                    tracing::debug!(path = self.wanted.path, %problem, "a watch broke off");
                    Happening::Lost
                }
                Ok(Some(Ok(chunk))) => {
                    let is_too_long = lines.add(chunk).is_err();
                    while let Some(line) = lines.next() {
                        if let Some(pause) = self.event(&line) {
                            return pause;
                        }
                    }
                    if !is_too_long {
                        continue;
                    }
                    tracing::warn!(path = self.wanted.path, "an event is longer than any object may be");
                    Happening::Lost
                }
            };
            return self.happens(happening).unwrap_or_default();
        }
    }

    /// Answers how long to wait when the watch ends with this line.
    fn event(&mut self, line: &[u8]) -> Option<Duration> {
        let (is_removed, json) = match wire::frame(line) {
            Ok(Frame::Object { is_removed, json }) => (is_removed, json),
            Ok(Frame::Bookmark { version, ends_list }) => {
                return self.happens(Happening::Bookmark { version, ends_list });
            }
            Ok(Frame::Refused(refusal)) => {
                tracing::debug!(path = self.wanted.path, refusal.message, "a watch was ended by the server");
                return self.happens(Happening::Refused(refusal));
            }
            Err(problem) => return Some(self.lost(&problem)),
        };
        let item = self.read(json)?;
        let happening = Happening::Object { version: item.resource_version(), is_removed };
        let (tell, then) = self.state.step(happening);
        match tell {
            Some(Tell::Listed) => drop(self.tell(News::Listed(item))),
            Some(Tell::Changed) => drop(self.tell(News::Changed(item))),
            Some(Tell::Removed) => drop(self.tell(News::Removed(item))),
            Some(Tell::Complete(_) | Tell::Reached(_)) | None => {}
        }
        self.then(then)
    }

    /// For all that happens except to objects.
    fn happens(&mut self, happening: Happening) -> Option<Duration> {
        let (tell, then) = self.state.step(happening);
        let heard = match tell {
            Some(Tell::Complete(version)) => self.tell(News::Complete(version)),
            Some(Tell::Reached(version)) => self.tell(News::Reached(version)),
            Some(Tell::Listed | Tell::Changed | Tell::Removed) | None => Heard::Understood,
        };
        if heard == Heard::Backwards {
            tracing::warn!(path = self.wanted.path, "the server's history was set back: listing again");
            let (_, then) = self.state.step(Happening::Backwards);
            return self.then(then);
        }
        self.then(then)
    }

    fn then(&self, then: Then) -> Option<Duration> {
        match then {
            Then::Read => None,
            Then::Ask { least } => Some(least),
        }
    }

    fn lost(&mut self, problem: &dyn std::error::Error) -> Duration {
        tracing::warn!(path = self.wanted.path, problem = %problem, "a watch cannot go on");
        self.happens(Happening::Lost).unwrap_or_default()
    }

    fn pause(&self, least: Duration) -> Duration {
        let Some(doublings) = self.state.failures().checked_sub(1) else { return least };
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE);
        self.world.jitter(pause, PAUSE_JITTER).max(least)
    }

    fn read(&mut self, json: &str) -> Option<Item> {
        let read = self.reader.read(json);
        if let Err(problem) = &read {
            tracing::warn!(path = self.wanted.path, %problem, "an object is left out of the cache");
        }
        read.ok()
    }

    fn tell(&mut self, news: News) -> Heard {
        (self.listener)(news)
    }
}
