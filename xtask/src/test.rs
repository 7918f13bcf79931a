//! `cargo xtask test`: all checks and tests, from the cheapest check to third-party programs.

use crate::{
    dependencies, interop, real_node::Machine, recipes, source::Workspace, steps::Tally, tidy, tools,
};
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
    containers(&mut tally)?;
    recipes::quick(&tools::root()?.join("target/debug/setpoint"), &mut tally)?;
    Ok(tally.summary())
}

/// A suite that needs third-party programs.
struct Outside {
    name: &'static str,
    suite: &'static str,
    /// The prefix of its tests' names.
    filter: &'static str,
    tool: Option<Tool>,
}

/// The variable that passes the path of a program to a suite, and what finds the program.
type Tool = (&'static str, fn() -> Result<PathBuf>);

const OUTSIDE: [Outside; 8] = [
    Outside {
        name: "the store on a real etcd",
        suite: "etcd",
        filter: "",
        tool: Some(("SETPOINT_ETCD", tools::etcd)),
    },
    Outside {
        name: "setpoint up with a real kubectl",
        suite: "outside",
        filter: "kubectl::",
        tool: Some(("SETPOINT_KUBECTL", tools::kubectl)),
    },
    Outside {
        name: "setpoint up with the Python client",
        suite: "outside",
        filter: "python::",
        tool: Some(("SETPOINT_PYTHON", tools::python_client)),
    },
    Outside {
        name: "the chart of a project with a real Helm",
        suite: "outside",
        filter: "projects::helm::",
        tool: Some(("SETPOINT_HELM", tools::helm)),
    },
    Outside {
        name: "a Go project with controller-gen and its tests",
        suite: "outside",
        filter: "projects::go::",
        tool: Some(("SETPOINT_GO", tools::go)),
    },
    Outside {
        name: "README and the book: every command is run or has a reason why not",
        suite: "outside",
        filter: "book::text::",
        tool: None,
    },
    Outside {
        name: "README and the book with a real kubectl",
        suite: "outside",
        filter: "book::kubectl::",
        tool: Some(("SETPOINT_KUBECTL", tools::kubectl)),
    },
    Outside {
        name: "the book's page on several servers with a real etcd",
        suite: "outside",
        filter: "book::etcd::",
        tool: Some(("SETPOINT_ETCD", tools::etcd)),
    },
];

fn outside(tally: &mut Tally) -> Result<()> {
    for Outside { name, suite, filter, tool } in OUTSIDE {
        // The whole workspace, so that everything is built with the same features as before.
        let mut command = cargo(["test", "--workspace", "--all-features", "--test", suite, filter]);
        match tool.map(|(variable, find)| find().map(|path| (variable, path))).transpose() {
            Ok(program) => tally.suite(name, command.envs(program))?,
            Err(error) => tally.skip(name, &format!("{error:#}")),
        }
    }
    Ok(())
}

/// Official tests where containers run: a ConfigMap in a volume, services, names, tokens and the proxy to pods.
const WITH_CONTAINERS: &str = r"ConfigMap should be consumable from pods in volume \[|should mount an API token into pods|Services should be able to create a functioning NodePort|DNS should provide DNS for the cluster|should proxy through a service and a pod";

/// With a real kubelet, kube-proxy and containerd, if this machine can run them and they have been built.
fn containers(tally: &mut Tally) -> Result<()> {
    const NAME: &str = "official tests with containers on this machine";
    const BUILT: [&str; 6] = ["kubelet", "kube-proxy", "coredns", "agnhost", "e2e.test", "kubectl"];
    let missing = interop::first_missing(&BUILT)?;
    let missing = missing.map(|name| format!("there is no {name}: `cargo xtask interop {name}` builds it"));
    if let Some(obstacle) = missing.or_else(Machine::obstacle) {
        tally.skip(NAME, &obstacle);
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["conformance", "--with-real-nodes", "--procs", "4", "--focus", WITH_CONTAINERS]);
    tally.check(NAME, command.env("SETPOINT_BINARY", tools::root()?.join("target/debug/setpoint")))
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(tools::cargo());
    command.args(arguments);
    command
}
