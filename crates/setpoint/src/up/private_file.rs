//! Writes files that only their owner may read: keys, certificates and kubeconfigs.

use anyhow::{Context, Result, bail};
use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Temporary names to try; one is taken only if a process was killed while writing it.
const ATTEMPTS: u32 = 100;

/// Replaces a file atomically.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let put = || -> Result<()> {
        let (mut file, fresh) = create(path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| fs::rename(&fresh, path));
        if let Err(error) = renamed {
            drop(fs::remove_file(&fresh));
            return Err(error.into());
        }
        // The rename, too, must survive a crash.
        fs::File::open(directory(path))?.sync_all()?;
        Ok(())
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}

/// The content of a file; `None` only if there is no such file, as opposed to an unreadable one.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// A new file next to `path`, never an existing one.
fn create(path: &Path) -> Result<(fs::File, PathBuf)> {
    let name = path.file_name().unwrap_or_default();
    for attempt in 0..ATTEMPTS {
        let mut fresh = OsString::from(".");
        fresh.push(name);
        fresh.push(format!(".{}-{attempt}", std::process::id()));
        let fresh = directory(path).join(fresh);
        let mut options = fs::OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&fresh) {
            Ok(file) => return Ok((file, fresh)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("too many files of writes that were cut short lie beside it")
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn private_files_are_replaced_and_readable_only_by_their_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("admin.key");
        // Another user has prepared the old file, and the former name of the temporary one.
        let trap = scratch.path().join("trap");
        fs::write(&trap, "untouched").unwrap();
        symlink(&trap, scratch.path().join("admin.part")).unwrap();
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&trap).unwrap(), "untouched");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 3, "nothing is left over");
    }

    #[test]
    fn an_unreadable_file_is_an_error_not_a_missing_file() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(read(&scratch.path().join("none")).unwrap(), None);
        assert!(read(scratch.path()).is_err(), "a directory");
        fs::write(scratch.path().join("bytes"), [0xff]).unwrap();
        assert!(read(&scratch.path().join("bytes")).is_err(), "no text");
    }
}
