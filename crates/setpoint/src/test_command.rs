//! `setpoint test`: runs the tests of a project.

use crate::scaffold::{project::Project, toolchain::absent};
use anyhow::Result;

/// Run the tests of a project.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint test
  setpoint test redis_controller        only tests with this word in their names
  setpoint test redis -- --nocapture    Rust: the rest is for the tests themselves
  setpoint test -run TestRedis          Go")]
pub(crate) struct TestOptions {
    /// What follows `cargo test`, or for Go `go test`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(options: &TestOptions) -> Result<()> {
    let project = Project::find()?;
    let mut command = project.test_command(&options.arguments);
    let status = command.status().map_err(|error| absent(&command, error))?;
    anyhow::ensure!(status.success(), "tests have failed: see above");
    Ok(())
}
