//! `setpoint install` and `setpoint uninstall`: the definitions of a project in a cluster.

use crate::{
    scaffold::{cluster_objects, project::Project},
    up::print_line,
};
use anyhow::{Result, bail};
use std::path::PathBuf;
use world::World;

/// The examples of `setpoint uninstall`, which has the same options.
pub(crate) const UNINSTALL_EXAMPLES: &str = "\
Examples:
  setpoint uninstall                                    the cluster of your kubeconfig
  setpoint uninstall --kubeconfig .setpoint/kubeconfig  that of `setpoint up` in this folder";

/// Put the custom resource definitions (CRDs) of the project into a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint install                                    the cluster of your kubeconfig
  setpoint install --kubeconfig .setpoint/kubeconfig  that of `setpoint up` in this folder")]
pub(crate) struct InstallOptions {
    /// The cluster; by default that of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) async fn run(world: &World, options: &InstallOptions) -> Result<()> {
    let project = Project::find()?;
    let client = cluster_objects::client(options.kubeconfig.as_deref()).await?;
    let definitions = project.definitions()?;
    if definitions.is_empty() {
        bail!("the project has no kinds yet: add one with `setpoint create api`");
    }
    cluster_objects::install(world, &client, &definitions).await?;
    for definition in &definitions {
        print_line(&format!("installed {}", definition.name()));
    }
    Ok(())
}

pub(crate) async fn remove(options: &InstallOptions) -> Result<()> {
    let project = Project::find()?;
    let client = cluster_objects::client(options.kubeconfig.as_deref()).await?;
    let definitions = project.definitions()?;
    let deleted = cluster_objects::uninstall(&client, &definitions).await?;
    for definition in &definitions {
        let is_deleted = deleted.iter().any(|name| name == definition.name());
        print_line(&format!("{} {}", if is_deleted { "deleted" } else { "absent " }, definition.name()));
    }
    Ok(())
}
