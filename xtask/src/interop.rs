//! `cargo xtask interop [PROGRAM …]`: builds official programs of Kubernetes from `interop/go.mod` into
//! `target/tools`, CoreDNS from `interop/coredns`, and a program of ours that measures controller-runtime.

use crate::tools;
use anyhow::{Context, Result, bail};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

/// A program and its Go package.
struct Program {
    name: &'static str,
    /// Of Kubernetes, or a folder of `interop/`.
    package: &'static str,
    /// Whether it is the test binary of the package.
    is_suite: bool,
    /// The folder with the `go.mod` that names its version.
    module: &'static str,
}

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package, is_suite: false, module: MODULE }
}

const MODULE: &str = "interop";

/// Measures controller-runtime for `cargo xtask bench operator`.
pub(crate) const PEER: &str = "controller-runtime-peer";

const PROGRAMS: [Program; 16] = [
    program("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    program("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    program("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
    // Programs in the image that the official tests use most.
    program("agnhost", "k8s.io/kubernetes/test/images/agnhost"),
    program("nnp", "k8s.io/kubernetes/test/images/nonewprivs"),
    Program { module: "interop/coredns", ..program("coredns", "github.com/coredns/coredns") },
    // Of ours: for an image of the tests.
    Program { module: "interop/coredns", ..program("dig", "./dig") },
    program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    program("etcd", "go.etcd.io/etcd/server/v3"),
    program("helm", "helm.sh/helm/v3/cmd/helm"),
    program(PEER, "./peer"),
    // Runs a suite in several processes.
    program("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo"),
    Program { is_suite: true, ..program("e2e.test", "k8s.io/kubernetes/test/e2e") },
];

/// How often a build prints its progress.
const PROGRESS: Duration = Duration::from_secs(10);

pub(crate) fn run(names: &[&str]) -> Result<ExitCode> {
    let all: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
    for path in build(if names.is_empty() { &all } else { names })? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The first of these programs that has not been built.
pub(crate) fn first_missing<'a>(names: &[&'a str]) -> Result<Option<&'a str>> {
    let folder = tools::root()?.join("target/tools/bin");
    Ok(names.iter().copied().find(|name| !folder.join(name).is_file()))
}

/// Builds programs that are missing or older than the versions in `interop/go.mod`; returns their paths.
pub(crate) fn build(names: &[&str]) -> Result<Vec<PathBuf>> {
    let root = tools::root()?;
    let folder = root.join("target").join("tools").join("bin");
    fs::create_dir_all(&folder)?;
    let mut built = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Some(program) = PROGRAMS.iter().find(|program| program.name == *name) else {
            let known: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
            bail!("no program is called {name}; there are: {}", known.join(", "));
        };
        let (path, module) = (folder.join(name), root.join(program.module));
        if !program.is_current(&path, &module)? {
            println!("building {name} ({} of {}) from {}", at + 1, names.len(), program.package);
            program.build(&module, &path)?;
        }
        built.push(path);
    }
    Ok(built)
}

/// The `go` command, in the module with the versions.
pub(crate) fn go() -> Result<Command> {
    go_in(&tools::root()?.join(MODULE))
}

fn go_in(module: &Path) -> Result<Command> {
    if tools::on_path("go").is_none() {
        bail!(
            "there is no Go on this machine, and the official programs of Kubernetes are built with it: install Go \
             1.26 or newer and put `go` on PATH"
        );
    }
    let mut command = Command::new("go");
    command.current_dir(module).env("CGO_ENABLED", "0");
    Ok(command)
}

impl Program {
    /// Whether the binary is newer than the file with its version, and than its source if that is ours.
    fn is_current(&self, path: &Path, module: &Path) -> Result<bool> {
        let Ok(built) = fs::metadata(path) else { return Ok(false) };
        let mut sources = vec![module.join("go.sum")];
        if self.package.starts_with("./") {
            for file in fs::read_dir(module.join(self.package))? {
                sources.push(file?.path());
            }
        }
        for source in sources {
            let written = fs::metadata(&source).with_context(|| source.display().to_string())?.modified()?;
            if built.modified()? <= written {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn build(&self, module: &Path, path: &Path) -> Result<()> {
        let version = kubernetes_version(&tools::root()?.join(MODULE))?;
        let minor = version.split('.').nth(1).unwrap_or_default();
        let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
        let flags = [set("gitVersion", &version), set("gitMajor", "1"), set("gitMinor", minor)].join(" ");
        let mut command = go_in(module)?;
        match self.is_suite {
            // Vet would read every dependency of a suite that is not ours.
            true => command.args(["test", "-c", "-vet=off"]),
            false => command.arg("build"),
        };
        // A temporary name until it is complete.
        let unfinished = path.with_extension("unfinished");
        command.args(["-v", "-trimpath", "-ldflags", &format!("-s -w {flags}"), "-o"]).arg(&unfinished);
        let begun = Instant::now();
        let mut child = command.arg(self.package).stderr(Stdio::piped()).spawn()?;
        let (mut packages, mut reported, mut last) = (0, begun, Vec::new());
        // Go prints each package that it compiles, and its errors.
        for line in BufReader::new(child.stderr.take().context("what go says")?).lines() {
            packages += 1;
            last.push(line?);
            last.drain(..last.len().saturating_sub(20));
            if reported.elapsed() > PROGRESS {
                println!("  {packages} packages, {} s", begun.elapsed().as_secs());
                reported = Instant::now();
            }
        }
        if !child.wait()?.success() {
            bail!("{} cannot be built:\n{}", self.name, last.join("\n"));
        }
        fs::rename(unfinished, path)?;
        println!("  done in {} s", begun.elapsed().as_secs());
        Ok(())
    }
}

/// The version of Kubernetes that `go.mod` names.
fn kubernetes_version(module: &Path) -> Result<String> {
    let text = fs::read_to_string(module.join("go.mod")).context("interop/go.mod")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    line.map(str::to_owned).context("interop/go.mod names no version of k8s.io/kubernetes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_named_by_the_module_that_it_is_built_from() {
        let root = tools::root().unwrap();
        for program in PROGRAMS.iter().filter(|program| !program.package.starts_with("./")) {
            let module = root.join(program.module);
            let files = ["go.mod", "suites.go"].map(|name| fs::read_to_string(module.join(name)));
            let is_named =
                |text: &str| text.split_whitespace().any(|word| word.trim_matches('"') == program.package);
            assert!(files.iter().flatten().any(|text| is_named(text)), "{}", program.name);
        }
    }
}
