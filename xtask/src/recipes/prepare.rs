//! Gets the packages of a recipe, and makes the command that runs its tests.

use super::Kind;
use crate::{interop, tools};
use anyhow::{Context, Result, bail};
use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// Where a recipe is tested.
pub(super) struct Site {
    /// Our own program.
    pub(super) setpoint: PathBuf,
    /// The folder of the recipe.
    pub(super) source: PathBuf,
    /// The folder for its packages and builds.
    pub(super) work: PathBuf,
}

/// The file that says which packages a Python recipe needs.
const REQUIREMENTS: &str = "requirements.txt";

/// The command that runs the tests; its packages are there then.
pub(super) fn prepare(kind: Kind, site: &Site) -> Result<Command> {
    fs::create_dir_all(&site.work)?;
    match kind {
        Kind::Pytest => python(site, &["-m", "pytest", "-q", "-p", "no:cacheprovider"]),
        Kind::PythonScript => python(site, &["test.py"]),
        Kind::Npm => npm(site),
        Kind::Go => go(site),
        Kind::Maven => {
            copy(&site.source, &site.work)?;
            let mut command = site.command("mvn", &site.work);
            command.args(["--batch-mode", "--no-transfer-progress", "test"]);
            Ok(command)
        }
        Kind::Cargo => {
            let mut command = site.command(tools::cargo(), &site.source);
            command.args(["test", "--locked", "--target-dir"]).arg(&site.work);
            Ok(command)
        }
        Kind::Script(programs) => {
            let mut command = site.command("bash", &site.source);
            command.arg("test.sh");
            for (name, path) in programs.iter().zip(interop::build(programs)?) {
                command.env(name.to_uppercase(), path);
            }
            Ok(command)
        }
    }
}

impl Site {
    /// A command in a folder that finds our program in the variable SETPOINT.
    fn command(&self, program: impl AsRef<OsStr>, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).env("SETPOINT", &self.setpoint);
        command
    }
}

/// A Python environment with the packages of the recipe.
fn python(site: &Site, arguments: &[&str]) -> Result<Command> {
    let environment = site.work.join("environment");
    let python = environment.join("bin/python");
    // Written only when all packages are in: an incomplete environment is made again.
    let (done, wanted) =
        (environment.join(REQUIREMENTS), fs::read_to_string(site.source.join(REQUIREMENTS))?);
    if fs::read_to_string(&done).ok().as_ref() != Some(&wanted) {
        finish(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut install = site.command(&python, &site.source);
        finish(install.args(["-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS]))?;
        fs::write(done, wanted)?;
    }
    let mut command = site.command(python, &site.source);
    command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// A copy of the recipe with its packages.
fn npm(site: &Site) -> Result<Command> {
    copy(&site.source, &site.work)?;
    let (done, wanted) = (site.work.join("installed.json"), site.work.join("package.json"));
    let wanted = fs::read_to_string(wanted)?;
    if fs::read_to_string(&done).ok().as_ref() != Some(&wanted) {
        finish(site.command("npm", &site.work).args([
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ]))?;
        fs::write(done, wanted)?;
    }
    let mut command = site.command("npm", &site.work);
    command.args(["test", "--loglevel=error"]);
    Ok(command)
}

fn go(site: &Site) -> Result<Command> {
    finish(site.command("go", &site.source).args(["mod", "download"]))?;
    let mut command = site.command("go", &site.source);
    command.args(["test", "-count=1", "-vet=off", "./..."]).env("CGO_ENABLED", "0");
    command.env("KUBEBUILDER_ASSETS", assets(site)?);
    Ok(command)
}

/// The programs that envtest starts, as links to ours, which acts by the name it is called with.
fn assets(site: &Site) -> Result<PathBuf> {
    let folder = site.work.join("assets");
    fs::create_dir_all(&folder)?;
    for name in ["kube-apiserver", "etcd", "kubectl"] {
        let link = folder.join(name);
        drop(fs::remove_file(&link));
        symlink(&site.setpoint, &link).with_context(|| format!("cannot write {}", link.display()))?;
    }
    Ok(folder)
}

/// Copies the files of a folder over those of another.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), &target)?),
        }
    }
    Ok(())
}

/// Runs a command that must succeed.
fn finish(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}", said.trim().lines().last().unwrap_or("no reason given"));
    }
    Ok(())
}
