//! Files that a test leaves for people: where they lie, and their names.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
};

/// The directory for such files: `tmp` of cargo's target directory, or that of the system.
pub(crate) fn directory() -> io::Result<PathBuf> {
    let program = env::current_exe().unwrap_or_default();
    let directory = in_target(&program).unwrap_or_else(env::temp_dir).join("testkit");
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// `target/tmp` for `target/debug/deps/name-hash`. Cargo names it to integration tests only, and only while
/// it builds them.
fn in_target(program: &Path) -> Option<PathBuf> {
    let deps = program.parent().filter(|parent| parent.ends_with("deps"))?;
    Some(deps.parent()?.parent()?.join("tmp"))
}

/// The name of the test that runs on this thread, as part of a file's name.
pub(crate) fn test_name() -> String {
    thread::current().name().unwrap_or("test").replace("::", ".")
}

/// A new, empty file that only its owner can read. It replaces one that was there.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_in_the_target_directory() {
        let found = |program: &str| in_target(Path::new(program));
        assert_eq!(found("/a/target/debug/deps/it-1f"), Some(PathBuf::from("/a/target/tmp")));
        assert_eq!(found("/tmp/rustdoctest1/it"), None);
        assert_eq!(test_name(), "scratch.tests.files_lie_in_the_target_directory");
    }
}
