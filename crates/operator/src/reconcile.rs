//! What a reconcile gets and what it may answer.

use crate::{Key, cache::Undecodable};
use futures::future::BoxFuture;
use kube::core::Status;
use std::{fmt, iter::successors, time::Duration};

/// What a reconcile asks for. There is no way to ask for two things at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Nothing to do until something changes.
    Settled,
    /// Look again after this time, even if nothing has changed.
    CheckAfter(Duration),
    /// Something named is missing, and a watch will tell when it comes.
    WaitFor(&'static str),
}

/// Why a reconcile did not reach its end, by what should happen next.
///
/// Every error becomes one with `?`: an answer of the API server, wherever in the chain of causes
/// it stands, decides the class; whatever else goes wrong is transient.
// Not an `Error` itself: that would forbid the conversion from all of them.
#[derive(Debug)]
pub enum Failure {
    /// May pass by itself: tried again with growing pauses.
    Transient(BoxError),
    /// Somebody else was faster: tried again at once, with fresh state.
    Conflict(BoxError),
    /// No retry helps before somebody changes the object: told by an event, not tried again.
    Terminal { reason: &'static str, message: String },
}

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The reconciler, as the worker sees it.
pub trait Reconcile: Send + Sync + 'static {
    fn reconcile(&self, key: Key) -> BoxFuture<'static, Result<Next, Failure>>;
}

impl Failure {
    pub fn transient(source: impl Into<BoxError>) -> Failure {
        Failure::Transient(source.into())
    }

    pub fn terminal(reason: &'static str, message: impl Into<String>) -> Failure {
        Failure::Terminal { reason, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Transient(source) | Failure::Conflict(source) => fmt::Display::fmt(source, out),
            Failure::Terminal { reason, message } => write!(out, "{reason}: {message}"),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let causes = successors(Some(&error as &(dyn std::error::Error + 'static)), |cause| cause.source());
        let known = causes.filter_map(of_cause).next();
        known.unwrap_or_else(|| Failure::Transient(Box::new(error)))
    }
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Failure> {
    if let Some(kube::Error::Api(status)) = cause.downcast_ref() {
        return of_status(status);
    }
    let misfit = cause.downcast_ref::<Undecodable>()?;
    Some(Failure::terminal("Undecodable", misfit.to_string()))
}

fn of_status(status: &Status) -> Option<Failure> {
    match (status.code, status.reason.as_str()) {
        // Both say that the state this was decided on is no longer the state.
        (409, "Conflict" | "AlreadyExists") => Some(Failure::Conflict(status.message.clone().into())),
        // The server will say the same to the same object every time.
        (400 | 422, _) => Some(Failure::terminal("Rejected", status.message.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the bucket cannot be made")]
    struct Wrapped(#[source] kube::Error);

    fn class(failure: Failure) -> &'static str {
        match failure {
            Failure::Transient(_) => "transient",
            Failure::Conflict(_) => "conflict",
            Failure::Terminal { .. } => "terminal",
        }
    }

    #[test]
    fn answers_of_the_server_decide_the_class() {
        for (code, reason, expected) in [
            (409, "Conflict", "conflict"),
            (409, "AlreadyExists", "conflict"),
            (422, "Invalid", "terminal"),
            (400, "BadRequest", "terminal"),
            (403, "Forbidden", "transient"),
            (404, "NotFound", "transient"),
            (429, "TooManyRequests", "transient"),
            (500, "InternalError", "transient"),
            (504, "Timeout", "transient"),
        ] {
            let status = Status { code, reason: reason.to_owned(), ..Status::default() };
            let error = || kube::Error::Api(status.clone().boxed());
            assert_eq!(class(error().into()), expected, "{code} {reason}");
            assert_eq!(class(Wrapped(error()).into()), expected, "{code} {reason} as a cause");
        }
        assert_eq!(class(std::io::Error::other("no network").into()), "transient");
    }
}
