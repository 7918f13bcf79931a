//! `setpoint completion`: prints what makes a shell complete commands and flags.

use anyhow::{Context, Result};
use clap_complete::{Shell, generate};
use std::io::Write;

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(setpoint completion bash)
  setpoint completion zsh > \"${fpath[1]}/_setpoint\"
  setpoint completion fish > ~/.config/fish/completions/setpoint.fish")]
pub(crate) struct CompletionOptions {
    /// bash, zsh or fish
    shell: Shell,
}

pub(crate) fn run(options: &CompletionOptions, mut command: clap::Command) -> Result<()> {
    let mut text = Vec::new();
    generate(options.shell, &mut command, "setpoint", &mut text);
    std::io::stdout().write_all(&text).context("cannot write to standard output")
}
