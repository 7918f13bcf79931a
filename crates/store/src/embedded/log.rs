//! The write-ahead log: segments of frames, each durable before its commits are acknowledged.

use super::{
    disk::{Disk, DiskFile},
    frame::{FrameBuilder, SEGMENT_HEADER_BYTES, segment_header},
};
use crate::{Error, Revision};
use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How far ahead a new segment is filled with zeros: writing into allocated space saves the file system
/// metadata updates in every sync (measured: half as fast again).
const FILL_BYTES: u64 = 1 << 20;
/// Old segments kept for recycling; the rest is removed.
const MAX_SPARES: usize = 2;

pub(crate) const TEMPORARY_SEGMENT: &str = "segment.tmp";
const SEGMENT_SUFFIX: &str = ".log";
const SPARE_PREFIX: &str = "spare-";

/// The files in the directory. Shared by the writer, which adds, and the checkpointer, which removes.
#[derive(Debug, Default)]
pub(crate) struct Catalog(Mutex<Files>);

#[derive(Debug, Default)]
pub(crate) struct Files {
    /// In the order of their revisions; the last one is being written.
    pub(crate) segments: VecDeque<SegmentFile>,
    pub(crate) spares: Vec<String>,
    /// The revision of the snapshot that the segments continue.
    pub(crate) snapshot: Revision,
}

#[derive(Clone, Debug)]
pub(crate) struct SegmentFile {
    pub(crate) first: Revision,
    pub(crate) bytes: u64,
}

impl SegmentFile {
    pub(crate) fn name(&self) -> String {
        segment_name(self.first)
    }
}

pub(crate) fn segment_name(first: Revision) -> String {
    format!("{:020}{SEGMENT_SUFFIX}", first.0)
}

/// The first revision of the segment with this name.
pub(crate) fn parse_segment_name(name: &str) -> Option<Revision> {
    name.strip_suffix(SEGMENT_SUFFIX)?.parse().ok().map(Revision)
}

pub(crate) fn is_spare(name: &str) -> bool {
    name.starts_with(SPARE_PREFIX)
}

impl Catalog {
    pub(crate) fn new(files: Files) -> Catalog {
        Catalog(Mutex::new(files))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in segments that a checkpoint at `floor` would make unnecessary.
    pub(crate) fn dead_bytes(&self, floor: Revision) -> u64 {
        let files = self.lock();
        let dead = files.segments.iter().zip(files.segments.iter().skip(1));
        dead.take_while(|(_, next)| next.first.0 <= floor.0 + 1).map(|(segment, _)| segment.bytes).sum()
    }

    /// Retires every segment that is wholly at or below the snapshot.
    pub(crate) fn retire(&self, disk: &dyn Disk, snapshot: Revision) -> io::Result<()> {
        let mut files = self.lock();
        files.snapshot = snapshot;
        while files.segments.get(1).is_some_and(|next| next.first.0 <= snapshot.0 + 1) {
            let Some(retired) = files.segments.front().map(SegmentFile::name) else { break };
            if files.spares.len() < MAX_SPARES {
                let spare = format!("{SPARE_PREFIX}{retired}");
                disk.rename(&retired, &spare)?;
                files.spares.push(spare);
            } else {
                disk.remove(&retired)?;
            }
            files.segments.pop_front();
        }
        // A spare may be overwritten from here on: its old name must not come back after a crash.
        disk.sync_names()
    }
}

/// Why a frame could not be made durable.
#[derive(Clone, Debug)]
pub(crate) enum LogFailure {
    Full { file: PathBuf, os_error: Option<i32> },
    Broken(String),
}

impl From<LogFailure> for Error {
    fn from(failure: LogFailure) -> Error {
        match failure {
            LogFailure::Full { file, os_error } => {
                let source =
                    os_error.map_or_else(|| io::ErrorKind::StorageFull.into(), io::Error::from_raw_os_error);
                Error::Full { file, source }
            }
            LogFailure::Broken(problem) => Error::Broken(problem),
        }
    }
}

/// The end of the log, where frames are added.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    catalog: Arc<Catalog>,
    /// The salt of the latest segment, or the initial seed.
    salt: u64,
    segment_bytes: u64,
    current: Option<Segment>,
    broken: Option<LogFailure>,
}

/// The segment that is written to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) first: Revision,
    pub(crate) salt: u64,
    pub(crate) file: Box<dyn DiskFile>,
    /// The offset of the next frame.
    pub(crate) end: u64,
    /// The length of the file.
    pub(crate) filled: u64,
}

impl Log {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        catalog: Arc<Catalog>,
        current: Option<Segment>,
        segment_bytes: u64,
        seed: u64,
    ) -> Log {
        Log { disk, catalog, salt: seed, segment_bytes, current, broken: None }
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Whether a segment is open.
    pub(crate) fn is_begun(&self) -> bool {
        self.current.is_some()
    }

    /// Makes `frame` durable. After [`LogFailure::Full`] nothing has happened and a later frame may
    /// fit; after [`LogFailure::Broken`] it is unknown, and nothing is taken any more.
    pub(crate) fn append(&mut self, frame: &mut FrameBuilder) -> Result<(), LogFailure> {
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        let written = self.write(frame);
        if let Err(failure @ LogFailure::Broken(_)) = &written {
            self.broken = Some(failure.clone());
        }
        written
    }

    fn write(&mut self, frame: &mut FrameBuilder) -> Result<(), LogFailure> {
        let size = frame.size() as u64;
        let segment = match &mut self.current {
            Some(segment) if segment.end + size <= self.segment_bytes => segment,
            _ => {
                let first = frame.first();
                let segment =
                    self.roll(first).map_err(|error| classify(&*self.disk, &segment_name(first), &error))?;
                self.catalog.lock().segments.push_back(SegmentFile { first, bytes: 0 });
                self.current.insert(segment)
            }
        };
        let name = segment_name(segment.first);
        let failed = |error: io::Error| classify(&*self.disk, &name, &error);
        match segment.fill(segment.end + size, self.segment_bytes) {
            // Without space to fill ahead there may still be space for this frame.
            Err(error) if is_full(&error) => {}
            filled => filled.map_err(failed)?,
        }
        segment.file.write_at(segment.end, frame.seal(segment.salt)).map_err(failed)?;
        // After a failed sync the system may have dropped the unwritten pages: a second sync would wrongly
        // succeed.
        segment.file.sync().map_err(|error| LogFailure::Broken(format!("cannot sync {name}: {error}")))?;
        segment.end += size;
        segment.filled = segment.filled.max(segment.end);
        if let Some(file) = self.catalog.lock().segments.back_mut() {
            file.bytes = segment.end;
        }
        Ok(())
    }

    /// Begins a new segment. It gets its name when its header is durable.
    fn roll(&mut self, first: Revision) -> io::Result<Segment> {
        let spare = self.catalog.lock().spares.pop();
        if let Some(spare) = &spare {
            self.disk.rename(spare, TEMPORARY_SEGMENT)?;
        }
        let file = self.disk.write(TEMPORARY_SEGMENT)?;
        let filled = self.disk.size(TEMPORARY_SEGMENT)?;
        self.salt = next_salt(self.salt);
        let salt = self.salt;
        file.write_at(0, &segment_header(salt, first))?;
        file.sync()?;
        self.disk.rename(TEMPORARY_SEGMENT, &segment_name(first))?;
        self.disk.sync_names()?;
        let end = SEGMENT_HEADER_BYTES as u64;
        Ok(Segment { first, salt, file, end, filled: filled.max(end) })
    }
}

impl Segment {
    /// Extends the file to at least `length` bytes, and a bit more up to its final length.
    fn fill(&mut self, length: u64, final_length: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        if self.filled >= length {
            return Ok(());
        }
        let target = length.next_multiple_of(FILL_BYTES).min(final_length).max(length);
        while self.filled < target {
            let step = (target - self.filled).min(ZEROS.len() as u64);
            self.file.write_at(self.filled, &ZEROS[..step as usize])?;
            self.filled += step;
        }
        Ok(())
    }
}

fn classify(disk: &dyn Disk, name: &str, error: &io::Error) -> LogFailure {
    if is_full(error) {
        LogFailure::Full { file: disk.path(name), os_error: error.raw_os_error() }
    } else {
        LogFailure::Broken(format!("cannot write {name}: {error}"))
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Any sequence without repeats will do: salts distinguish segments, they are no secret.
fn next_salt(salt: u64) -> u64 {
    salt.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}
