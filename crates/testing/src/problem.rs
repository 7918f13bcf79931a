//! Why the testing API could not do something, as a Status for the client.

use crate::{fault, plane::PlaneError};
use http::Response;
use serde_json::{Value, json};
use server::Body;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Problem {
        Problem { code, reason, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(422, "Invalid", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Problem {
        Problem::new(500, "InternalError", message)
    }

    /// It took too long. Not 504: some clients send a request with that answer again.
    pub(crate) fn timeout(message: impl Into<String>) -> Problem {
        Problem::new(408, "Timeout", message)
    }

    pub(crate) fn of_store(error: store::Error) -> Problem {
        Problem::internal(format!("the store failed: {error}"))
    }

    /// There are too many objects of a kind.
    pub(crate) fn too_many(what: &str, limit: usize) -> Problem {
        Problem::new(
            403,
            "Forbidden",
            format!("there are {limit} {what}, which is the limit; delete some of them"),
        )
    }

    pub(crate) fn response(&self) -> Response<Body> {
        let status: Value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        fault::answer(self.code, &status)
    }
}

impl From<PlaneError> for Problem {
    fn from(error: PlaneError) -> Problem {
        Problem { code: error.code, reason: "InternalError", message: error.message }
    }
}
