//! Compiled schemas, each once: versions and definitions that say the same share what is made of it.

use aws_lc_rs::digest::{self, SHA256, SHA256_OUTPUT_LEN};
use kinds::definition::Version;
use schema::structural::Structural;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Of the text of a schema.
type Digest = [u8; SHA256_OUTPUT_LEN];

/// So many entries are kept before those that nobody uses any more are looked for.
const FEW: usize = 64;

/// The schemas that somebody uses, by their digests. An entry keeps nothing alive: a schema goes with its last user.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Mutex<SharedSchemas>);

#[derive(Debug, Default)]
struct SharedSchemas {
    by_digest: HashMap<Digest, Weak<Structural>>,
    /// How many were in use when the others were last thrown out.
    in_use: usize,
}

fn digest(version: &Version) -> Digest {
    let text = version.schema_text().map_or(&b""[..], |text| text);
    let digest = digest::digest(&SHA256, text);
    digest.as_ref().try_into().expect("a digest has the length of its algorithm")
}

impl Schemas {
    /// The schema of a version.
    pub(super) fn compiled(&self, version: &Version) -> Arc<Structural> {
        let digest = digest(version);
        if let Some(known) = self.lock().by_digest.get(&digest).and_then(Weak::upgrade) {
            return known;
        }
        // Made outside of the lock: two who come at once make it twice, and nobody waits.
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
        if self.by_digest.len() >= 2 * self.in_use + FEW {
            self.by_digest.retain(|_, schema| schema.strong_count() > 0);
            self.in_use = self.by_digest.len();
        }
        self.by_digest.insert(digest, Arc::downgrade(schema));
    }
}

fn compile(version: &Version) -> Structural {
    // Kubernetes: definitions of old that have no schema keep everything.
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
    fn who_says_the_same_shares_it() {
        let schemas = Schemas::default();
        let compiled = |field: &str| schemas.compiled(&version(field));
        let (one, same, other) = (compiled("a"), compiled("a"), compiled("b"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        assert_eq!(schemas.lock().by_digest.values().filter(|it| it.strong_count() > 0).count(), 1);
    }

    #[test]
    fn what_nobody_uses_does_not_pile_up() {
        let schemas = Schemas::default();
        for number in 0..3 * FEW {
            let version = version(&number.to_string());
            drop(schemas.compiled(&version));
            assert!(schemas.lock().by_digest.len() <= FEW);
        }
    }
}
