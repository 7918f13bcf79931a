//! Watch: sends every change of the selected objects from a revision on, until its timeout.

mod bookmark;
mod shared;

pub(crate) use shared::SharedChanges;

use super::{read, web_socket};
use crate::{
    MIN_WATCH_TIMEOUT,
    answer::{self, Body},
    call::Call,
    input::Encoding,
    negotiate::{Form, STREAM_MEDIA_TYPES, Shape},
    refusal::{self, Refusal},
    request::Match,
    selection::Selection,
    stored::{Parsed, Stored},
};
use api::field::{Error, ErrorList, Path};
use bookmark::Bookmarks;
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, Stream, StreamExt, future::Either, stream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use schema::proto;
use shared::{EventForm, SharedChange};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use store::{Change, Event, Feed, Revision};
use world::Moment;

/// Kubernetes: bookmarks come about once a minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) async fn watch(call: &Call) -> Result<Response<Body>, Refusal> {
    check_options(call)?;
    let selection = Selection::new(call)?;
    let mut since = read::revision(&call.options.resource_version).map_err(Refusal::unclassified)?;
    check_form(call)?;
    let prefix = call.served.prefix(&call.target.namespace);
    let initial_events = wanted_initial_events(call);
    let mut pending = VecDeque::new();
    if initial_events.unwrap_or(since.is_none()) {
        match read::collect(&clone_for_list(call), &selection).await {
            Ok((meta, objects)) => {
                pending.extend(objects.into_iter().map(|object| WatchEvent::Object("ADDED", object)));
                if initial_events == Some(true) && call.options.bookmarks {
                    pending.push_back(WatchEvent::Bookmark { revision: meta.revision, ends_initial: true });
                }
                since = Some(meta.revision);
            }
            Err(refusal) => return Ok(failed(call, pending, refusal)),
        }
    }
    let feed = match call.inner.store.feed(prefix.clone().into(), since).await {
        // Kubernetes: a watch from a future resourceVersion waits for it.
        Err(store::Error::Future { .. }) => call.inner.store.feed(prefix.into(), None).await,
        feed => feed,
    };
    let feed = match feed {
        Ok(feed) => feed,
        Err(store::Error::Compacted { asked, floor }) => {
            return Ok(failed(call, pending, Refusal::too_old_resource_version(asked.0, floor.0)));
        }
        Err(error) => return Err(error.into()),
    };
    let world = call.inner.world.clone();
    let timeout = call.options.timeout.unwrap_or_else(|| world.jitter(MIN_WATCH_TIMEOUT, 1.0));
    let now = world.now();
    let follow = Follow {
        pending,
        feed,
        since,
        selection,
        ends: now + timeout,
        next_bookmark: call.options.bookmarks.then(|| now + BOOKMARK_INTERVAL),
        inner: Arc::clone(&call.inner),
        draining: call.inner.draining.subscribe(),
        over: false,
    };
    // Boxed: it is large, and every event moves it.
    let follow = Box::new(follow);
    let events = stream::unfold(follow, |mut follow| async move { Some((follow.next().await?, follow)) });
    Ok(response(call, write_all(call, events)))
}

/// Kubernetes: the answer is 200, and its first event is the error.
fn failed(call: &Call, mut pending: VecDeque<WatchEvent>, refusal: Refusal) -> Response<Body> {
    pending.push_back(WatchEvent::Error(refusal));
    response(call, write_all(call, stream::iter(pending)))
}

/// Whether existing objects are sent first; `None` where the request does not say and its resourceVersion
/// decides.
// Kubernetes: a watch from any version gets initial events, but not on the deprecated watch paths.
fn wanted_initial_events(call: &Call) -> Option<bool> {
    let options = &call.options;
    let is_any = matches!(options.resource_version.as_str(), "" | "0");
    let is_implied = options.watch && is_any && options.version_match.is_none();
    options.initial_events.or(is_implied.then_some(true))
}

/// Rejects media types that cannot hold events.
fn check_form(call: &Call) -> Result<(), Refusal> {
    answer::check_table_options(call)?;
    match call.form.encoding {
        Encoding::Yaml => Err(Refusal::not_acceptable(&STREAM_MEDIA_TYPES)),
        Encoding::Json | Encoding::Protobuf => Ok(()),
    }
}

fn check_options(call: &Call) -> Result<(), Refusal> {
    let options = &call.options;
    // Kubernetes: the deprecated watch paths check the options of a list.
    if !options.watch {
        return read::check_options(call);
    }
    options.check_selection()?;
    let mut errors = ErrorList::new();
    let match_path = Path::new("resourceVersionMatch");
    let is_implied = options.initial_events.is_none() && wanted_initial_events(call).is_some();
    let matching = options.version_match.as_ref();
    if options.initial_events.is_some() && matching != Some(&Match::NotOlderThan) {
        let problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(Error::forbidden(&match_path, problem));
    }
    if options.initial_events.is_none() && matching.is_some() {
        let problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(Error::forbidden(&match_path, problem));
    }
    if let Some(other) = matching.filter(|matching| **matching != Match::NotOlderThan) {
        errors.push(Error::not_supported(&match_path, other.text(), ["NotOlderThan"]));
    }
    if !options.continue_token.is_empty() && (is_implied || matching.is_some()) {
        let problem = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(Error::forbidden(&match_path, problem));
    }
    refusal::check_options("ListOptions", errors)
}

/// The request without the resourceVersion that the watch starts from.
fn clone_for_list(call: &Call) -> Call {
    let mut list = call.clone();
    list.options.limit = 0;
    list.options.continue_token = String::new();
    list.options.version_match = None;
    list
}

/// The next event of a watch.
enum WatchEvent {
    Object(&'static str, Stored),
    /// A change whose encodings all watchers share.
    Change(&'static str, Arc<SharedChange>),
    Bookmark {
        revision: Revision,
        ends_initial: bool,
    },
    Error(Refusal),
}

/// An open watch.
struct Follow {
    pending: VecDeque<WatchEvent>,
    feed: Feed,
    /// Changes up to this revision were sent already, or are not wanted.
    since: Option<Revision>,
    selection: Selection,
    ends: Moment,
    next_bookmark: Option<Moment>,
    inner: Arc<crate::Inner>,
    draining: world::watch::Receiver<bool>,
    over: bool,
}

impl Follow {
    async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            let wake = self.next_bookmark.map_or(self.ends, |bookmark| bookmark.min(self.ends));
            let world = self.inner.world.clone();
            let interrupted = async {
                let draining = self.draining.wait_for(|draining| *draining).map(|_| true);
                let time = world.sleep_until(wake).map(|()| false);
                futures::pin_mut!(draining, time);
                futures::future::select(draining, time).await.factor_first().0
            };
            let next = {
                let event = self.feed.next();
                futures::pin_mut!(event, interrupted);
                match futures::future::select(event, interrupted).await {
                    Either::Left((event, _)) => Ok(event),
                    Either::Right((draining, _)) => Err(draining),
                }
            };
            match next {
                Ok(event) => self.take(event).await,
                Err(true) => return None,
                Err(false) if world.now() >= self.ends => return None,
                Err(false) => self.ask_for_bookmark().await,
            }
        }
    }

    async fn take(&mut self, event: Result<Event, store::Error>) {
        match event {
            Ok(Event::Commit(commit)) if self.since.is_some_and(|since| commit.revision <= since) => {}
            Ok(Event::Commit(commit)) => {
                for change in &commit.changes {
                    match self.event_for(commit.revision, change).await {
                        Ok(event) => self.pending.extend(event),
                        Err(refusal) => {
                            self.over = true;
                            self.pending.push_back(WatchEvent::Error(refusal));
                            return;
                        }
                    }
                }
            }
            Ok(Event::Progress(revision)) => {
                let revision = self.since.map_or(revision, |since| revision.max(since));
                self.pending.push_back(WatchEvent::Bookmark { revision, ends_initial: false });
            }
            Err(store::Error::Compacted { asked, floor }) => {
                self.over = true;
                self.pending
                    .push_back(WatchEvent::Error(Refusal::too_old_resource_version(asked.0, floor.0)));
            }
            Err(_) => self.over = true,
        }
    }

    /// The event for a watcher that sees only selected objects.
    async fn event_for(&self, revision: Revision, change: &Change) -> Result<Option<WatchEvent>, Refusal> {
        let shared = self.inner.shared_changes.of(revision, change);
        let states: Vec<&Parsed> = shared.before.iter().chain(&shared.after).collect();
        let mut selected = self.selection.select(&self.inner, &states).await?.into_iter();
        let mut is_selected = |state: &Option<Parsed>| state.is_some() && selected.next() == Some(true);
        let kind = match (is_selected(&shared.before), is_selected(&shared.after)) {
            // Kubernetes: an object that leaves the selection is sent as it was, with the resourceVersion
            // of the change.
            (true, false) => "DELETED",
            (true, true) => "MODIFIED",
            (false, true) => "ADDED",
            (false, false) => return Ok(None),
        };
        Ok(Some(WatchEvent::Change(kind, shared)))
    }

    async fn ask_for_bookmark(&mut self) {
        self.next_bookmark = Some(self.inner.world.now() + BOOKMARK_INTERVAL);
        if let Ok(revision) = self.inner.store.revision().await {
            self.feed.mark(revision);
        }
    }
}

/// Encodes events in the form that the client wants.
fn write_all<S: Stream<Item = WatchEvent> + Send + 'static>(
    call: &Call,
    events: S,
) -> impl Stream<Item = Bytes> + Send + use<S> {
    let events = Box::pin(events);
    let start = (Box::new(call.clone()), events, Bookmarks::default(), true);
    stream::unfold(start, |(call, mut events, mut bookmarks, is_first)| async move {
        let event = events.next().await?;
        let bytes = write(&call, event, &mut bookmarks, is_first).await;
        Some((bytes, (call, events, bookmarks, false)))
    })
}

async fn write(call: &Call, event: WatchEvent, bookmarks: &mut Bookmarks, with_columns: bool) -> Bytes {
    let written = match event {
        WatchEvent::Object(kind, stored) => write_object(call, kind, &stored, with_columns).await,
        WatchEvent::Change(kind, change) => {
            let shown = if kind == "DELETED" { &change.before } else { &change.after };
            let Some(shown) = shown else { return Bytes::new() };
            let form = EventForm::of(call, kind, with_columns);
            change.event(form, write_object(call, kind, &shown.stored, with_columns)).await
        }
        WatchEvent::Bookmark { revision, ends_initial: true } => {
            Ok(bookmark::end_of_initial_events(call, revision, with_columns))
        }
        WatchEvent::Bookmark { revision, .. } => Ok(bookmarks.event(call, revision, with_columns)),
        WatchEvent::Error(refusal) => Err(refusal),
    };
    written.unwrap_or_else(|refusal| frame(call.form, "ERROR", &failure(call, refusal)))
}

async fn write_object(
    call: &Call,
    kind: &str,
    stored: &Stored,
    with_columns: bool,
) -> Result<Bytes, Refusal> {
    let object = answer::object_bytes(call, stored, with_columns).await?;
    Ok(frame(call.form, kind, &object))
}

/// Wraps an encoded object into an event.
fn frame(form: Form, kind: &str, object: &[u8]) -> Bytes {
    match form.encoding {
        Encoding::Protobuf => proto::watch_frame(kind, object).into(),
        _ => {
            let mut out = BytesMut::with_capacity(object.len() + 40);
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"object\":");
            out.extend_from_slice(object.trim_ascii_end());
            out.extend_from_slice(b"}\n");
            out.freeze()
        }
    }
}

/// The event of a watch that fails.
pub fn error_event(status: api::status::Status, is_protobuf: bool) -> Bytes {
    let encoding = if is_protobuf { Encoding::Protobuf } else { Encoding::Json };
    let form = Form { encoding, shape: Shape::AsIs };
    frame(form, "ERROR", &answer::refusal_bytes(status.into(), form))
}

fn failure(call: &Call, refusal: Refusal) -> Bytes {
    answer::refusal_bytes(refusal, Form { shape: Shape::AsIs, ..call.form })
}

/// The events as the body of a response, or over the client's WebSocket.
fn response<S>(call: &Call, events: S) -> Response<Body>
where
    S: Stream<Item = Bytes> + Send + 'static,
{
    let frames = events.map(|event| Ok::<_, std::convert::Infallible>(Frame::data(event)));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = StatusCode::OK;
    let content_type = match call.form.encoding {
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    match &call.raw {
        Some(raw) => web_socket::open_watch(call, raw, response),
        None => response,
    }
}
