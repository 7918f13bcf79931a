//! `setpoint.yaml`: the name, the domain and the kinds of a project.

use super::names;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The file that marks the root of a project.
pub(crate) const MARKER: &str = "setpoint.yaml";

/// The language of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    #[default]
    Rust,
    Go,
}

/// A project of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    #[serde(skip)]
    pub(crate) root: PathBuf,
    pub(crate) name: String,
    pub(crate) domain: String,
    #[serde(default)]
    pub(crate) lang: Language,
    /// Go: the path of its module.
    #[serde(default)]
    pub(crate) module: String,
    #[serde(default)]
    pub(crate) apis: Vec<ProjectApi>,
}

/// A kind of a project, with what was made for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectApi {
    /// Without the domain.
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    #[serde(default)]
    pub(crate) controller: bool,
    #[serde(default)]
    pub(crate) webhook: bool,
    /// The first one is stored; the others are converted to it and from it.
    pub(crate) versions: Vec<String>,
}

impl Project {
    /// The project that the present folder is in.
    pub(crate) fn find() -> Result<Project> {
        let here = std::env::current_dir().context("there is no present folder")?;
        let root = here.ancestors().find(|folder| folder.join(MARKER).is_file());
        let Some(root) = root else {
            bail!(
                "{} is not in a project: no folder above it has a {MARKER}. Start one with `setpoint new shop --domain \
                 acme.io`, or go into one.",
                here.display()
            );
        };
        Project::read(root)
    }

    pub(crate) fn read(root: &Path) -> Result<Project> {
        let path = root.join(MARKER);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let read = || -> Result<Project> {
            let json = schema::yaml::to_json(&text)?.json;
            let mut project: Project = serde_json::from_slice(&json)?;
            project.root = root.to_owned();
            project.check()?;
            Ok(project)
        };
        read().with_context(|| format!("{} is not as `setpoint` writes it: restore it", path.display()))
    }

    fn check(&self) -> Result<()> {
        names::check_project(&self.name)?;
        names::check_domain(&self.domain)?;
        for api in &self.apis {
            names::check_group(&api.group)?;
            names::check_kind(&api.kind)?;
            names::check_plural(&api.plural)?;
            if api.versions.is_empty() {
                bail!("kind {:?} has no version: add a line as `versions: [v1alpha1]`", api.kind);
            }
            api.versions.iter().try_for_each(|version| names::check_version(version))?;
        }
        Ok(())
    }

    /// The text of `setpoint.yaml`. All values were checked: none needs quotes.
    pub(crate) fn yaml(&self) -> String {
        let mut text = String::from(
            "# Written by `setpoint new` and `setpoint create api`, which read it, too. Commit it.\n",
        );
        let lang = match self.lang {
            Language::Rust => "rust",
            Language::Go => "go",
        };
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        line(format!("name: {}", self.name));
        line(format!("domain: {}", self.domain));
        line(format!("lang: {lang}"));
        if !self.module.is_empty() {
            line(format!("module: {}", self.module));
        }
        line(format!("apis:{}", if self.apis.is_empty() { " []" } else { "" }));
        for api in &self.apis {
            line(format!("- group: {}", api.group));
            line(format!("  kind: {}", api.kind));
            line(format!("  plural: {}", api.plural));
            line(format!("  namespaced: {}", api.namespaced));
            line(format!("  controller: {}", api.controller));
            line(format!("  webhook: {}", api.webhook));
            line(format!("  versions: [{}]", api.versions.join(", ")));
        }
        text
    }

    pub(crate) fn api(&self, group: &str, kind: &str) -> Option<&ProjectApi> {
        self.apis.iter().find(|api| api.group == group && api.kind == kind)
    }

    /// The full API group.
    pub(crate) fn full_group(&self, group: &str) -> String {
        format!("{group}.{}", self.domain)
    }

    /// Where the operator is installed by default.
    pub(crate) fn namespace(&self) -> String {
        format!("{}-system", self.name)
    }

    /// Its container image by default.
    pub(crate) fn image(&self) -> String {
        format!("{}:latest", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_read_as_it_was_written() {
        let api = ProjectApi {
            group: "cache".to_owned(),
            kind: "Redis".to_owned(),
            plural: "redises".to_owned(),
            namespaced: true,
            controller: true,
            webhook: false,
            versions: vec!["v1alpha1".to_owned(), "v1".to_owned()],
        };
        let folder = tempfile::tempdir().unwrap();
        for apis in [vec![], vec![api]] {
            let project = Project {
                root: folder.path().to_owned(),
                name: "shop".to_owned(),
                domain: "acme.io".to_owned(),
                lang: Language::Go,
                module: "acme.io/shop".to_owned(),
                apis,
            };
            fs::write(folder.path().join(MARKER), project.yaml()).unwrap();
            assert_eq!(Project::read(folder.path()).unwrap(), project);
        }
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "name: Shop\ndomain: acme.io\n", "name: shop\ndomain: acme.io\nsize: 1\n", "{"] {
            fs::write(folder.path().join(MARKER), text).unwrap();
            let problem = Project::read(folder.path()).unwrap_err();
            assert!(problem.to_string().contains("restore it"), "{text}: {problem}");
        }
    }
}
