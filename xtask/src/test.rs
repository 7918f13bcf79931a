//! `cargo xtask test`: everything that must hold, from the cheapest check to real outside programs.

use crate::{dependencies, steps::Tally, tools};
use anyhow::Result;
use std::process::{Command, ExitCode};

pub(crate) fn run() -> Result<ExitCode> {
    let mut tally = Tally::default();
    tally.check("format", &mut cargo(["fmt", "--all", "--check"]))?;
    tally.check(
        "lints",
        &mut cargo(["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    )?;
    println!("\n── who may depend on whom");
    let strays = dependencies::strays()?;
    strays.iter().for_each(|stray| println!("{stray}"));
    tally.count("who may depend on whom", strays.is_empty());
    tally.suite("tests", &mut cargo(["test", "--workspace", "--no-fail-fast"]))?;
    outside(&mut tally)?;
    Ok(summary(&tally))
}

/// Tests against real programs of others.
fn outside(tally: &mut Tally) -> Result<()> {
    const ETCD: &str = "the store on a real etcd";
    match tools::etcd() {
        Ok(etcd) => {
            let mut suite = cargo(["test", "--package", "store", "--test", "etcd"]);
            tally.suite(ETCD, suite.env("SETPOINT_ETCD", etcd))?;
        }
        Err(error) => tally.skip(ETCD, &format!("{error:#}")),
    }
    Ok(())
}

fn summary(tally: &Tally) -> ExitCode {
    println!();
    for skipped in &tally.skipped {
        println!("SKIPPED {skipped}");
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped.len());
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(tools::cargo());
    command.args(arguments);
    command
}
