//! `cargo xtask bench …`: measurements, each beside a peer or a limit from the same run.

use crate::tools;
use anyhow::{Result, bail};
use std::process::{Command, ExitCode};

pub(crate) fn run(subject: &str) -> Result<ExitCode> {
    let mut command = Command::new(tools::cargo());
    match subject {
        "store" => command.args(["bench", "--package", "store", "--bench", "store"]),
        "server" => command.args(["bench", "--package", "setpoint", "--bench", "server"]),
        other => bail!("nothing to measure is called {other}; there are: store, server"),
    };
    if subject == "store" {
        match tools::etcd() {
            Ok(etcd) => drop(command.env("SETPOINT_ETCD", etcd)),
            Err(error) => println!("without etcd: {error:#}"),
        }
    }
    let status = command.status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
