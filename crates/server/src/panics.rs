//! A request that panics is answered with a 500 and logged with the place in the source; nothing else is disturbed.

use crate::{Body, answer, audit::Trail};
use bytes::Bytes;
use futures::{FutureExt, TryFutureExt};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    any::Any,
    cell::RefCell,
    convert::Infallible,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    sync::Once,
    task::{Context, Poll},
};

// Kubernetes: the whole answer, in plain text.
const ANSWER: &str = "This request caused apiserver to panic. Look in the logs for details.\n";

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What a request asks for, as the log tells it. Cheap to clone.
pub(crate) type Line = (Method, Uri);

/// A panic that was caught.
#[derive(Debug)]
pub(crate) struct Panicked {
    /// What it said.
    pub(crate) message: String,
    /// File, line and column.
    place: String,
}

impl Panicked {
    fn new(payload: &(dyn Any + Send)) -> Panicked {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Panicked { message: text.unwrap_or_default(), place: PLACE.take() }
    }

    /// Logs it, as the cause of what became of a request.
    pub(crate) fn log(&self, (method, uri): &Line) {
        let path = uri.path();
        tracing::error!(%method, path, place = self.place, problem = self.message, "request panicked");
    }
}

/// Has every panic note its place before it is reported as it was before. Only a hook gets to know the place.
pub(crate) fn note_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            PLACE.set(panicked.location().map(ToString::to_string).unwrap_or_default());
            report(panicked);
        }));
    });
}

/// Awaits some work; a panic in it ends the work and nothing else.
///
/// Work of one request shares with others only what lies behind locks, and locks here are taken whether poisoned or not.
// Not an `async fn`, which would keep room for the work twice: as what it was given, and as what it awaits.
pub(crate) fn catch<T>(work: impl Future<Output = T>) -> impl Future<Output = Result<T, Panicked>> {
    AssertUnwindSafe(work).catch_unwind().map_err(|payload| Panicked::new(&*payload))
}

/// The answer to a request that panicked.
pub(crate) fn answer() -> Response<Body> {
    let code = StatusCode::INTERNAL_SERVER_ERROR;
    let mut response = answer::full(code, "text/plain; charset=utf-8", ANSWER);
    let no_sniffing = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(no_sniffing, HeaderValue::from_static("nosniff"));
    response
}

/// Has a body that is written bit by bit end where it panics, instead of taking the connection along.
pub(crate) fn guard(response: Response<Body>, request: Line, trail: Trail) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| Guarded { body: Some(body), request, trail }.boxed_unsync())
}

struct Guarded {
    /// None once it has panicked.
    body: Option<Body>,
    request: Line,
    trail: Trail,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        match panic::catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(context))) {
            Ok(polled) => polled,
            Err(payload) => {
                let panicked = Panicked::new(&*payload);
                panicked.log(&self.request);
                self.trail.panicked(&panicked.message);
                self.body = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, http_body::Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{StreamExt, stream};
    use http_body_util::StreamBody;

    #[test]
    fn a_panic_tells_what_it_said_and_where() {
        note_places();
        let caught = catch(async { panic!("boom {}", 7) }).now_or_never().unwrap();
        let Panicked { message, place } = caught.unwrap_err();
        assert_eq!(message, "boom 7");
        assert!(place.contains("panics.rs:"), "{place}");
    }

    #[test]
    fn a_body_that_panics_ends() {
        let frames = stream::iter(0..3).map(|number| {
            assert!(number < 2, "too many");
            Ok::<_, Infallible>(Frame::data(Bytes::from(number.to_string())))
        });
        let body = StreamBody::new(frames).boxed_unsync();
        let response = guard(Response::new(body), Line::default(), Trail::default());
        let read = response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        assert_eq!(read, "01");
    }
}
