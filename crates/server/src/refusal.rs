//! Why a request is not carried out. Only here does a refusal become the `Status` that its caller gets.

mod reasons;

use api::{
    field::ErrorList,
    kind::GroupKind,
    status::{Cause, Reason, Status},
};
use std::{fmt, sync::Arc};

/// Why a request is not carried out: a variant for each case that some caller treats in its own way.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The object, or one that it needs, is not there.
    NotFound(Box<Status>),
    /// Authorization, admission or a policy says no.
    Forbidden(Box<Status>),
    /// There is an object of that name, or it is in another state than the caller has seen.
    Conflict(Box<Status>),
    /// The store has failed.
    Store(Arc<store::Error>),
    /// Any other answer.
    Other(Box<Status>),
}

impl Refusal {
    /// The answer to the caller. What the server itself is to blame for is logged here, with its cause.
    pub(crate) fn into_status(self) -> Status {
        let status = self.status();
        if status.code >= 500 {
            self.log(&status);
        }
        status
    }

    fn status(&self) -> Status {
        match self {
            Refusal::NotFound(status)
            | Refusal::Forbidden(status)
            | Refusal::Conflict(status)
            | Refusal::Other(status) => Status::clone(status),
            Refusal::Store(error) => store_failed(error),
        }
    }

    /// In the span of its request, which names the verb, the object and the caller.
    fn log(&self, status: &Status) {
        let (code, reason) = (status.code, status.reason.as_str());
        match self {
            Refusal::Store(error) => {
                let error: &dyn std::error::Error = &**error;
                tracing::error!(code, reason, error, "the store refuses a request");
            }
            _ if status.reason == Reason::InternalError => {
                tracing::error!(code, reason, problem = status.message, "a request failed");
            }
            // Kubernetes answers with 5xx to some requests that are at fault themselves, and where it is too slow.
            _ => tracing::warn!(code, reason, problem = status.message, "a request is refused"),
        }
    }

    pub(crate) fn with_cause(self, cause: Cause) -> Refusal {
        self.edit(|status| status.details.get_or_insert_default().causes.push(cause))
    }

    pub(crate) fn with_message(self, message: impl Into<String>) -> Refusal {
        self.edit(|status| status.message = message.into())
    }

    pub(crate) fn with_prefix(self, prefix: &str) -> Refusal {
        self.edit(|status| status.message.insert_str(0, prefix))
    }

    /// Changes what the caller will read, but not what the refusal is.
    fn edit(mut self, edit: impl FnOnce(&mut Status)) -> Refusal {
        match &mut self {
            Refusal::NotFound(status)
            | Refusal::Forbidden(status)
            | Refusal::Conflict(status)
            | Refusal::Other(status) => edit(status),
            Refusal::Store(_) => {}
        }
        self
    }
}

/// The message for callers.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.status().message)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        let (reason, status) = (status.reason.clone(), Box::new(status));
        match reason {
            Reason::NotFound => Refusal::NotFound(status),
            Reason::Forbidden => Refusal::Forbidden(status),
            Reason::Conflict | Reason::AlreadyExists => Refusal::Conflict(status),
            _ => Refusal::Other(status),
        }
    }
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Refusal {
        Refusal::Store(Arc::new(error))
    }
}

/// A failure of the store, in words for callers.
fn store_failed(error: &store::Error) -> Status {
    match error {
        store::Error::Unavailable(problem) => Status::service_unavailable(problem.clone()),
        store::Error::OutcomeUnknown(_) => Status::timeout("etcdserver: request timed out", 0),
        store::Error::TooLarge { .. } => Status::request_entity_too_large("etcdserver: request is too large"),
        // Kubernetes: etcd's own words, with no reason.
        store::Error::QuotaExceeded { .. } => {
            Status::unclassified("etcdserver: mvcc: database space exceeded")
        }
        // These name files of this machine, which are not shown to callers.
        store::Error::Full { .. } => Status::internal_error("the store has no room to write"),
        store::Error::Broken(_)
        | store::Error::Corrupt(_)
        | store::Error::InUse { .. }
        | store::Error::Io { .. } => Status::internal_error("the store cannot write"),
        other => Status::internal_error(other),
    }
}

/// Options of a request that do not go together.
pub(crate) fn check_options(kind: &str, errors: ErrorList) -> Result<(), Refusal> {
    errors.into_result().map_err(|errors| Refusal::invalid(&GroupKind::new("meta.k8s.io", kind), "", &errors))
}
