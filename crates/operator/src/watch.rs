//! Lists a kind, then watches it from there, and starts over whenever that fails: client-go's reflector.
//!
//! `state` decides what to request next and is pure; `wire` writes URLs and reads JSON; this file
//! sends, waits and reads.

mod lines;
mod state;
mod wire;

use crate::cache::{Item, Reader, StaleList};
use futures::{
    StreamExt,
    future::{Either, select},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::{Client, client::Body};
use lines::Lines;
use state::{Input, Query, WatchState};
use std::{ops::ControlFlow, pin::pin, time::Duration};
use wire::WatchEvent;
use world::World;
use world::watch::Receiver;

pub(crate) use wire::{Target, page};

/// What a list or watch has the cache do.
#[derive(Debug)]
pub(crate) enum CacheUpdate {
    /// A list starts, or starts over: objects of an unfinished list before it may be outdated.
    ListStarted,
    /// The list contains this object.
    Listed(Item),
    /// The list is complete as of this resourceVersion: other objects do not exist.
    ListComplete(u64),
    /// An object was created or updated.
    Applied(Item),
    Deleted(Item),
    /// A bookmark: there were no other changes up to this resourceVersion.
    CaughtUpTo(u64),
}

/// How long the server may take until it begins to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A connection that sends nothing for this long is dead: bookmarks come every minute.
const SILENCE_LIMIT: Duration = Duration::from_secs(150);

/// The server closes a watch after a time between these, so that watches do not end all at once.
// Kubernetes: what its server chooses for clients that do not say. A dead connection is noticed earlier, by its
// silence, and shorter watches would be most of the requests of an operator that has nothing to do.
const WATCH_SECONDS: std::ops::Range<u64> = 1800..3600;

/// A page of the largest objects that etcd takes is smaller.
const MOST_PAGE_BYTES: usize = 1 << 30;

/// The body of an error response is a Status, which is far shorter.
const MOST_ERROR_BYTES: usize = 1 << 20;

/// The pause after the first failure. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Up to this share longer, so that the clients of a restarted server do not all return at once.
const PAUSE_JITTER: f64 = 1.0;

/// Lists and watches `target` for ever, and hands every update to `apply`. Each of `refreshes` ends the
/// request in progress and lists again.
pub(crate) async fn follow(
    world: World,
    client: Client,
    target: Target,
    reader: Reader,
    mut refreshes: Receiver<()>,
    apply: impl FnMut(CacheUpdate) -> Result<(), StaleList> + Send,
) {
    let mut watch = Watch { world, client, target, reader, apply, state: WatchState::new() };
    loop {
        let is_refresh = {
            // The sender lives as long as the store that `apply` changes.
            let refresh = pin!(refreshes.changed());
            let requested = pin!(async {
                let least = watch.request().await;
                let pause = watch.pause(least);
                if !pause.is_zero() {
                    watch.world.sleep(pause).await;
                }
            });
            matches!(select(refresh, requested).await, Either::Left(_))
        };
        if is_refresh {
            watch.end(Input::Refresh);
        }
    }
}

struct Watch<A> {
    world: World,
    client: Client,
    target: Target,
    reader: Reader,
    apply: A,
    state: WatchState,
}

impl<A: FnMut(CacheUpdate) -> Result<(), StaleList> + Send> Watch<A> {
    /// Sends one request and reads its answer to the end. Returns the least pause before the next request.
    async fn request(&mut self) -> Duration {
        let query = self.state.query();
        if query.starts_list() {
            self.update(CacheUpdate::ListStarted);
        }
        let seconds = self.world.pick(WATCH_SECONDS);
        let request = match wire::request(&self.target, &query, seconds) {
            Ok(request) => request,
            Err(problem) => return self.lost(&problem),
        };
        let answer = self.world.timeout(ANSWER_LIMIT, self.client.send(request)).await;
        match answer {
            Err(late) => self.lost(&late),
            Ok(Err(problem)) => self.lost(&problem),
            Ok(Ok(response)) if !response.status().is_success() => {
                let (head, body) = response.into_parts();
                let body = self.collect(body, MOST_ERROR_BYTES).await.unwrap_or_default();
                let error = wire::error(&head, &body);
                tracing::warn!(
                    path = self.target.path,
                    code = error.code,
                    error.message,
                    "a watch is refused"
                );
                self.end(Input::Event(WatchEvent::Error(error)))
            }
            Ok(Ok(response)) => match query {
                Query::ListPage { .. } => self.page(response.into_body()).await,
                Query::StreamList | Query::Watch { .. } => self.events(response.into_body()).await,
            },
        }
    }

    async fn page(&mut self, body: Body) -> Duration {
        let Some(body) = self.collect(body, MOST_PAGE_BYTES).await else {
            return self.end(Input::ConnectionLost);
        };
        let page = match wire::page(&body) {
            Ok(page) => page,
            Err(problem) => return self.lost(&problem),
        };
        for json in page.items {
            if let Some(item) = self.read(json.get()) {
                self.update(CacheUpdate::Listed(item));
            }
        }
        self.end(Input::Page { version: page.version, continue_token: page.continue_token })
    }

    async fn collect(&self, body: Body, most: usize) -> Option<bytes::Bytes> {
        let collected = self.world.timeout(SILENCE_LIMIT, Limited::new(body, most).collect()).await;
        match collected {
            Ok(Ok(collected)) => Some(collected.to_bytes()),
            Ok(Err(problem)) => {
                let is_too_long = problem.is::<LengthLimitError>();
                tracing::warn!(path = self.target.path, is_too_long, %problem, "an answer broke off");
                None
            }
            Err(_late) => None,
        }
    }

    async fn events(&mut self, body: Body) -> Duration {
        let mut chunks = body.into_data_stream();
        let mut lines = Lines::default();
        loop {
            let input = match self.world.timeout(SILENCE_LIMIT, chunks.next()).await {
                Err(_late) => Input::Silence,
                Ok(None) => Input::Ended,
                Ok(Some(Err(problem))) => {
                    tracing::debug!(path = self.target.path, %problem, "a watch broke off");
                    Input::ConnectionLost
                }
                Ok(Some(Ok(chunk))) => {
                    let is_too_long = lines.add(chunk).is_err();
                    while let Some(line) = lines.next() {
                        if let ControlFlow::Break(pause) = self.event(&line) {
                            return pause;
                        }
                    }
                    if !is_too_long {
                        continue;
                    }
                    tracing::warn!(path = self.target.path, "an event is longer than any object may be");
                    Input::ConnectionLost
                }
            };
            return self.end(input);
        }
    }

    fn event(&mut self, line: &[u8]) -> ControlFlow<Duration> {
        let event = match wire::event(line) {
            Ok(event) => event,
            Err(problem) => return ControlFlow::Break(self.lost(&problem)),
        };
        if let WatchEvent::Error(error) = &event {
            tracing::debug!(path = self.target.path, error.message, "a watch was ended by the server");
        }
        match event.try_map(|json| self.read(json)) {
            Some(event) => self.step(Input::Event(event)),
            None => ControlFlow::Continue(()),
        }
    }

    /// Breaks when the request is over, with the least pause before the next one.
    fn step(&mut self, input: Input) -> ControlFlow<Duration> {
        let (update, flow) = self.state.step(input);
        match update.map(|update| (self.apply)(update)) {
            Some(Err(StaleList)) => {
                tracing::warn!(path = self.target.path, "the server's history was set back: listing again");
                let (_, flow) = self.state.step(Input::StaleList);
                flow
            }
            Some(Ok(())) | None => flow,
        }
    }

    /// [`Watch::step`] for what ends a request.
    fn end(&mut self, input: Input) -> Duration {
        match self.step(input) {
            ControlFlow::Break(pause) => pause,
            ControlFlow::Continue(()) => Duration::ZERO,
        }
    }

    fn lost(&mut self, problem: &dyn std::error::Error) -> Duration {
        tracing::warn!(path = self.target.path, problem = %problem, "a watch cannot go on");
        self.end(Input::ConnectionLost)
    }

    fn pause(&self, least: Duration) -> Duration {
        let Some(doublings) = self.state.failures().checked_sub(1) else { return least };
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE);
        self.world.jitter(pause, PAUSE_JITTER).max(least)
    }

    fn read(&mut self, json: &str) -> Option<Item> {
        let read = self.reader.read(json);
        if let Err(problem) = &read {
            tracing::warn!(path = self.target.path, %problem, "an object is left out of the cache");
        }
        read.ok()
    }

    /// For updates that cannot be a stale list.
    fn update(&mut self, update: CacheUpdate) {
        let _ = (self.apply)(update);
    }
}
