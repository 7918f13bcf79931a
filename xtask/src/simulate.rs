//! `cargo xtask simulate [--seeds N] [--from S]`: random workloads under random faults, one story for each seed.

use crate::tools;
use anyhow::{Context, Result, bail};
use std::process::{Command, ExitCode};

/// The test that plays the stories; `cargo test` plays a few of them.
const TEST: &str = "simulation::workloads_under_faults_end_as_their_specs_say";

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let mut command = Command::new(tools::cargo());
    command.args(["test", "--release", "--package", "controllers", "--test", "controllers"]);
    command.args(["--", "--exact", TEST, "--nocapture"]).env("SETPOINT_SEEDS", "10000");
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        let variable = match *option {
            "--seeds" => "SETPOINT_SEEDS",
            "--from" => "SETPOINT_FIRST_SEED",
            other => bail!("unknown option {other}: there are --seeds N and --from S"),
        };
        command.env(variable, arguments.next().with_context(|| format!("{option} needs a number"))?);
    }
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
