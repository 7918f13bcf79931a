//! Shows some hours of a CronTab on simulated nodes in this process. `--definition` and `--operator` print the files of
//! `manifests/`; `--connect` runs the operator, without webhooks, on the cluster of your kubeconfig.

#![expect(clippy::print_stdout, reason = "it shows something")]

mod story;

use example_crontab::{NAME, controller, definition, manifests};
use operator::Manager;

/// Decides about the order of what happens at once, and about UIDs.
const SEED: u64 = 1;

fn main() -> Result<(), operator::Error> {
    match std::env::args().nth(1).as_deref() {
        Some("--definition") => print!("{}", operator::definition::yaml(&definition())),
        Some("--operator") => return print_operator(),
        Some("--connect") => return connect(),
        _ => drop(testkit::simulate(SEED, |cluster| story::play(cluster, |line| println!("{line}")))),
    }
    Ok(())
}

#[tokio::main]
async fn print_operator() -> Result<(), operator::Error> {
    print!("{}", manifests(Manager::disconnected(NAME)));
    Ok(())
}

#[tokio::main]
async fn connect() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    Manager::connect(NAME).await?.controller(controller()).run().await
}
