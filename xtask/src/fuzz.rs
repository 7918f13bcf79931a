//! `cargo xtask fuzz TARGET [--minutes N]`: searches for an input that breaks a target, guided by code
//! coverage.

use crate::tools;
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

/// A counter in every branch, for `crates/fuzz/src/reach.rs`: LLVM passes that stable Rust can enable.
const COUNTERS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Ccodegen-units=1";

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let mut command = Command::new(tools::cargo());
    // With `--target`, build scripts and macros are built without counters.
    command.args(["run", "--quiet", "--package", "fuzz", "--profile", "fuzz", "--target", &host()?]);
    command.args(["--target-dir", "target/fuzz", "--"]).args(arguments);
    command.env("RUSTFLAGS", COUNTERS).current_dir(tools::root()?);
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The target triple of this machine.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what its host is")?.to_owned())
}
