//! The tracing span of a request, and one log line when it is answered.
//!
//! Writes run in their span. A read costs little more than the span would, so it gets one only at level
//! debug or if it fails.

use crate::{
    answer::{self, Body},
    call::Call,
    negotiate::Form,
    refusal::Refusal,
    request::Verb,
};
use http::Response;
use tracing::{Instrument, Level, Span};

/// Runs a call in its span and logs its response; `form` is that of errors.
pub(crate) async fn run(
    call: &Call,
    verb: Verb,
    form: Form,
    work: impl Future<Output = Result<Response<Body>, Refusal>>,
) -> Response<Body> {
    if !verb.is_write() && !tracing::enabled!(Level::DEBUG) {
        return work
            .await
            .unwrap_or_else(|refusal| span(call, verb).in_scope(|| answer::refusal(refusal, form)));
    }
    let span = span(call, verb);
    let world = &call.inner.world;
    let begun = world.now();
    let response = async {
        let response = work.await.unwrap_or_else(|refusal| answer::refusal(refusal, form));
        let (code, seconds) = (response.status().as_u16(), world.now().since(begun).as_secs_f64());
        match verb.is_write() {
            true => tracing::info!(code, seconds, "answered"),
            false => tracing::debug!(code, seconds, "answered"),
        }
        response
    };
    response.instrument(span).await
}

/// At level error, so that it is there for every logged line.
fn span(call: &Call, verb: Verb) -> Span {
    let given = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (target, resource) = (&call.target, call.resource().to_string());
    tracing::error_span!(
        "request",
        verb = verb.text(),
        resource,
        subresource = given(&target.subresource),
        namespace = given(&target.namespace),
        name = given(&target.name),
        caller = call.caller().name,
    )
}
