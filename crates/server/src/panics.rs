//! Catches panics: the request is answered with a 500 and logged with its source location; other requests
//! go on.

use crate::{Body, answer, audit_trail::Trail};
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

// Kubernetes: the whole response, in plain text.
const ANSWER: &str = "This request caused apiserver to panic. Look in the logs for details.\n";

thread_local! {
    /// The location of this thread's last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Method and URI, for the log. Cheap to clone.
pub(crate) type Line = (Method, Uri);

/// A caught panic.
#[derive(Debug)]
pub(crate) struct Panicked {
    /// Its message.
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

    /// Logs it as the cause of a failed request.
    pub(crate) fn log(&self, (method, uri): &Line) {
        let path = uri.path();
        tracing::error!(%method, path, place = self.place, problem = self.message, "request panicked");
    }
}

/// Installs a hook that notes the location of each panic, then runs the previous hook. Only a hook gets the
/// location.
pub(crate) fn install_location_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            PLACE.set(panicked.location().map(ToString::to_string).unwrap_or_default());
            report(panicked);
        }));
    });
}

/// Awaits some work and catches its panic.
///
/// Requests share only state behind locks, and locks here are taken whether poisoned or not.
// Not an `async fn`, which would hold the work twice: as its argument, and as what it awaits.
pub(crate) fn catch<T>(work: impl Future<Output = T>) -> impl Future<Output = Result<T, Panicked>> {
    AssertUnwindSafe(work).catch_unwind().map_err(|payload| Panicked::new(&*payload))
}

/// The response to a request that panicked.
pub(crate) fn answer() -> Response<Body> {
    let code = StatusCode::INTERNAL_SERVER_ERROR;
    let mut response = answer::full(code, "text/plain; charset=utf-8", ANSWER);
    let no_sniffing = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(no_sniffing, HeaderValue::from_static("nosniff"));
    response
}

/// Ends a streamed body where it panics, instead of breaking the connection.
pub(crate) fn guard(response: Response<Body>, request: Line, trail: Trail) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| Guarded { body: Some(body), request, trail }.boxed_unsync())
}

struct Guarded {
    /// `None` once it has panicked.
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
    fn a_caught_panic_has_message_and_location() {
        install_location_hook();
        let caught = catch(async { panic!("boom {}", 7) }).now_or_never().unwrap();
        let Panicked { message, place } = caught.unwrap_err();
        assert_eq!(message, "boom 7");
        assert!(place.contains("panics.rs:"), "{place}");
    }

    #[test]
    fn a_body_that_panics_ends_early() {
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
