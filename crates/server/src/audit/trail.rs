//! What stages add to the audit event of a request; does nothing for requests that are not recorded.

use super::{content, policy::AuditLevel};
use crate::{authenticate::Caller, authorize::impersonate::Acting, input::Encoding};
use api::name::Format;
use bytes::Bytes;
use http::request::Parts;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Limit on the annotations of one request by webhooks and policies.
const MAX_NOTES: usize = 256;

/// Collects a request's annotations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail(Option<Arc<RecordedRequest>>);

#[derive(Debug)]
struct RecordedRequest {
    level: AuditLevel,
    notes: Mutex<Notes>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) acting: Option<(Caller, String)>,
    /// The request body.
    pub(super) sent: Option<Sent>,
    /// The message of the panic that ended the request.
    pub(super) panic: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) body: Bytes,
    pub(super) encoding: Encoding,
    /// Whether it is an object, which may have a name.
    pub(super) is_object: bool,
}

static NOWHERE: Trail = Trail(None);

impl Trail {
    pub(super) fn new(level: AuditLevel) -> Trail {
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
        let Some(shared) = self.0.as_ref().filter(|shared| shared.level >= level) else { return };
        let mut notes = shared.lock();
        if notes.annotations.len() < MAX_NOTES && !notes.annotations.contains_key(key) {
            notes.annotations.insert(key.to_owned(), value());
        }
    }

    pub(crate) fn acts_as(&self, acting: &Acting) {
        if let Some(shared) = &self.0 {
            shared.lock().acting = Some((acting.caller.clone(), acting.constraint.clone()));
        }
    }

    /// Keeps the request body, without copying it.
    pub(crate) fn sent(&self, body: &Bytes, media_type: &str) {
        if let Some(shared) = self.0.as_ref().filter(|_| !body.is_empty()) {
            let encoding = content::encoding(media_type);
            let is_object = !media_type.contains("patch");
            shared.lock().sent = Some(Sent { body: body.clone(), encoding, is_object });
        }
    }

    /// Records that the request ended in a panic.
    pub(crate) fn panicked(&self, message: &str) {
        if let Some(shared) = &self.0 {
            shared.lock().panic = Some(message.to_owned());
        }
    }

    pub(super) fn notes(&self) -> Notes {
        self.0.as_ref().map(|shared| shared.lock().clone()).unwrap_or_default()
    }
}

impl RecordedRequest {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
