//! `cargo xtask bench …`: measurements, each next to a peer or a limit in the same run.

use crate::{interop, size, tools};
use anyhow::{Result, bail};
use std::process::{Command, ExitCode};

/// Measures a subject, or only some parts of it.
pub(crate) fn run(subject: &str, parts: &[&str]) -> Result<ExitCode> {
    if subject == "size" {
        return size::run(parts);
    }
    let mut command = Command::new(tools::cargo());
    if subject == "growth" {
        command.args(["test", "--release", "--package", "server", "--test", "growth", "--"]);
        command.args(["--test-threads=1", "--nocapture"]).args(parts);
        return Ok(if command.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    // The server under attack is mostly another binary; the slower build would gain nothing.
    command.args(["bench", "--profile", if subject == "attacks" { "release" } else { "dist" }]);
    match subject {
        "store" => command.args(["--package", "store", "--features", "etcd", "--bench", "store"]),
        "server" => command.args(["--package", "setpoint", "--bench", "server"]),
        "definitions" => command.args(["--package", "setpoint", "--bench", "definitions"]),
        "admission" => command.args(["--package", "server", "--bench", "admission"]),
        "attacks" => command.args(["--package", "setpoint", "--bench", "attacks"]),
        "operator" => command.args(["--package", "setpoint", "--bench", "operator"]),
        "controllers" => command.args(["--package", "setpoint", "--bench", "controllers"]),
        "forks" => command.args(["--package", "setpoint", "--bench", "forks"]),
        other => {
            bail!(
                "nothing to measure is called {other}; there are: store, server, definitions, admission, attacks, \
                 operator, controllers, forks, growth, size"
            )
        }
    };
    if subject == "store" {
        match tools::etcd() {
            Ok(etcd) => drop(command.env("SETPOINT_ETCD", etcd)),
            Err(error) => println!("without etcd: {error:#}"),
        }
    }
    if subject == "operator" {
        match interop::build(&[interop::PEER]) {
            Ok(built) => drop(command.env("SETPOINT_PEER", &built[0])),
            Err(error) => println!("without controller-runtime: {error:#}"),
        }
    }
    if subject == "controllers" {
        match interop::build(&["kube-controller-manager", "kube-scheduler"]) {
            Ok(built) => drop(command.env("SETPOINT_TOOLS", built[0].with_file_name(""))),
            Err(error) => println!("without kube-controller-manager: {error:#}"),
        }
    }
    if !parts.is_empty() {
        command.arg("--").args(parts);
    }
    let status = command.status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
