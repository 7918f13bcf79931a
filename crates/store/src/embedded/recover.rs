//! Reads a directory: the last checkpoint, and every valid frame after it.

use super::{
    Progress, Torn,
    checkpoint::{parse_snapshot_name, snapshot_name},
    disk::Disk,
    frame::{Frame, SEGMENT_HEADER_BYTES, parse_segment_header},
    log::{Catalog, Files, Segment, SegmentFile, is_spare, parse_segment_name, segment_name},
};
use crate::{
    Batch, Condition, Corruption, Error, Limits, Revision, Write, snapshot::SnapshotReader, tree::Tree,
};
use std::{
    collections::VecDeque,
    io::{self, BufReader, Read},
    sync::Arc,
};

pub(crate) struct Recovered {
    pub(crate) tree: Arc<Tree>,
    pub(crate) catalog: Arc<Catalog>,
    /// The last segment, to continue with.
    pub(crate) current: Option<Segment>,
    pub(crate) torn: Option<Torn>,
}

pub(crate) fn recover(
    disk: &dyn Disk,
    limits: Limits,
    report: &mut dyn FnMut(Progress),
) -> Result<Recovered, Error> {
    let found = Found::look(disk)?;
    let mut progress = Meter { report, progress: Progress { done: 0, total: found.bytes } };
    progress.advance(0);
    let tree = found.load_snapshot(disk, limits, &mut progress)?;
    let mut current = None;
    let mut torn = None;
    let mut files = Files { segments: VecDeque::new(), spares: found.spares, snapshot: tree.revision() };
    let mut segments = found.segments.into_iter().peekable();
    while let Some(first) = segments.next() {
        let next = segments.peek().copied();
        if next.is_some_and(|next| next.0 <= files.snapshot.0 + 1) {
            // Left over from a checkpoint that was interrupted while cleaning up.
            io(disk, "remove", &segment_name(first), disk.remove(&segment_name(first)))?;
            continue;
        }
        let replayed = Replay { disk, first, next, tree: &tree }.run(&mut progress)?;
        files.segments.push_back(SegmentFile { first, bytes: replayed.segment.end });
        (current, torn) = (Some(replayed.segment), replayed.torn);
    }
    progress.finish();
    let catalog = Arc::new(Catalog::new(files));
    Ok(Recovered { tree: Arc::new(tree), catalog, current, torn })
}

/// The files of a store, by their names.
struct Found {
    snapshot: Option<Revision>,
    segments: Vec<Revision>,
    spares: Vec<String>,
    bytes: u64,
}

impl Found {
    fn look(disk: &dyn Disk) -> Result<Found, Error> {
        let mut found = Found { snapshot: None, segments: Vec::new(), spares: Vec::new(), bytes: 0 };
        let mut snapshots = Vec::new();
        let mut names = io(disk, "list", "", disk.names())?;
        names.sort();
        for name in names {
            if let Some(revision) = parse_snapshot_name(&name) {
                snapshots.push(revision);
            } else if let Some(first) = parse_segment_name(&name) {
                found.segments.push(first);
                found.bytes += io(disk, "look at", &name, disk.size(&name))?;
            } else if is_spare(&name) {
                found.spares.push(name);
            } else if name.ends_with(".tmp") {
                io(disk, "remove", &name, disk.remove(&name))?;
            }
        }
        found.snapshot = snapshots.pop();
        for old in snapshots {
            let name = snapshot_name(old);
            io(disk, "remove", &name, disk.remove(&name))?;
        }
        if let Some(revision) = found.snapshot {
            let name = snapshot_name(revision);
            found.bytes += io(disk, "look at", &name, disk.size(&name))?;
        }
        Ok(found)
    }

    fn load_snapshot(
        &self,
        disk: &dyn Disk,
        limits: Limits,
        progress: &mut Meter<'_>,
    ) -> Result<Tree, Error> {
        let Some(revision) = self.snapshot else { return Ok(Tree::new(limits)) };
        let name = snapshot_name(revision);
        let file = io(disk, "open", &name, disk.read(&name))?;
        let reader = SnapshotReader::new(BufReader::with_capacity(1 << 20, file), disk.path(&name))?;
        if reader.revision != revision {
            let problem = format!("it holds revision {}, not the one in its name", reader.revision);
            return Err(Corruption { file: disk.path(&name), offset: 0, problem }.into());
        }
        let entries = reader.inspect(|entry| {
            if let Ok(entry) = entry {
                progress.advance((entry.key.len() + entry.value.len()) as u64);
            }
        });
        Tree::load(limits, revision, entries)
    }
}

/// One segment to replay into the tree.
struct Replay<'a> {
    disk: &'a dyn Disk,
    first: Revision,
    /// The first revision of the next segment; `None` for the last segment.
    next: Option<Revision>,
    tree: &'a Tree,
}

struct Replayed {
    segment: Segment,
    torn: Option<Torn>,
}

impl Replay<'_> {
    fn run(&self, progress: &mut Meter<'_>) -> Result<Replayed, Error> {
        let name = segment_name(self.first);
        let mut bytes = Vec::new();
        let read = self.disk.read(&name).and_then(|mut file| file.read_to_end(&mut bytes));
        io(self.disk, "read", &name, read)?;
        let salt = match parse_segment_header(&bytes) {
            Some((salt, first)) if first == self.first => salt,
            _ => return Err(self.damaged(0, "the header is not that of this segment")),
        };
        if self.first > self.tree.revision().next() {
            let problem = format!("revisions from {} on are missing before it", self.tree.revision().next());
            return Err(self.damaged(0, &problem));
        }
        let mut end = SEGMENT_HEADER_BYTES;
        let mut expected = self.first;
        while let Some(frame) = Frame::at(&bytes, end, salt) {
            expected = self.apply(&frame, expected, end)?;
            end += frame.size();
            progress.advance(frame.size() as u64);
        }
        self.check_end(&bytes, end, salt, expected)?;
        progress.advance((bytes.len() - end) as u64);
        let torn_bytes = bytes[end..].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let looks_torn = self.next.is_none() && bytes[end..].starts_with(b"SPF1");
        let torn = looks_torn.then(|| Torn {
            file: self.disk.path(&name),
            offset: end as u64,
            bytes: torn_bytes as u64,
        });
        let file = io(self.disk, "open", &name, self.disk.write(&name))?;
        let segment = Segment { first: self.first, salt, file, end: end as u64, filled: bytes.len() as u64 };
        Ok(Replayed { segment, torn })
    }

    /// Applies the commits that the tree does not have yet; returns the next revision.
    fn apply(&self, frame: &Frame<'_>, expected: Revision, offset: usize) -> Result<Revision, Error> {
        if frame.first != expected {
            let problem = format!("a frame begins with revision {} instead of {expected}", frame.first);
            return Err(self.damaged(offset, &problem));
        }
        let commits = frame.commits().ok_or_else(|| self.damaged(offset, "a frame of unknown content"))?;
        let mut revision = expected;
        for commit in commits {
            if revision > self.tree.revision() {
                let write = |(key, value)| Write { key, value, condition: Condition::Anything };
                let batch = commit.into_iter().map(write).fold(Batch::new(), Batch::with);
                let applied = self.tree.replay(&batch)?;
                if applied != revision {
                    return Err(self.damaged(offset, "a commit that changes nothing"));
                }
            }
            revision = revision.next();
        }
        Ok(revision)
    }

    /// Distinguishes the end of the log from damage: a valid frame after the last good one, or a next segment
    /// that does not follow, proves that something between was lost.
    fn check_end(&self, bytes: &[u8], end: usize, salt: u64, expected: Revision) -> Result<(), Error> {
        match self.next {
            Some(next) if next == expected => Ok(()),
            Some(_) => Err(self.damaged(end, "a frame does not match its check")),
            None if Frame::any_from(bytes, end + 1, salt) => {
                Err(self.damaged(end, "a frame does not match its check, and whole ones follow it"))
            }
            None => Ok(()),
        }
    }

    fn damaged(&self, offset: usize, problem: &str) -> Error {
        let file = self.disk.path(&segment_name(self.first));
        Corruption { file, offset: offset as u64, problem: problem.to_owned() }.into()
    }
}

/// Counts bytes, and reports from time to time.
struct Meter<'a> {
    report: &'a mut dyn FnMut(Progress),
    progress: Progress,
}

impl Meter<'_> {
    fn advance(&mut self, bytes: u64) {
        /// A few dozen reports per second of reading.
        const STEP: u64 = 8 << 20;
        let before = self.progress.done / STEP;
        self.progress.done = (self.progress.done + bytes).min(self.progress.total);
        if bytes == 0 || self.progress.done / STEP != before {
            (self.report)(self.progress);
        }
    }

    fn finish(&mut self) {
        self.progress.done = self.progress.total;
        (self.report)(self.progress);
    }
}

fn io<T>(disk: &dyn Disk, doing: &'static str, name: &str, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|source| Error::Io { doing, path: disk.path(name), source })
}
