//! `setpoint assets`: a folder with the programs that test environments start.

use crate::up::print_line;
use anyhow::{Context, Result, bail};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The file beside the programs that says which are copies of ours, where links cannot be made.
const MARKER: &str = ".setpoint-assets";

/// Write the programs that controller-runtime's envtest starts: kube-apiserver, etcd and kubectl.
///
/// They are links to this binary, which acts by the name it is called with: an API server in memory that needs no etcd.
/// kubectl is the one on PATH if there is one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  eval \"$(setpoint assets)\" && go test ./...
  setpoint assets /opt/envtest")]
pub(crate) struct AssetOptions {
    /// The folder
    #[arg(default_value = ".setpoint/assets")]
    dir: PathBuf,
}

pub(crate) fn run(options: &AssetOptions) -> Result<()> {
    let binary = std::env::current_exe().and_then(fs::canonicalize).context("cannot find this binary")?;
    let dir =
        std::path::absolute(&options.dir).with_context(|| format!("cannot use {}", options.dir.display()))?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let real = real_kubectl(std::env::split_paths(&paths), &binary, &dir);
    write(&dir, &binary, real.as_deref())?;
    print_line(&format!("export KUBEBUILDER_ASSETS={}", quoted(&dir.display().to_string())));
    Ok(())
}

/// A path as a shell reads it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// The kubectl on PATH, unless it is this binary or in the folder itself.
fn real_kubectl(paths: impl Iterator<Item = PathBuf>, binary: &Path, dir: &Path) -> Option<PathBuf> {
    let mut found =
        paths.filter(|path| !path.as_os_str().is_empty() && path != dir).map(|path| path.join("kubectl"));
    found.find(|path| {
        let is_program =
            fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        is_program && fs::canonicalize(path).is_ok_and(|target| target != binary)
    })
}

fn write(dir: &Path, binary: &Path, kubectl: Option<&Path>) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let marker = dir.join(MARKER);
    let copies = fs::read_to_string(&marker).unwrap_or_default();
    let assets = [("kube-apiserver", binary), ("etcd", binary), ("kubectl", kubectl.unwrap_or(binary))];
    // Nothing is replaced unless all may be.
    for (name, _) in assets {
        check(&dir.join(name), copies.lines().any(|line| line == name))?;
    }
    let mut copied = Vec::new();
    for (name, target) in assets {
        let path = dir.join(name);
        if fs::read_link(&path).is_ok_and(|current| current == target) {
            continue;
        }
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        if std::os::unix::fs::symlink(target, &path).is_err() {
            fs::copy(target, &path).with_context(|| format!("cannot write {}", path.display()))?;
            copied.push(name);
        }
    }
    if !copied.is_empty() {
        fs::write(&marker, copied.join("\n"))
            .with_context(|| format!("cannot write {}", marker.display()))?;
    }
    Ok(())
}

/// Whether a file may be replaced: a link is, and a copy that the marker names.
fn check(path: &Path, is_copy: bool) -> Result<()> {
    let Ok(file) = path.symlink_metadata() else { return Ok(()) };
    if file.is_symlink() && points_to_ours(path) || is_copy {
        return Ok(());
    }
    bail!(
        "{} is not from `setpoint assets`: move it away, or choose another folder with `setpoint assets DIR`",
        path.display()
    )
}

/// A link to a setpoint binary or to a kubectl, also to one that is gone.
fn points_to_ours(path: &Path) -> bool {
    let target = fs::read_link(path).ok();
    let name = target.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("setpoint") || name == "kubectl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_again_and_files_of_others_are_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("assets");
        let binary = scratch.path().join("setpoint");
        fs::write(&binary, "").unwrap();
        let bin = scratch.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let kubectl = bin.join("kubectl");
        fs::write(&kubectl, "").unwrap();
        let paths = || [dir.clone(), bin.clone()].into_iter();
        assert_eq!(real_kubectl(paths(), &binary, &dir), None, "a file that cannot be run is none");
        fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
        let real = real_kubectl(paths(), &binary, &dir);
        assert_eq!(real.as_ref(), Some(&kubectl));
        for real in [None, real.as_deref(), None] {
            write(&dir, &binary, real).unwrap();
            assert_eq!(fs::read_link(dir.join("kube-apiserver")).unwrap(), binary);
            assert_eq!(fs::read_link(dir.join("kubectl")).unwrap(), real.unwrap_or(&binary));
        }
        fs::remove_file(dir.join("etcd")).unwrap();
        fs::write(dir.join("etcd"), "another program").unwrap();
        let said = write(&dir, &binary, None).unwrap_err().to_string();
        assert!(said.contains("etcd is not from `setpoint assets`: move it away"), "{said}");
        assert_eq!(fs::read_to_string(dir.join("etcd")).unwrap(), "another program");
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted("/a/b-1.2"), "/a/b-1.2");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
