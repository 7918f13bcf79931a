//! Backups outside of the cluster: here, directories on a disk.

use std::{fs, io, path::PathBuf};

/// A place for backups.
pub trait Backups: Send + Sync + 'static {
    /// Saves a database under a name; again is no failure.
    fn save(&self, name: &str) -> io::Result<()>;
}

/// Backups as directories under a root.
#[derive(Debug)]
pub struct Directories(pub PathBuf);

impl Backups for Directories {
    fn save(&self, name: &str) -> io::Result<()> {
        fs::create_dir_all(self.0.join(name))
    }
}
