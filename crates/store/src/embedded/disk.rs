//! The disk as a trait: one directory of files, written at offsets and synced.
//!
//! Two implementations: the operating system's, and (in tests) a simulated one that crashes, fills up and
//! fails on demand.

use std::{
    fmt, fs, io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
};

pub(crate) trait Disk: fmt::Debug + Send + Sync {
    fn names(&self) -> io::Result<Vec<String>>;
    fn size(&self, name: &str) -> io::Result<u64>;
    fn read(&self, name: &str) -> io::Result<Box<dyn io::Read + Send>>;
    /// Opens a file to write to; existing content stays until it is overwritten.
    fn write(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes file creations, renames and removals durable.
    fn sync_names(&self) -> io::Result<()>;
    /// The full path, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

pub(crate) trait DiskFile: fmt::Debug + Send {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything written so far durable.
    fn sync(&self) -> io::Result<()>;
}

/// A directory of the operating system.
#[derive(Debug)]
pub(crate) struct Directory(pub(crate) PathBuf);

impl Disk for Directory {
    fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(io::Result::transpose).collect()
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path(name))?.len())
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn io::Read + Send>> {
        Ok(Box::new(fs::File::open(self.path(name))?))
    }

    fn write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(self.path(name))?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        fs::File::open(&self.0)?.sync_all()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl DiskFile for fs::File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Writes a [`DiskFile`] sequentially.
#[derive(Debug)]
pub(crate) struct Sequential<'a> {
    pub(crate) file: &'a dyn DiskFile,
    pub(crate) offset: u64,
}

impl io::Write for Sequential<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
