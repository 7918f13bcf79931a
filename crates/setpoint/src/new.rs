//! `setpoint new`: makes the project of an operator that builds and passes its tests at once.

use crate::{
    scaffold::{
        files::ProjectFiles,
        go, names,
        project::{Language, MARKER, Project},
        rust::{self, Framework},
    },
    up::print_line,
};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Start the project of an operator.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint new shop --domain acme.io
  setpoint new shop --domain acme.io --lang go --module github.com/acme/shop
  setpoint new shop --domain acme.io --framework https://git.example.com/setpoint")]
pub(crate) struct NewOptions {
    /// Name of the operator, as `shop`
    name: String,
    /// The end of its API groups, as `acme.io`
    #[arg(long, value_name = "DOMAIN")]
    domain: String,
    /// The language that it is written in
    #[arg(long, value_enum, default_value = "rust")]
    lang: Language,
    /// The folder to make; by default the name
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Rust: where the framework is, a checkout of Setpoint or the URL of its git repository; by default the checkout that
    /// this program was built from
    #[arg(long, value_name = "PATH|URL")]
    framework: Option<String>,
    /// Go: the path of the module; by default DOMAIN/NAME
    #[arg(long, value_name = "PATH")]
    module: Option<String>,
    /// Overwrite files that have been edited
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: &NewOptions) -> Result<()> {
    names::check_project(&options.name)?;
    names::check_domain(&options.domain)?;
    let root = options.path.clone().unwrap_or_else(|| PathBuf::from(&options.name));
    let module = match options.lang {
        Language::Rust => String::new(),
        Language::Go => go::module_path(options.module.as_deref(), &options.domain, &options.name)?,
    };
    let project = match existing(&root)? {
        Some(project) if project.name != options.name || project.domain != options.domain => bail!(
            "{} is the project {:?} of {:?} already: take another folder with --path",
            root.display(),
            project.name,
            project.domain
        ),
        Some(project) if project.lang != options.lang => {
            bail!("{} is a project in another language: take another folder with --path", root.display())
        }
        Some(project) => project,
        None => Project {
            root: root.clone(),
            name: options.name.clone(),
            domain: options.domain.clone(),
            lang: options.lang,
            module,
            apis: Vec::new(),
        },
    };
    let files = ProjectFiles::new(&root, options.force);
    match options.lang {
        Language::Rust => {
            let framework = Framework::choose(options.framework.as_deref())?;
            rust::write_project(&project, &framework, &files)?;
        }
        Language::Go => go::write_project(&project, &files)?,
    }
    project.format();
    // Last: a folder with this file is a complete project.
    files.write(MARKER, &project.yaml())?;
    print_line(&format!(
        "
next: cd {}
      setpoint create api --group cache --version v1alpha1 --kind Redis --controller
      setpoint test
      setpoint run",
        root.display()
    ));
    Ok(())
}

/// The project in a folder, if there is one.
fn existing(root: &Path) -> Result<Option<Project>> {
    if root.is_file() {
        bail!("{} is a file: take another folder with --path", root.display());
    }
    if root.join(MARKER).is_file() {
        return Project::read(root).map(Some);
    }
    Ok(None)
}
