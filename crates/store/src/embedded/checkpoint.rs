//! Checkpoints: write the entries at the floor to a snapshot, then drop the log segments below it. The rest
//! of the log holds the past that memory keeps.

use super::{
    disk::{Disk, Sequential},
    log::{Catalog, parse_segment_name},
};
use crate::{
    Error, Revision,
    snapshot::{self, SnapshotReader, SnapshotWriter},
    tree::Tree,
};
use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
};

const TEMPORARY_SNAPSHOT: &str = "snapshot.tmp";

pub(crate) fn snapshot_name(revision: Revision) -> String {
    format!("snapshot-{:020}", revision.0)
}

pub(crate) fn parse_snapshot_name(name: &str) -> Option<Revision> {
    name.strip_prefix("snapshot-")?.parse().ok().map(Revision)
}

pub(crate) fn checkpoint(tree: &Arc<Tree>, disk: &dyn Disk, catalog: &Catalog) -> Result<Revision, Error> {
    let pin = tree.pin_floor();
    write(disk, pin.revision, |out| snapshot::write_tree(tree, pin.revision, out))?;
    let previous = catalog.lock().snapshot;
    if previous != pin.revision && previous != Revision(0) {
        let name = snapshot_name(previous);
        disk.remove(&name).map_err(|source| Error::Io { doing: "remove", path: disk.path(&name), source })?;
    }
    let retired = catalog.retire(disk, pin.revision);
    retired.map_err(|source| Error::Io { doing: "clean up", path: disk.path(""), source })?;
    Ok(pin.revision)
}

/// Makes the entries of a backup the content of a directory that holds no store.
pub(crate) fn install<R: io::Read>(disk: &dyn Disk, entries: SnapshotReader<R>) -> Result<Revision, Error> {
    let names = disk.names().map_err(|source| Error::Io { doing: "list", path: disk.path(""), source })?;
    if names.iter().any(|name| parse_snapshot_name(name).is_some() || parse_segment_name(name).is_some()) {
        let source = io::Error::new(io::ErrorKind::AlreadyExists, "it already holds a store");
        return Err(Error::Io { doing: "restore into", path: disk.path(""), source });
    }
    let revision = entries.revision;
    write(disk, revision, |out| {
        let mut writer = SnapshotWriter::new(out, revision)?;
        for entry in entries {
            writer.push(&entry.map_err(io::Error::other)?)?;
        }
        writer.finish()
    })?;
    Ok(revision)
}

type Out<'a> = BufWriter<Sequential<'a>>;

/// Writes a snapshot to a temporary file, and renames it when it is complete and durable.
fn write(
    disk: &dyn Disk,
    revision: Revision,
    content: impl FnOnce(Out<'_>) -> io::Result<Out<'_>>,
) -> Result<(), Error> {
    let io = |source| Error::Io { doing: "write", path: disk.path(TEMPORARY_SNAPSHOT), source };
    match disk.remove(TEMPORARY_SNAPSHOT) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let file = disk.write(TEMPORARY_SNAPSHOT).map_err(io)?;
    let out = BufWriter::with_capacity(1 << 20, Sequential { file: &*file, offset: 0 });
    content(out).and_then(|mut out| out.flush()).map_err(io)?;
    file.sync().map_err(io)?;
    disk.rename(TEMPORARY_SNAPSHOT, &snapshot_name(revision)).map_err(io)?;
    disk.sync_names().map_err(io)
}
