//! The limit of the disk: records appended to a file, with one sync for all that have queued up.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};
use store::Bytes;
use tokio::sync::{mpsc, oneshot};
use world::World;

/// Records that wait while the disk is busy.
const QUEUE: usize = 1024;

type Record = (Bytes, oneshot::Sender<()>);

/// A file with a thread that writes it; the thread ends with the last handle.
#[derive(Clone, Debug)]
pub(crate) struct BareFile(mpsc::Sender<Record>);

impl BareFile {
    pub(crate) fn open(world: &World, path: &Path) -> io::Result<BareFile> {
        let mut file = File::options().create(true).append(true).open(path)?;
        let (sender, queue) = mpsc::channel(QUEUE);
        world.thread("bare file", move || drop(write(&mut file, queue)))?;
        Ok(BareFile(sender))
    }

    /// Resolves when the record is on disk; `None` if writing failed.
    pub(crate) async fn append(&self, record: Bytes) -> Option<()> {
        let (answer, answered) = oneshot::channel();
        self.0.send((record, answer)).await.ok()?;
        answered.await.ok()
    }
}

fn write(file: &mut File, mut queue: mpsc::Receiver<Record>) -> io::Result<()> {
    let (mut buffer, mut waiting) = (Vec::new(), Vec::new());
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        while let Some((record, answer)) = next {
            buffer.extend_from_slice(&record);
            waiting.push(answer);
            next = queue.try_recv().ok();
        }
        file.write_all(&buffer)?;
        file.sync_data()?;
        buffer.clear();
        // A caller that has gone does not need the answer.
        for answer in waiting.drain(..) {
            let _ = answer.send(());
        }
    }
    Ok(())
}
