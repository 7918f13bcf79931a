//! A disk in memory that crashes, fills up and fails on demand.
//!
//! It guarantees no more than a real one: a crash may lose unsynced bytes, in sectors and in any order, and
//! unsynced names, from the last one back.

use super::disk::{Disk, DiskFile};
use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Every state of the names since the last `sync_names`.
    since: Vec<BTreeMap<String, usize>>,
    files: Vec<Content>,
    /// Calls until the machine stops; `None` for never.
    fuse: Option<u64>,
    room: Option<u64>,
    fail_next_sync: bool,
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl SimulatedDisk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Stops the machine after this many calls.
    pub(super) fn crash_after(&self, calls: u64) {
        self.lock().fuse = Some(calls);
    }

    /// The disk after a restart; `draw` decides what the crash has left.
    pub(super) fn reboot(&self, mut draw: impl FnMut(u64) -> u64) -> SimulatedDisk {
        let state = self.lock();
        let kept = draw(state.since.len() as u64 + 1) as usize;
        let names = if kept == 0 { &state.durable_names } else { &state.since[kept - 1] };
        let files = state.files.iter().map(|content| content.survive(&mut draw)).collect();
        let (names, durable_names) = (names.clone(), names.clone());
        SimulatedDisk(Arc::new(Mutex::new(State { names, durable_names, files, ..State::default() })))
    }

    pub(super) fn set_room(&self, bytes: Option<u64>) {
        self.lock().room = bytes;
    }

    pub(super) fn fail_next_sync(&self) {
        self.lock().fail_next_sync = true;
    }

    pub(super) fn flip(&self, name: &str, offset: usize, mask: u8) {
        let mut state = self.lock();
        let file = state.names[name];
        state.files[file].bytes[offset] ^= mask;
        state.files[file].durable = state.files[file].bytes.clone();
    }

    /// Replaces the content of a file.
    pub(super) fn set_bytes(&self, name: &str, bytes: &[u8]) {
        let mut state = self.lock();
        let file = state.names[name];
        state.files[file] = Content { bytes: bytes.to_vec(), durable: bytes.to_vec(), unsynced: Vec::new() };
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        let state = self.lock();
        state.files[state.names[name]].bytes.clone()
    }
}

impl Content {
    fn survive(&self, draw: &mut impl FnMut(u64) -> u64) -> Content {
        let mut bytes = self.durable.clone();
        for (offset, written) in &self.unsynced {
            for (index, sector) in written.chunks(SECTOR).enumerate() {
                if draw(2) == 0 {
                    put(&mut bytes, offset + index * SECTOR, sector);
                }
            }
        }
        Content { durable: bytes.clone(), bytes, unsynced: Vec::new() }
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    let end = offset + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(written);
}

impl State {
    fn tick(&mut self) -> io::Result<()> {
        match &mut self.fuse {
            Some(0) => Err(io::Error::other("the machine has stopped")),
            Some(calls) => {
                *calls -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&mut self, change: impl FnOnce(&mut BTreeMap<String, usize>)) {
        change(&mut self.names);
        self.since.push(self.names.clone());
    }
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.tick()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        let state = self.lock();
        Ok(state.files[state.find(name)?].bytes.len() as u64)
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn io::Read + Send>> {
        let state = self.lock();
        Ok(Box::new(io::Cursor::new(state.files[state.find(name)?].bytes.clone())))
    }

    fn write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        state.tick()?;
        let file = match state.find(name) {
            Ok(file) => file,
            Err(_) => {
                let file = state.files.len();
                state.files.push(Content::default());
                state.rename(|names| {
                    names.insert(name.to_owned(), file);
                });
                file
            }
        };
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.tick()?;
        let file = state.find(from)?;
        state.rename(|names| {
            names.remove(from);
            names.insert(to.to_owned(), file);
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.tick()?;
        state.find(name)?;
        state.rename(|names| {
            names.remove(name);
        });
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.tick()?;
        state.durable_names = state.names.clone();
        state.since.clear();
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }
}

#[derive(Debug)]
struct OpenFile {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskFile for OpenFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.tick()?;
        let end = offset + bytes.len() as u64;
        let growth = end.saturating_sub(state.files[self.file].bytes.len() as u64);
        if let Some(room) = &mut state.room {
            *room = room.checked_sub(growth).ok_or(io::ErrorKind::StorageFull)?;
        }
        let content = &mut state.files[self.file];
        put(&mut content.bytes, offset as usize, bytes);
        content.unsynced.push((offset as usize, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.tick()?;
        if std::mem::take(&mut state.fail_next_sync) {
            return Err(io::Error::other("the disk has a scratch"));
        }
        let content = &mut state.files[self.file];
        for (offset, written) in content.unsynced.drain(..) {
            put(&mut content.durable, offset, &written);
        }
        Ok(())
    }
}
