//! Why a command failed, in kubectl's words: scripts match on them.

use serde_json::Value;
use std::fmt::{self, Display, Write};

/// The result of a part of a command.
pub(crate) type ClientResult<T> = Result<T, ClientError>;

#[derive(Clone, Debug)]
pub(crate) enum ClientError {
    /// The server refused: its Status.
    Status(Box<StatusAnswer>),
    /// Anything else, as it is to be printed.
    Text(String),
    /// Several failures of one command, a line for each.
    Several(Vec<ClientError>),
    /// The reader of standard output has closed it.
    OutputClosed,
}

/// A Status of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusAnswer {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// `The Deployment "web"`, from the details.
    subject: Option<(String, String)>,
    causes: Vec<String>,
}

impl StatusAnswer {
    /// From the body of a response with this code, which may be no Status.
    pub(crate) fn read(code: u16, body: &[u8]) -> StatusAnswer {
        let Ok(status) = serde_json::from_slice::<Value>(body) else {
            let message = String::from_utf8_lossy(body).trim().to_owned();
            return StatusAnswer { code, message, ..StatusAnswer::default() };
        };
        StatusAnswer::of(code, &status)
    }

    pub(crate) fn of(code: u16, status: &Value) -> StatusAnswer {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = &status["details"];
        let (kind, name) = (text(&details["kind"]), text(&details["name"]));
        let mut causes = Vec::new();
        for cause in details["causes"].as_array().into_iter().flatten() {
            let cause = format!("{}: {}", text(&cause["field"]), text(&cause["message"]));
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        StatusAnswer {
            code: status["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(code),
            reason: text(&status["reason"]),
            message: text(&status["message"]),
            subject: (!kind.is_empty() || !name.is_empty()).then_some((kind, name)),
            causes,
        }
    }
}

impl ClientError {
    /// An error that the client found itself.
    pub(crate) fn error(text: impl Display) -> ClientError {
        ClientError::Text(format!("error: {text}"))
    }

    pub(crate) fn status(&self) -> Option<&StatusAnswer> {
        match self {
            ClientError::Status(status) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// Whether the object, or a field of it, was written by someone else.
    pub(crate) fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "Conflict")
    }

    /// The same failure, with what was being done and with which file.
    pub(crate) fn when(self, doing: &str, source: &str) -> ClientError {
        match self {
            ClientError::Status(mut status) if !source.is_empty() => {
                status.message = format!("error when {doing} \"{source}\": {}", status.message);
                ClientError::Status(status)
            }
            other => other,
        }
    }

    /// `Ok` without failures, the failure itself if there is one, all of them otherwise.
    pub(crate) fn all(mut failures: Vec<ClientError>) -> ClientResult<()> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(ClientError::Several(failures)),
        }
    }
}

impl Display for StatusAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "Invalid" => self.invalid(out),
            "Unauthorized" => {
                write!(out, "error: You must be logged in to the server ({})", self.message)
            }
            "" => write!(out, "Error from server: {}", self.message),
            reason => write!(out, "Error from server ({reason}): {}", self.message),
        }
    }
}

impl StatusAnswer {
    fn invalid(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some((kind, name)) => write!(out, "The {kind} \"{name}\" is invalid")?,
            None if self.causes.is_empty() => write!(out, "The request is invalid: {}", self.message)?,
            None => out.write_str("The request is invalid")?,
        }
        match self.causes.as_slice() {
            [] => Ok(()),
            [cause] => write!(out, ": {cause}"),
            causes => {
                out.write_str(": ")?;
                causes.iter().try_for_each(|cause| write!(out, "\n* {cause}"))
            }
        }
    }
}

impl Display for ClientError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Status(status) => status.fmt(out),
            ClientError::Text(text) => out.write_str(text),
            ClientError::Several(failures) => {
                for (at, failure) in failures.iter().enumerate() {
                    if at > 0 {
                        out.write_char('\n')?;
                    }
                    failure.fmt(out)?;
                }
                Ok(())
            }
            ClientError::OutputClosed => Ok(()),
        }
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_is_told_as_kubectl_tells_it() {
        let causes = json!([
            {"field": "spec.a", "message": "Required value"},
            {"field": "spec.b", "message": "too long"},
            {"field": "spec.b", "message": "too long"},
        ]);
        for (status, expected) in [
            (
                json!({"reason": "NotFound", "message": "pods \"x\" not found"}),
                "Error from server (NotFound): pods \"x\" not found",
            ),
            (json!({"message": "broken"}), "Error from server: broken"),
            (
                json!({"reason": "Unauthorized", "message": "Unauthorized"}),
                "error: You must be logged in to the server (Unauthorized)",
            ),
            (
                json!({"reason": "Invalid", "details": {"kind": "Pod", "name": "x", "causes": causes}}),
                "The Pod \"x\" is invalid: \n* spec.a: Required value\n* spec.b: too long",
            ),
            (
                json!({"reason": "Invalid", "details": {"kind": "Pod", "name": "x", "causes": [causes[0]]}}),
                "The Pod \"x\" is invalid: spec.a: Required value",
            ),
            (json!({"reason": "Invalid", "message": "bad"}), "The request is invalid: bad"),
        ] {
            assert_eq!(StatusAnswer::of(400, &status).to_string(), expected);
        }
        let plain = StatusAnswer::read(404, b"404 page not found\n");
        assert_eq!(plain.to_string(), "Error from server: 404 page not found");
    }
}
