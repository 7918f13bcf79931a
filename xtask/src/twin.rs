//! `cargo xtask twin [--controllers] [--minutes N] [--seed S]`: compares the real kube-apiserver with Setpoint on
//! generated requests, or the real control loops with Setpoint's own on generated workloads.

use crate::{interop, tools};
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let root = tools::root()?;
    let names = match arguments.contains(&"--controllers") {
        true => ["kube-controller-manager", "kube-scheduler"],
        false => ["kube-apiserver", "etcd"],
    };
    let programs = interop::build(&names)?;
    let folder = programs.first().and_then(|path| path.parent()).context("the folder of the programs")?;
    let mut build = Command::new(tools::cargo());
    build.args(["build", "--quiet", "--release", "--package", "setpoint", "--package", "twin"]);
    let status = build.current_dir(&root).status().with_context(|| format!("cannot run {build:?}"))?;
    if !status.success() {
        return Ok(ExitCode::FAILURE);
    }
    let mut twin = Command::new(root.join("target/release/twin"));
    twin.arg("--tools").arg(folder).arg("--setpoint").arg(root.join("target/release/setpoint"));
    let status = twin.args(arguments).current_dir(&root).status();
    let status = status.with_context(|| format!("cannot run {twin:?}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
