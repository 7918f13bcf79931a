//! The world outside the cluster: here, directories on a disk.

use crate::BucketSpec;
use std::{fs, io, path::PathBuf};

/// A place for buckets. Both calls may be repeated: they say what should be, not what to do.
pub trait Cloud: Send + Sync + 'static {
    /// Makes the bucket or brings it in line, and tells its address.
    fn ensure(&self, name: &str, spec: &BucketSpec) -> io::Result<String>;
    /// Removes it; that there is none is no failure.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Buckets as directories under a root.
#[derive(Debug)]
pub struct Directories(pub PathBuf);

impl Cloud for Directories {
    fn ensure(&self, name: &str, spec: &BucketSpec) -> io::Result<String> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(".size"), spec.size_gib.to_string())?;
        Ok(folder.display().to_string())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}
