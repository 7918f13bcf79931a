//! `setpoint generate`: writes the manifests and the Helm chart of an operator from its code.

use crate::{
    scaffold::{
        files::ProjectFiles,
        generated, go,
        manifests::{self, CHART_IMAGE, CHART_NAMESPACE},
        project::{Language, Project},
        rust,
        toolchain::succeeds,
    },
    up::print_line,
};
use anyhow::{Result, bail};

/// Write config/ and charts/ of a project from its code.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint generate
  setpoint generate --image registry.example.com/shop:1.0")]
pub(crate) struct GenerateOptions {
    /// The container image in the manifests; by default NAME:latest
    #[arg(long)]
    image: Option<String>,
    /// Overwrite files that have been edited
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: &GenerateOptions) -> Result<()> {
    let project = Project::find()?;
    if project.lang == Language::Go {
        if project.apis.is_empty() {
            bail!("the project has no kinds yet: add one with `setpoint create api`");
        }
        // The markers in its code say what should be in config/; controller-gen reads them.
        let mut command = std::process::Command::new("make");
        if !succeeds(command.args(["generate", "manifests"]).current_dir(&project.root))? {
            bail!("`make generate manifests` has failed: see above");
        }
        if let Some(image) = &options.image {
            go::set_image(image, &ProjectFiles::new(&project.root, options.force))?;
        }
        print_line("\nnext: kubectl apply --server-side -k config/default");
        if project.apis.iter().any(|api| api.webhook) {
            print_line("      (webhooks need cert-manager: https://cert-manager.io/docs/installation/)");
        }
        return Ok(());
    }
    let image = options.image.clone().unwrap_or_else(|| project.image());
    let documents = project.manifests(&project.namespace(), &image)?;
    let mut texts = manifests::kustomize_files(&project, &documents);
    let chart = project.manifests(CHART_NAMESPACE, CHART_IMAGE)?;
    texts.extend(manifests::chart_files(&project, &image, &chart));
    let files = ProjectFiles::new(&project.root, options.force);
    generated::write(&files, &texts, options.force)?;
    rust::write_packaging(&project, &files)?;
    let (name, namespace) = (&project.name, project.namespace());
    print_line(&format!(
        "
next: kubectl apply -k config/default
  or: helm install {name} charts/{name} --namespace {namespace} --create-namespace"
    ));
    Ok(())
}
