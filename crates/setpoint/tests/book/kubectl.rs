//! The pages that need kubectl; `cargo xtask test` finds it and sets `SETPOINT_KUBECTL` to it.

use super::terminal::Terminal;
use std::path::PathBuf;

fn run(page: &str) {
    let kubectl =
        PathBuf::from(std::env::var_os("SETPOINT_KUBECTL").expect("SETPOINT_KUBECTL names no kubectl"));
    Terminal::new(&[("kubectl", &kubectl)]).run(page);
}

#[test]
fn readme() {
    run("README.md");
}

#[test]
fn everyday_commands() {
    run("docs/guide/everyday-commands.md");
}

#[test]
fn install() {
    run("docs/guide/install.md");
}

#[test]
fn concepts() {
    run("docs/guide/concepts.md");
}

#[test]
fn production() {
    run("docs/guide/production.md");
}

#[test]
fn recipes() {
    run("docs/recipes/README.md");
    run("docs/recipes/go-envtest.md");
}
