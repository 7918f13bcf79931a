//! Cached documents.

use crate::answer::compress;
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use world::Timestamp;

/// More than the versions of all groups of a large cluster; beyond that the oldest are made again when
/// needed.
const MAX_DOCUMENTS: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Document {
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    gzipped: OnceLock<Bytes>,
    /// With quotes; empty for none.
    pub(super) etag: String,
    /// For Last-Modified, if it is sent.
    pub(super) made: Option<Timestamp>,
}

impl Document {
    pub(super) fn plain(body: impl Into<Bytes>) -> Document {
        let body = body.into();
        Document {
            content_type: "application/json",
            body,
            gzipped: OnceLock::new(),
            etag: String::new(),
            made: None,
        }
    }

    pub(super) fn of_type(self, content_type: &'static str) -> Document {
        Document { content_type, ..self }
    }

    pub(super) fn tagged(self, etag: String) -> Document {
        Document { etag, ..self }
    }

    pub(super) fn made_at(self, now: Timestamp) -> Document {
        Document { made: Some(now), ..self }
    }

    pub(super) fn gzipped(&self) -> Bytes {
        self.gzipped.get_or_init(|| compress(&self.body)).clone()
    }
}

/// The cached documents, by name.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<BTreeMap<String, Kept>>);

#[derive(Debug)]
struct Kept {
    document: Arc<Document>,
    /// Identifies all that the document was made from.
    stamp: String,
    /// The registry's generation at which the document was last known to be current.
    generation: u64,
}

impl Documents {
    /// The document of that name. After a change of the registry a document is still current if its stamp
    /// is the same.
    pub(super) fn get(
        &self,
        generation: u64,
        name: &str,
        stamp: impl FnOnce() -> String,
        make: impl FnOnce() -> Option<Document>,
    ) -> Option<Arc<Document>> {
        if let Some(kept) = self.lock().get(name).filter(|kept| kept.generation >= generation) {
            return Some(Arc::clone(&kept.document));
        }
        let stamp = stamp();
        let same =
            self.lock().get(name).filter(|kept| kept.stamp == stamp).map(|kept| Arc::clone(&kept.document));
        let document = match same {
            Some(document) => document,
            // Made outside of the lock: concurrent callers may make it twice, but do not wait.
            _ => match make() {
                Some(document) => Arc::new(document),
                None => {
                    self.lock().remove(name);
                    return None;
                }
            },
        };
        let mut all = self.lock();
        if all.len() >= MAX_DOCUMENTS {
            all.retain(|_, kept| kept.generation >= generation);
        }
        if all.len() < MAX_DOCUMENTS {
            all.insert(name.to_owned(), Kept { document: Arc::clone(&document), stamp, generation });
        }
        Some(document)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_documents_are_made_again() {
        let documents = Documents::default();
        for (generation, stamp, text, expected) in [
            (1, "s", Some("a"), Some("a")),
            (1, "t", Some("b"), Some("a")),
            (2, "s", Some("c"), Some("a")),
            (1, "t", Some("d"), Some("a")),
            (3, "t", Some("e"), Some("e")),
            (4, "u", None, None),
            (4, "u", Some("f"), Some("f")),
        ] {
            let made = || text.map(Document::plain);
            let found = documents.get(generation, "n", || stamp.to_owned(), made);
            let found = found.as_ref().map(|found| &found.body[..]);
            assert_eq!(found, expected.map(str::as_bytes), "{generation} {stamp}");
        }
    }
}
