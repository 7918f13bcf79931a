//! `setpoint node`: commands about real nodes.

mod join;

use anyhow::Result;
use world::World;

/// Let real machines run pods of the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint node join                   a script that makes a machine a node
  setpoint node join --dir worker-1    its files")]
pub(crate) struct NodeOptions {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NodeCommand {
    Join(Box<join::JoinOptions>),
}

pub(crate) async fn run(world: &World, options: NodeOptions) -> Result<()> {
    match options.command {
        NodeCommand::Join(options) => Ok(join::run(world, &options).await?),
    }
}
