//! Builds, tests and runs a project with the tools of its language.

use super::{
    manifests::{self, Document},
    project::{Language, Project},
};
use anyhow::{Context, Result, bail};
use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where `setpoint run` puts what it makes: not a part of the project.
pub(crate) const SCRATCH: &str = ".setpoint";
/// Folders and files whose change makes a new build necessary.
const RUST_SOURCES: [&str; 3] = ["src", "Cargo.toml", "Cargo.lock"];
const GO_SOURCES: [&str; 5] = ["api", "cmd", "internal", "config/crd", "go.mod"];
/// Go: where the definitions are.
const GO_DEFINITIONS: &str = "config/crd/bases";

impl Project {
    fn command(&self, program: impl Into<OsString>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.into());
        command.args(arguments).current_dir(&self.root);
        command
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
    }

    /// Formats the code: how long a line is depends on the names in it. Without a formatter the code stays as it is.
    pub(crate) fn format(&self) {
        let mut command = match self.lang {
            Language::Rust => self.command(
                std::env::var_os("RUSTFMT").unwrap_or_else(|| "rustfmt".into()),
                &["--edition", "2024", "src/main.rs", "src/lib.rs", "tests/operator/main.rs"],
            ),
            Language::Go => self.command("gofmt", &["-w", "."]),
        };
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = quiet.status() {
            tracing::debug!(%error, "the code is not formatted");
        }
    }

    /// Builds the operator.
    pub(crate) fn build_command(&self) -> Command {
        match self.lang {
            Language::Rust => self.cargo(&["build"]),
            Language::Go => self.command("go", &["build", "-mod=mod", "-o", ".setpoint/manager", "./cmd"]),
        }
    }

    /// Runs the operator that was built. Cargo becomes the program, so a signal to the process reaches it.
    pub(crate) fn run_command(&self) -> Command {
        match self.lang {
            Language::Rust => self.cargo(&["run", "--quiet"]),
            Language::Go => {
                let program = self.root.join(SCRATCH).join("manager");
                self.command(program, &["--metrics-bind-address=0", "--health-probe-bind-address=0"])
            }
        }
    }

    /// Runs the tests.
    pub(crate) fn test_command(&self, arguments: &[String]) -> Command {
        let mut command = match self.lang {
            Language::Rust => self.cargo(&["test"]),
            Language::Go => self.command("make", &["test"]),
        };
        // The Makefile starts the control plane with this program, which need not be in PATH.
        if let (Language::Go, None, Ok(program)) =
            (self.lang, std::env::var_os("SETPOINT"), std::env::current_exe())
        {
            command.env("SETPOINT", program);
        }
        match self.lang {
            Language::Rust => command.args(arguments),
            Language::Go if arguments.is_empty() => &mut command,
            Language::Go => command.arg(format!("ARGS={}", arguments.join(" "))),
        };
        command
    }

    /// Rust: what the operator prints for `manifests`, as one document each.
    pub(crate) fn manifests(&self, namespace: &str, image: &str) -> Result<Vec<Document>> {
        let mut command = self.cargo(&["run", "--quiet", "--", "manifests"]);
        command.env("OPERATOR_NAMESPACE", namespace).env("OPERATOR_IMAGE", image);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| absent(&command, error))?;
        if !output.status.success() {
            bail!(
                "the operator does not build or does not print its manifests: see above, or try `cargo run -- manifests`"
            );
        }
        manifests::documents(&String::from_utf8(output.stdout).context("the manifests are no text")?)
    }

    /// The definitions of the project's kinds.
    pub(crate) fn definitions(&self) -> Result<Vec<Document>> {
        let mut documents = match self.lang {
            Language::Rust => self.manifests(&self.namespace(), &self.image())?,
            Language::Go => manifests::in_folder(&self.root.join(GO_DEFINITIONS))?,
        };
        documents.retain(|document| document.kind() == "CustomResourceDefinition");
        Ok(documents)
    }

    /// The objects of `config/samples`.
    pub(crate) fn samples(&self) -> Result<Vec<Document>> {
        let mut samples = manifests::in_folder(&self.root.join("config/samples"))?;
        samples.retain(|document| document.kind() != "Kustomization");
        Ok(samples)
    }

    /// Folders and files whose change makes a new build necessary.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        let sources = match self.lang {
            Language::Rust => &RUST_SOURCES[..],
            Language::Go => &GO_SOURCES[..],
        };
        sources.iter().map(|path| self.root.join(path)).collect()
    }
}

/// Runs a program to its end, with its output shown; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.stdin(Stdio::null()).status().map_err(|error| absent(command, error))?;
    Ok(status.success())
}

/// The error of a program that does not start.
pub(crate) fn absent(command: &Command, error: io::Error) -> anyhow::Error {
    let program = Path::new(command.get_program()).display().to_string();
    let advice = match error.kind() {
        io::ErrorKind::NotFound => ": install it, or add its folder to PATH",
        _ => "",
    };
    anyhow::Error::new(error).context(format!("cannot run {program:?}{advice}"))
}

/// The newest change of files below these paths, and how many files there are: both tell that something is different.
pub(crate) fn last_change(paths: &[PathBuf]) -> (Option<std::time::SystemTime>, usize) {
    let mut newest = (None, 0);
    let mut open: Vec<PathBuf> = paths.to_vec();
    while let Some(path) = open.pop() {
        // A file that goes meanwhile is a change, which the next look sees.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(entries.map(|entry| entry.path()));
            continue;
        }
        newest.0 = newest.0.max(metadata.modified().ok());
        newest.1 += 1;
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_changed_and_removed_files_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().to_owned(), folder.path().join("absent")];
        let empty = last_change(&paths);
        let file = folder.path().join("a/b.rs");
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(&file, "one").unwrap();
        let written = last_change(&paths);
        assert_ne!(empty, written);
        let later = written.0.unwrap() + std::time::Duration::from_secs(1);
        fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        let changed = last_change(&paths);
        assert_ne!(written, changed);
        fs::remove_file(&file).unwrap();
        assert_ne!(changed, last_change(&paths));
    }
}
