//! Snapshot files: all entries of one revision, as checkpoints of the embedded store and as backups.
//!
//! ```text
//! header   "SETPOINT SNAP 1\n"  revision:8  check:4
//! block    length:4  check:4  entry*                     as many as needed
//! entry    revision:8  key length:4  value length:4  key  value
//! end      0:4  check:4  number of entries:8
//! ```
//! Numbers are little-endian; a check is the CRC-32 of what follows it (in the header, of what precedes it).
//! Checks cover every byte of the file, so damage is never read as data.

use crate::{Corruption, Entry, Error, Range, Revision, tree::Tree};
use bytes::Bytes;
use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

const MAGIC: &[u8; 16] = b"SETPOINT SNAP 1\n";
const HEADER_BYTES: usize = MAGIC.len() + 8 + 4;
/// A block is closed when it has reached this size.
const BLOCK_BYTES: usize = 256 * 1024;
/// A full block plus one entry: anything longer is damage, and must not be allocated.
const MAX_BLOCK_BYTES: usize = BLOCK_BYTES + 2 * crate::MAX_BATCH_BYTES;
/// Entries fetched from the tree at once.
const PAGE: usize = 4096;

/// Writes all entries of `revision` to `out`, page by page.
pub(crate) struct SnapshotWriter<W> {
    out: W,
    block: Vec<u8>,
    entries: u64,
}

impl<W: Write> SnapshotWriter<W> {
    pub(crate) fn new(mut out: W, revision: Revision) -> io::Result<SnapshotWriter<W>> {
        let mut header = MAGIC.to_vec();
        header.extend(revision.0.to_le_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        out.write_all(&header)?;
        Ok(SnapshotWriter { out, block: Vec::with_capacity(BLOCK_BYTES), entries: 0 })
    }

    pub(crate) fn push(&mut self, entry: &Entry) -> io::Result<()> {
        self.block.extend(entry.revision.0.to_le_bytes());
        self.block.extend((entry.key.len() as u32).to_le_bytes());
        self.block.extend((entry.value.len() as u32).to_le_bytes());
        self.block.extend(&entry.key);
        self.block.extend(&entry.value);
        self.entries += 1;
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.out.write_all(&crc32fast::hash(&self.block).to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        let count = self.entries.to_le_bytes();
        self.out.write_all(&0u32.to_le_bytes())?;
        self.out.write_all(&crc32fast::hash(&count).to_le_bytes())?;
        self.out.write_all(&count)?;
        Ok(self.out)
    }
}

/// Reads a snapshot entry by entry; stops at the first damage.
pub(crate) struct SnapshotReader<R> {
    input: R,
    path: PathBuf,
    offset: u64,
    pub(crate) revision: Revision,
    block: Vec<u8>,
    /// How much of the current block has been read.
    taken: usize,
    entries: u64,
    done: bool,
}

impl<R: Read> SnapshotReader<R> {
    pub(crate) fn new(mut input: R, path: PathBuf) -> Result<SnapshotReader<R>, Error> {
        let mut header = [0; HEADER_BYTES];
        read_exact(&mut input, &mut header, &path, 0)?;
        let (content, check) = header.split_at(HEADER_BYTES - 4);
        if !content.starts_with(MAGIC) || check != crc32fast::hash(content).to_le_bytes() {
            let problem = "this is not a snapshot, or its header was changed".to_owned();
            return Err(Corruption { file: path, offset: 0, problem }.into());
        }
        let revision = Revision(number(&content[MAGIC.len()..]));
        let offset = HEADER_BYTES as u64;
        Ok(SnapshotReader {
            input,
            path,
            offset,
            revision,
            block: Vec::new(),
            taken: 0,
            entries: 0,
            done: false,
        })
    }

    fn corrupt(&self, problem: &str) -> Error {
        Corruption { file: self.path.clone(), offset: self.offset, problem: problem.to_owned() }.into()
    }

    /// Loads the next block; false at the end.
    fn refill(&mut self) -> Result<bool, Error> {
        self.offset += self.block.len() as u64;
        let mut head = [0; 8];
        read_exact(&mut self.input, &mut head, &self.path, self.offset)?;
        let length = number(&head[..4]) as usize;
        let check = number(&head[4..]) as u32;
        if length > MAX_BLOCK_BYTES {
            return Err(self.corrupt("a block of impossible length"));
        }
        self.block.resize(if length == 0 { 8 } else { length }, 0);
        self.taken = 0;
        read_exact(&mut self.input, &mut self.block, &self.path, self.offset)?;
        if crc32fast::hash(&self.block) != check {
            return Err(self.corrupt("a block does not match its check"));
        }
        self.offset += head.len() as u64;
        if length == 0 {
            if number(&self.block) != self.entries {
                return Err(self.corrupt("entries are missing"));
            }
            if self.input.read(&mut head).map_err(|source| self.io(source))? != 0 {
                return Err(self.corrupt("there is something behind the end"));
            }
        }
        Ok(length != 0)
    }

    fn io(&self, source: io::Error) -> Error {
        Error::Io { doing: "read", path: self.path.clone(), source }
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Error> {
        let end = self.taken.checked_add(length).filter(|end| *end <= self.block.len());
        let Some(end) = end else { return Err(self.corrupt("an entry reaches over its block")) };
        let start = std::mem::replace(&mut self.taken, end);
        Ok(&self.block[start..end])
    }

    fn entry(&mut self) -> Result<Option<Entry>, Error> {
        if self.taken == self.block.len() && !self.refill()? {
            return Ok(None);
        }
        let revision = Revision(number(self.take(8)?));
        let key_length = number(self.take(4)?) as usize;
        let value_length = number(self.take(4)?) as usize;
        let key = Bytes::copy_from_slice(self.take(key_length)?);
        let value = Bytes::copy_from_slice(self.take(value_length)?);
        self.entries += 1;
        Ok(Some(Entry { key, value, revision }))
    }
}

impl<R: Read> Iterator for SnapshotReader<R> {
    type Item = Result<Entry, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.entry().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let length = bytes.len().min(8);
    wide[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(wide)
}

fn read_exact(input: &mut impl Read, buffer: &mut [u8], path: &Path, offset: u64) -> Result<(), Error> {
    input.read_exact(buffer).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => {
            let problem = "the file ends too early".to_owned();
            Corruption { file: path.to_owned(), offset, problem }.into()
        }
        _ => Error::Io { doing: "read", path: path.to_owned(), source },
    })
}

/// Writes every entry of `tree` at a revision, which the caller has pinned.
pub(crate) fn write_tree<W: Write>(tree: &Arc<Tree>, revision: Revision, out: W) -> io::Result<W> {
    let mut writer = SnapshotWriter::new(out, revision)?;
    let mut range = Range::all().at(revision).limit(PAGE);
    loop {
        let page = tree.range(&range).map_err(io::Error::other)?;
        for entry in &page.entries {
            writer.push(entry)?;
        }
        match page.entries.last() {
            Some(last) if page.more => range = range.after(&last.key),
            _ => return writer.finish(),
        }
    }
}

/// Writes the latest revision of `tree` to a new file.
pub(crate) fn back_up(tree: &Arc<Tree>, path: &Path) -> Result<Revision, Error> {
    let pin = tree.pin(None)?;
    BackupFile::write(path, |out| write_tree(tree, pin.revision, out))?;
    Ok(pin.revision)
}

/// A backup under a temporary name; removed if it is not completed.
pub(crate) struct BackupFile {
    temporary: PathBuf,
}

type BackupOut = io::BufWriter<File>;

impl BackupFile {
    /// Writes `content` to a new file at `path`, which gets its name when it is complete and durable.
    pub(crate) fn write(
        path: &Path,
        content: impl FnOnce(BackupOut) -> io::Result<BackupOut>,
    ) -> Result<(), Error> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".part");
        let part = BackupFile { temporary: PathBuf::from(temporary) };
        part.fill(path, content).map_err(|source| Error::Io {
            doing: "write the backup",
            path: path.to_owned(),
            source,
        })
    }

    fn fill(&self, path: &Path, content: impl FnOnce(BackupOut) -> io::Result<BackupOut>) -> io::Result<()> {
        if path.exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a backup never replaces a file"));
        }
        let out = content(io::BufWriter::with_capacity(1 << 20, File::create(&self.temporary)?))?;
        out.into_inner()?.sync_all()?;
        fs::rename(&self.temporary, path)
    }
}

impl Drop for BackupFile {
    fn drop(&mut self) {
        // It was renamed, or it is incomplete.
        drop(fs::remove_file(&self.temporary));
    }
}

/// Opens a backup and reads its entries lazily.
pub(crate) fn read_file(path: &Path) -> Result<(Revision, SnapshotReader<BufReader<File>>), Error> {
    let file =
        File::open(path).map_err(|source| Error::Io { doing: "open", path: path.to_owned(), source })?;
    let reader = SnapshotReader::new(BufReader::with_capacity(1 << 20, file), path.to_owned())?;
    Ok((reader.revision, reader))
}
