//! What stages add to the audit event of a request; does nothing for requests that are not recorded.

use crate::{authenticate::Caller, input::Encoding};
use api::name::Format;
use bytes::Bytes;
use http::request::Parts;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Limit on the annotations of one request by webhooks and policies.
const MAX_NOTES: usize = 256;

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum AuditLevel {
    None,
    Metadata,
    Request,
    RequestResponse,
}

/// Collects a request's annotations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail(Option<Arc<RecordedRequest>>);

#[derive(Debug)]
struct RecordedRequest {
    level: AuditLevel,
    notes: Mutex<Notes>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) acting: Option<(Caller, String)>,
    /// The request body.
    pub(crate) sent: Option<Sent>,
    /// The message of the panic that ended the request.
    pub(crate) panic: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) body: Bytes,
    pub(crate) encoding: Encoding,
    /// Whether it is an object, which may have a name.
    pub(crate) is_object: bool,
}

static NOWHERE: Trail = Trail(None);

impl AuditLevel {
    pub(crate) const ALL: [AuditLevel; 4] =
        [AuditLevel::None, AuditLevel::Metadata, AuditLevel::Request, AuditLevel::RequestResponse];

    pub(crate) fn text(self) -> &'static str {
        match self {
            AuditLevel::None => "None",
            AuditLevel::Metadata => "Metadata",
            AuditLevel::Request => "Request",
            AuditLevel::RequestResponse => "RequestResponse",
        }
    }

    pub(crate) fn named(text: &str) -> Option<AuditLevel> {
        AuditLevel::ALL.into_iter().find(|level| level.text() == text)
    }
}

impl Trail {
    pub(crate) fn new(level: AuditLevel) -> Trail {
        Trail(Some(Arc::new(RecordedRequest { level, notes: Mutex::default() })))
    }

    /// The trail of a request.
    pub(crate) fn of(head: &Parts) -> &Trail {
        head.extensions.get().unwrap_or(&NOWHERE)
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Adds an annotation. The first value of a key is kept.
    pub(crate) fn note(&self, key: &str, value: impl FnOnce() -> String) {
        self.note_from(AuditLevel::Metadata, key, value);
    }

    /// Adds an annotation under a plugin's name. Invalid keys are skipped.
    pub(crate) fn note_from_plugin(&self, plugin: &str, key: &str, value: impl FnOnce() -> String) {
        let key = format!("{plugin}/{key}");
        if self.is_kept() && Format::QualifiedName.fits(&key) {
            self.note(&key, value);
        }
    }

    /// Adds an annotation with request content, recorded only from level Request on.
    pub(crate) fn note_of_request(&self, key: &str, value: impl FnOnce() -> String) {
        self.note_from(AuditLevel::Request, key, value);
    }

    fn note_from(&self, level: AuditLevel, key: &str, value: impl FnOnce() -> String) {
        let Some(recorded) = self.0.as_ref().filter(|recorded| recorded.level >= level) else { return };
        let mut notes = recorded.lock();
        if notes.annotations.len() < MAX_NOTES && !notes.annotations.contains_key(key) {
            notes.annotations.insert(key.to_owned(), value());
        }
    }

    /// Records the impersonated user, and the verb of constrained impersonation that allowed it.
    pub(crate) fn acts_as(&self, caller: &Caller, constraint: &str) {
        if let Some(recorded) = &self.0 {
            recorded.lock().acting = Some((caller.clone(), constraint.to_owned()));
        }
    }

    /// Keeps the request body, without copying it.
    pub(crate) fn sent(&self, body: &Bytes, media_type: &str) {
        if let Some(recorded) = self.0.as_ref().filter(|_| !body.is_empty()) {
            let encoding = Encoding::of_media_type(media_type);
            let is_object = !media_type.contains("patch");
            recorded.lock().sent = Some(Sent { body: body.clone(), encoding, is_object });
        }
    }

    /// Records that the request ended in a panic.
    pub(crate) fn panicked(&self, message: &str) {
        if let Some(recorded) = &self.0 {
            recorded.lock().panic = Some(message.to_owned());
        }
    }

    pub(crate) fn notes(&self) -> Notes {
        self.0.as_ref().map(|recorded| recorded.lock().clone()).unwrap_or_default()
    }
}

impl RecordedRequest {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
