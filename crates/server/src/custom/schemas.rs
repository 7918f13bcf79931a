//! Compiled schemas, shared by versions and definitions with the same schema.

use aws_lc_rs::digest::{self, SHA256, SHA256_OUTPUT_LEN};
use kinds::definition::Version;
use schema::structural::Structural;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Digest of the schema's JSON.
type Digest = [u8; SHA256_OUTPUT_LEN];

/// Entries before unused ones are first removed.
const MIN_CLEANUP: usize = 64;

/// Schemas in use, by digest. Entries are weak: a schema is dropped with its last user.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Mutex<SharedSchemas>);

#[derive(Debug, Default)]
struct SharedSchemas {
    by_digest: HashMap<Digest, Weak<Structural>>,
    /// The number in use at the last cleanup.
    in_use: usize,
}

fn digest(version: &Version) -> Digest {
    let text = version.schema_text().map_or(&b""[..], |text| text);
    let digest = digest::digest(&SHA256, text);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

impl Schemas {
    /// The schema of a version.
    pub(super) fn compiled(&self, version: &Version) -> Arc<Structural> {
        let digest = digest(version);
        if let Some(known) = self.lock().by_digest.get(&digest).and_then(Weak::upgrade) {
            return known;
        }
        // Compiled outside of the lock: concurrent callers may compile twice, but do not wait.
        let compiled = Arc::new(compile(version));
        self.lock().keep(digest, &compiled);
        compiled
    }

    fn lock(&self) -> MutexGuard<'_, SharedSchemas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedSchemas {
    fn keep(&mut self, digest: Digest, schema: &Arc<Structural>) {
        if self.by_digest.len() >= 2 * self.in_use + MIN_CLEANUP {
            self.by_digest.retain(|_, schema| schema.strong_count() > 0);
            self.in_use = self.by_digest.len();
        }
        self.by_digest.insert(digest, Arc::downgrade(schema));
    }
}

fn compile(version: &Version) -> Structural {
    // Kubernetes: old definitions without a schema preserve all fields.
    let schema = version.schema().unwrap_or_else(
        || serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    Structural::compile(&schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::definition::Definition;
    use serde_json::json;

    fn version(field: &str) -> Version {
        let schema = json!({"type": "object", "properties": {field: {"type": "string"}}});
        let versions = json!([{"name": "v1", "schema": {"openAPIV3Schema": schema}}]);
        Definition::read(&json!({"spec": {"versions": versions}})).unwrap().versions.remove(0)
    }

    #[test]
    fn equal_schemas_are_shared() {
        let schemas = Schemas::default();
        let compiled = |field: &str| schemas.compiled(&version(field));
        let (one, same, other) = (compiled("a"), compiled("a"), compiled("b"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        assert_eq!(schemas.lock().by_digest.values().filter(|it| it.strong_count() > 0).count(), 1);
    }

    #[test]
    fn unused_schemas_are_removed() {
        let schemas = Schemas::default();
        for number in 0..3 * MIN_CLEANUP {
            let version = version(&number.to_string());
            drop(schemas.compiled(&version));
            assert!(schemas.lock().by_digest.len() <= MIN_CLEANUP);
        }
    }
}
