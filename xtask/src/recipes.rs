//! `cargo xtask recipes [NAME …]`: runs the tests of the folders of `recipes/`, one for each language and tool.
//!
//! What they download and build goes into `target/recipes`, never into the folders of the recipes.

mod prepare;

use crate::{cluster, steps::Tally, tools};
use anyhow::{Result, bail};
use prepare::{Site, prepare};
use std::{path::Path, process::ExitCode};

/// A folder of `recipes/`.
pub(crate) struct Recipe {
    name: &'static str,
    /// Programs that must be on the machine.
    needs: &'static [&'static str],
    kind: Kind,
    /// Whether it runs in `cargo xtask test`, too.
    is_quick: bool,
}

/// How the tests of a recipe are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pytest,
    Npm,
    Go,
    Maven,
    Cargo,
    /// A script `test.sh`, with the paths of these official programs in variables.
    Script(&'static [&'static str]),
    /// A script `test.py`, in an environment with its requirements.
    PythonScript,
}

const RECIPES: [Recipe; 10] = [
    Recipe { name: "python", needs: &["python3"], kind: Kind::Pytest, is_quick: true },
    Recipe { name: "kopf", needs: &["python3"], kind: Kind::Pytest, is_quick: true },
    Recipe { name: "node", needs: &["node", "npm"], kind: Kind::Npm, is_quick: true },
    Recipe { name: "go-client", needs: &["go"], kind: Kind::Go, is_quick: true },
    Recipe { name: "go-envtest", needs: &["go"], kind: Kind::Go, is_quick: false },
    Recipe {
        name: "helm",
        needs: &["bash", "go"],
        kind: Kind::Script(&["helm", "kubectl"]),
        is_quick: false,
    },
    Recipe { name: "kustomize", needs: &["bash", "go"], kind: Kind::Script(&["kubectl"]), is_quick: false },
    Recipe { name: "java", needs: &["java", "mvn"], kind: Kind::Maven, is_quick: false },
    Recipe { name: "rust", needs: &["cargo"], kind: Kind::Cargo, is_quick: false },
    Recipe { name: "ci", needs: &["python3", "bash"], kind: Kind::PythonScript, is_quick: false },
];

pub(crate) fn run(names: &[&str]) -> Result<ExitCode> {
    let known: Vec<_> = RECIPES.iter().map(|recipe| recipe.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("there is no recipe {unknown}; there are {}", known.join(", "));
    }
    let mut tally = Tally::default();
    let setpoint = cluster::build_setpoint()?;
    for recipe in RECIPES.iter().filter(|recipe| names.is_empty() || names.contains(&recipe.name)) {
        recipe.test(&setpoint, &mut tally)?;
    }
    Ok(tally.summary())
}

/// Runs those that belong to `cargo xtask test`, with a build of our own program.
pub(crate) fn quick(setpoint: &Path, tally: &mut Tally) -> Result<()> {
    RECIPES.iter().filter(|recipe| recipe.is_quick).try_for_each(|recipe| recipe.test(setpoint, tally))
}

impl Recipe {
    fn test(&self, setpoint: &Path, tally: &mut Tally) -> Result<()> {
        let name = format!("recipe {}", self.name);
        if let Some(missing) = self.needs.iter().find(|program| tools::on_path(program).is_none()) {
            tally.skip(&name, &format!("there is no {missing} on this machine"));
            return Ok(());
        }
        let root = tools::root()?;
        let site = Site {
            setpoint: setpoint.to_owned(),
            source: root.join("recipes").join(self.name),
            work: root.join("target/recipes").join(self.name),
        };
        match prepare(self.kind, &site) {
            Ok(mut test) => tally.check(&name, &mut test),
            Err(error) => {
                // Most likely a package registry that cannot be reached.
                tally.skip(&name, &format!("its packages cannot be had: {error:#}"));
                Ok(())
            }
        }
    }
}

/// The folders of `recipes/`, for the test that none is forgotten.
#[cfg(test)]
fn folders() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(tools::root()?.join("recipes"))? {
        let entry = entry?.path();
        if entry.is_dir() {
            names.extend(entry.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_of_recipes_has_its_line_and_its_page() {
        let mut known: Vec<_> = RECIPES.iter().map(|recipe| recipe.name.to_owned()).collect();
        known.sort();
        assert_eq!(folders().unwrap(), known);
        let pages = tools::root().unwrap().join("docs/recipes");
        for name in known {
            assert!(pages.join(format!("{name}.md")).exists(), "docs/recipes/{name}.md is missing");
        }
    }
}
