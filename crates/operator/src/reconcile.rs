//! What a reconcile returns: what to do next, or why it failed.

use crate::{Key, cache::Undecodable, owner::OwnerError, queue::Reason};
use futures::future::BoxFuture;
use kube::core::Status;
use std::{fmt, iter::successors, time::Duration};

/// What to do after a successful reconcile: exactly one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Nothing until something changes.
    Settled,
    /// Reconcile again after this time, even if nothing has changed.
    CheckAfter(Duration),
    /// Something is missing, as this text says; a watch triggers the next reconcile when it is there.
    WaitFor(&'static str),
}

/// Why a reconcile failed, by what happens next.
///
/// Every error converts into one with `?`: if there is an error response of the API server in the
/// chain of causes, that decides the variant; all other errors are transient.
/// ```
/// use operator::Failure;
///
/// fn parse(size: &str) -> Result<u32, Failure> {
///     // No retry helps before someone changes the size.
///     size.parse().map_err(|_| Failure::terminal("BadSize", format!("{size:?} is no size")))
/// }
/// assert!(matches!(parse("many"), Err(Failure::Terminal { reason: "BadSize", .. })));
/// ```
// It does not implement `Error`: then the conversion from all errors would not be allowed.
#[derive(Debug)]
pub enum Failure {
    /// May pass by itself: retried with growing pauses.
    Transient(BoxError),
    /// The object has changed meanwhile: retried at once, with fresh state.
    Conflict(BoxError),
    /// Another object is in the way, and no watch tells when it no longer is: recorded as an event, and
    /// tried again every five minutes.
    Blocked {
        /// The reason of the event: one CamelCase word.
        reason: &'static str,
        /// A sentence for people.
        message: String,
    },
    /// No retry helps until the object changes: recorded as an event, not retried.
    Terminal {
        /// The reason of the event: one CamelCase word.
        reason: &'static str,
        /// A sentence for people.
        message: String,
    },
}

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A reconciler without its types, as workers call it.
pub trait Reconcile: Send + Sync + 'static {
    /// Reconciles `key`, which was added because of `reason`.
    fn reconcile(&self, key: Key, reason: Reason) -> BoxFuture<'static, Result<Next, Failure>>;
}

impl Failure {
    /// A failure that may pass by itself.
    pub fn transient(source: impl Into<BoxError>) -> Failure {
        Failure::Transient(source.into())
    }

    /// A failure because another object is in the way.
    pub fn blocked(reason: &'static str, message: impl Into<String>) -> Failure {
        Failure::Blocked { reason, message: message.into() }
    }

    /// A failure that stays until the object changes.
    pub fn terminal(reason: &'static str, message: impl Into<String>) -> Failure {
        Failure::Terminal { reason, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Transient(source) | Failure::Conflict(source) => fmt::Display::fmt(source, out),
            Failure::Blocked { reason, message } | Failure::Terminal { reason, message } => {
                write!(out, "{reason}: {message}")
            }
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
    if let Some(refused) = cause.downcast_ref::<OwnerError>() {
        let message = refused.to_string();
        return Some(match refused {
            OwnerError::Controlled { .. } => Failure::blocked("Controlled", message),
            OwnerError::Uncontrolled { .. } => Failure::blocked("Uncontrolled", message),
            _ => Failure::terminal("CannotOwn", message),
        });
    }
    let misfit = cause.downcast_ref::<Undecodable>()?;
    Some(Failure::terminal("Undecodable", misfit.to_string()))
}

fn of_status(status: &Status) -> Option<Failure> {
    match (status.code, status.reason.as_str()) {
        // The object has changed or was created since it was read.
        (409, "Conflict" | "AlreadyExists") => Some(Failure::Conflict(status.message.clone().into())),
        // The server refuses the same object every time.
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
            Failure::Blocked { .. } => "blocked",
            Failure::Terminal { .. } => "terminal",
        }
    }

    #[test]
    fn error_responses_decide_the_variant() {
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
