//! The commands that talk to a cluster: which there are, and how each is started.

pub(crate) mod age;
pub(crate) mod api;
pub(crate) mod catalog;
pub(crate) mod columns;
pub(crate) mod connect;
pub(crate) mod failure;
pub(crate) mod family;
pub(crate) mod follow;
pub(crate) mod json;
pub(crate) mod manifest;
pub(crate) mod output;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod template;
pub(crate) mod yaml;

use crate::{apply, delete, events, get, pod_logs, tree, wait, why};
use anyhow::Result;
use failure::ClientError;
use std::io::Write;
use world::World;

/// Commands with kubectl's names, flags and words, and two of our own.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ClientCommand {
    Get(Box<get::GetOptions>),
    /// Watch objects: the same as get --watch.
    #[command(after_help = get::WATCH_EXAMPLES)]
    Watch(Box<get::GetOptions>),
    Apply(Box<apply::ApplyOptions>),
    Delete(Box<delete::DeleteOptions>),
    Wait(Box<wait::WaitOptions>),
    Logs(Box<pod_logs::PodLogOptions>),
    Events(Box<events::EventOptions>),
    Why(Box<why::WhyOptions>),
    Tree(Box<tree::TreeOptions>),
}

pub(crate) async fn run(world: &World, command: ClientCommand) -> Result<()> {
    match command {
        ClientCommand::Get(options) => get::run(world, &options).await?,
        ClientCommand::Watch(options) => get::watch(world, *options).await?,
        ClientCommand::Apply(options) => apply::run(&options).await?,
        ClientCommand::Delete(options) => delete::run(world, &options).await?,
        ClientCommand::Wait(options) => wait::run(world, &options).await?,
        ClientCommand::Logs(options) => pod_logs::run(world, &options).await?,
        ClientCommand::Events(options) => events::run(world, &options).await?,
        ClientCommand::Why(options) => why::run(world, &options).await?,
        ClientCommand::Tree(options) => tree::run(world, &options).await?,
    }
    Ok(())
}

/// Writes to standard output at once.
pub(crate) fn print(text: &str) -> Result<(), ClientError> {
    print_bytes(text.as_bytes())
}

pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), ClientError> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|_| ClientError::OutputClosed)
}

/// Writes a line to standard error.
pub(crate) fn note(line: &str) {
    // A closed standard error is no failure of the command.
    drop(writeln!(std::io::stderr(), "{line}"));
}
