//! The one binary. A command is a file; this one only finds it.

mod bench;
mod up;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A write makes and drops hundreds of small values; this one is a quarter faster at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Kubernetes control plane in one binary.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<up::Options>),
    Bench(bench::Options),
}

#[expect(clippy::print_stderr, reason = "errors go to the person who typed the command")]
fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let outcome = world::run(|world| async move {
        match cli.command {
            Command::Up(options) => up::run(&world, *options).await,
            Command::Bench(options) => bench::run(&world, options).await,
        }
    });
    match outcome.map_err(anyhow::Error::from).flatten() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("setpoint: {error:#}");
            ExitCode::FAILURE
        }
    }
}
