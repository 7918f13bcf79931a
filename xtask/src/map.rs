//! `cargo xtask map`: crates, modules and journeys as Markdown. ARCHITECTURE.md holds what it prints.

mod document;
mod journeys;
mod tables;

use crate::{source::Workspace, tools};
use anyhow::{Context, Result, bail};
use journeys::Journey;
use std::{fs, path::Path, process::ExitCode};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const JOURNEYS: &str = "xtask/journeys.txt";

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let root = tools::root()?;
    let workspace = Workspace::read(&root)?;
    match arguments {
        [] => println!("{}", print(&root, &workspace)?),
        ["--write"] => {
            let text = fs::read_to_string(root.join(ARCHITECTURE)).context(ARCHITECTURE)?;
            fs::write(root.join(ARCHITECTURE), document::replace(&text, &print(&root, &workspace)?)?)?;
        }
        ["--check"] => {}
        _ => bail!("usage: cargo xtask map [--write | --check]"),
    }
    let problems = problems(&root, &workspace)?;
    // A map that is only printed may differ from the document.
    if arguments.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Steps of journeys that are not in the code, and whether the document shows another map than this one.
pub(crate) fn problems(root: &Path, workspace: &Workspace) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for journey in journeys(root)? {
        problems.extend(
            journey.problems(workspace).map(|(line, problem)| format!("{JOURNEYS}:{line}: {problem}")),
        );
    }
    let text = fs::read_to_string(root.join(ARCHITECTURE)).context(ARCHITECTURE)?;
    if !document::is_alike(document::map_in(&text)?, &print(root, workspace)?) {
        problems.push(format!(
            "{ARCHITECTURE}:1: the map in it is not that of the code: run `cargo xtask map --write`"
        ));
    }
    Ok(problems)
}

fn journeys(root: &Path) -> Result<Vec<Journey>> {
    journeys::parse(&fs::read_to_string(root.join(JOURNEYS)).context(JOURNEYS)?)
}

fn print(root: &Path, workspace: &Workspace) -> Result<String> {
    let mut parts = vec![
        "### Crates\n".to_owned(),
        tables::crates(workspace),
        "\n### Modules of `server`, from the top down\n".to_owned(),
        tables::modules(workspace, "crates/server"),
        "\n### Modules of `operator`\n".to_owned(),
        tables::modules(workspace, "crates/operator"),
    ];
    for journey in journeys(root)? {
        parts.push(format!("\n### {}\n", journey.title));
        parts.push(journey.print());
    }
    Ok(parts.join("\n"))
}
