//! Rejections of requests. Only this module turns one into the `Status` that the client gets.

mod reasons;

use api::{
    field::ErrorList,
    kind::GroupKind,
    status::{Cause, Reason, Status},
};
use std::{fmt, sync::Arc};

/// Why a request is rejected: a variant for each case that some caller treats differently.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The object, or one that it needs, does not exist.
    NotFound(Box<Status>),
    /// Authorization, admission or a policy rejects it.
    Forbidden(Box<Status>),
    /// The name is taken, or the object's state is not the one that the client has seen.
    Conflict(Box<Status>),
    /// The store has failed.
    Store(Arc<store::Error>),
    /// Any other Status.
    Other(Box<Status>),
}

impl Refusal {
    /// The Status for the client. Server errors are logged here, with their cause.
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

    /// Within the request's span, which names verb, object and caller.
    fn log(&self, status: &Status) {
        let (code, reason) = (status.code, status.reason.as_str());
        match self {
            Refusal::Store(error) => {
                let error: &dyn std::error::Error = &**error;
                tracing::error!(code, reason, error, "store error");
            }
            _ if status.reason == Reason::InternalError => {
                tracing::error!(code, reason, problem = status.message, "request failed");
            }
            // Kubernetes answers some invalid or slow requests with 5xx, too.
            _ => tracing::warn!(code, reason, problem = status.message, "request rejected"),
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

    /// Changes the message, not the kind of rejection.
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

/// The message for clients.
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

/// The Status of a store error.
fn store_failed(error: &store::Error) -> Status {
    match error {
        store::Error::Unavailable(problem) => Status::service_unavailable(problem.clone()),
        store::Error::OutcomeUnknown(_) => Status::timeout("etcdserver: request timed out", 0),
        store::Error::TooLarge { .. } => Status::request_entity_too_large("etcdserver: request is too large"),
        // Kubernetes: etcd's text, without a reason.
        store::Error::QuotaExceeded { .. } => {
            Status::unclassified("etcdserver: mvcc: database space exceeded")
        }
        // These errors name files of this machine, which are not shown to clients.
        store::Error::Full { .. } => Status::internal_error("the store has no room to write"),
        store::Error::Broken(_)
        | store::Error::Corrupt(_)
        | store::Error::InUse { .. }
        | store::Error::Io { .. } => Status::internal_error("the store cannot write"),
        other => Status::internal_error(other),
    }
}

/// Rejects options that do not go together.
pub(crate) fn check_options(kind: &str, errors: ErrorList) -> Result<(), Refusal> {
    errors.into_result().map_err(|errors| Refusal::invalid(&GroupKind::new("meta.k8s.io", kind), "", &errors))
}
