//! `cargo xtask test`: all checks and tests, from the cheapest check to third-party programs.

use crate::{dependencies, recipes, source::Workspace, steps::Tally, tidy, tools};
use anyhow::Result;
use std::{
    path::PathBuf,
    process::{Command, ExitCode},
};

pub(crate) fn run() -> Result<ExitCode> {
    let mut tally = Tally::default();
    tally.check("format", &mut cargo(["fmt", "--all", "--check"]))?;
    tally.check(
        "lints",
        &mut cargo([
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--quiet",
            "--",
            "--deny",
            "warnings",
        ]),
    )?;
    // Targets that no test run includes.
    tally.check(
        "benches that are tests",
        &mut cargo(["check", "--workspace", "--all-features", "--test", "growth"]),
    )?;
    let workspace = Workspace::read(&tools::root()?)?;
    tally.problems("which crate may depend on which", &dependencies::strays(&workspace));
    tally.problems("tidy", &tidy::problems()?);
    tally.suite("tests", &mut cargo(["test", "--workspace", "--all-features", "--no-fail-fast"]))?;
    outside(&mut tally)?;
    tally.suite(
        "a project from nothing to a running operator",
        &mut cargo(["test", "--workspace", "--all-features", "--test", "walk", "--", "--nocapture"]),
    )?;
    recipes::quick(&tools::root()?.join("target/debug/setpoint"), &mut tally)?;
    Ok(tally.summary())
}

/// A suite that needs a third-party program.
struct Outside {
    name: &'static str,
    suite: &'static str,
    /// The prefix of its tests' names.
    filter: &'static str,
    /// Finds the program; `variable` passes its path to the suite.
    tool: fn() -> Result<PathBuf>,
    variable: &'static str,
}

const OUTSIDE: [Outside; 3] = [
    Outside {
        name: "the store on a real etcd",
        suite: "etcd",
        filter: "",
        tool: tools::etcd,
        variable: "SETPOINT_ETCD",
    },
    Outside {
        name: "setpoint up with a real kubectl",
        suite: "outside",
        filter: "kubectl::",
        tool: tools::kubectl,
        variable: "SETPOINT_KUBECTL",
    },
    Outside {
        name: "setpoint up with the Python client",
        suite: "outside",
        filter: "python::",
        tool: tools::python_client,
        variable: "SETPOINT_PYTHON",
    },
];

fn outside(tally: &mut Tally) -> Result<()> {
    for Outside { name, suite, filter, tool, variable } in OUTSIDE {
        match tool() {
            Ok(path) => {
                // The whole workspace, so that everything is built with the same features as before.
                let mut command = cargo(["test", "--workspace", "--all-features", "--test", suite, filter]);
                tally.suite(name, command.env(variable, path))?;
            }
            Err(error) => tally.skip(name, &format!("{error:#}")),
        }
    }
    Ok(())
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(tools::cargo());
    command.args(arguments);
    command
}
