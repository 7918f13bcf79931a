//! `setpoint create api`: adds a kind to a project, or a version, a controller or webhooks to a kind.

use crate::{
    scaffold::{
        files::ProjectFiles,
        go, names,
        project::{Language, MARKER, Project, ProjectApi},
        rust::Addition,
    },
    up::print_line,
};
use anyhow::{Result, bail};

/// Add to a project.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint create api --group cache --version v1alpha1 --kind Redis --controller")]
pub(crate) struct CreateOptions {
    #[command(subcommand)]
    what: CreateTarget,
}

#[derive(Debug, clap::Subcommand)]
enum CreateTarget {
    Api(ApiOptions),
}

/// Add a kind: its type, its sample and its tests; or a further version of a kind, with its conversion.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint create api --group cache --version v1alpha1 --kind Redis --controller --webhook
  setpoint create api --group cache --version v1 --kind Redis  a further version, with its conversion
  setpoint create api --group infra --version v1 --kind Zone --namespaced=false")]
struct ApiOptions {
    /// First part of the API group; the domain of the project follows
    #[arg(long)]
    group: String,
    /// Version, as `v1alpha1`
    #[arg(long)]
    version: String,
    /// Name of the type in CamelCase, as `Redis`
    #[arg(long)]
    kind: String,
    /// The word in URLs; by default the English plural of the kind
    #[arg(long)]
    plural: Option<String>,
    /// Whether objects are in namespaces; by default they are
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    namespaced: Option<bool>,
    /// Add a controller
    #[arg(long)]
    controller: bool,
    /// Add webhooks: defaults and rules that need code
    #[arg(long)]
    webhook: bool,
    /// Overwrite files that have been edited
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: &CreateOptions) -> Result<()> {
    let CreateTarget::Api(options) = &options.what;
    names::check_group(&options.group)?;
    names::check_version(&options.version)?;
    names::check_kind(&options.kind)?;
    options.plural.iter().try_for_each(|plural| names::check_plural(plural))?;
    let mut project = Project::find()?;
    let api = options.merged(&project)?;
    let files = ProjectFiles::new(&project.root, options.force);
    match project.lang {
        Language::Rust => {
            let (version, controller, webhook) = (&options.version, options.controller, options.webhook);
            Addition { project: &project, api: &api, version, controller, webhook }.write(&files)?;
        }
        Language::Go => {
            let wanted = (options.controller, options.webhook);
            go::write_api(&project, &api, &options.version, wanted, &files)?;
        }
    }
    project.format();
    match project.apis.iter_mut().find(|old| old.group == api.group && old.kind == api.kind) {
        Some(old) => *old = api,
        None => project.apis.push(api),
    }
    let yaml = project.yaml();
    if files.read(MARKER)?.as_deref() != Some(&yaml) {
        files.overwrite(MARKER, &yaml)?;
    }
    print_line("\nnext: setpoint test");
    Ok(())
}

impl ApiOptions {
    /// What the project has of the kind already, with what is added now.
    fn merged(&self, project: &Project) -> Result<ProjectApi> {
        let ApiOptions { group, version, kind, .. } = self;
        let module = names::module(kind);
        if let Some(other) =
            project.apis.iter().find(|it| names::module(&it.kind) == module && it.group != *group)
        {
            bail!(
                "the project has a kind {:?} in the group {:?} already, and both would be in the module `{module}`: take \
                 another word, as `--kind {}{kind}`",
                other.kind,
                other.group,
                capitalized(group)
            );
        }
        let new = ProjectApi {
            group: group.clone(),
            kind: kind.clone(),
            plural: self.plural.clone().unwrap_or_else(|| names::plural(kind)),
            namespaced: self.namespaced.unwrap_or(true),
            controller: self.controller,
            webhook: self.webhook,
            versions: vec![version.clone()],
        };
        let Some(old) = project.api(group, kind) else { return Ok(new) };
        if self.namespaced.is_some_and(|namespaced| namespaced != old.namespaced) {
            let scope = if old.namespaced { "namespaced" } else { "not namespaced" };
            bail!("{kind} is {scope} in all its versions: leave `--namespaced` out");
        }
        if self.plural.as_ref().is_some_and(|plural| *plural != old.plural) {
            bail!("the plural of {kind} is {:?} in all its versions: leave `--plural` out", old.plural);
        }
        let mut merged = ProjectApi {
            controller: old.controller || new.controller,
            webhook: old.webhook || new.webhook,
            ..old.clone()
        };
        if !merged.versions.contains(version) {
            merged.versions.push(version.clone());
        }
        Ok(merged)
    }
}

fn capitalized(word: &str) -> String {
    let letters = word.chars().filter(char::is_ascii_alphanumeric);
    letters
        .enumerate()
        .map(|(at, letter)| if at == 0 { letter.to_ascii_uppercase() } else { letter })
        .collect()
}
