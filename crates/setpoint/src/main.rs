//! The binary: parses the command line. Each command has its own file.

mod apply;
mod assets;
mod bench;
mod client;
mod completion;
mod create;
mod delete;
mod etcd_stand_in;
mod events;
mod examples;
mod generate;
mod get;
mod install;
mod kube_apiserver;
mod kubeconfig;
mod kubectl;
mod logs;
mod new;
mod node_command;
mod pod_logs;
mod real_node;
mod run;
mod scaffold;
mod test_command;
mod testing_command;
mod tree;
mod up;
mod wait;
mod why;

use bench::BenchOptions;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use logs::LogOptions;
use std::process::ExitCode;
use testing_command::TestingOptions;
use up::UpOptions;

/// A write allocates and frees hundreds of small values; this allocator is a quarter faster at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Kubernetes control plane in one binary.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    logs: LogOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<UpOptions>),
    Bench(BenchOptions),
    New(new::NewOptions),
    Create(create::CreateOptions),
    Generate(generate::GenerateOptions),
    Install(install::InstallOptions),
    /// Delete the custom resource definitions (CRDs) of the project from a cluster, with all objects of these kinds.
    #[command(after_help = install::UNINSTALL_EXAMPLES)]
    Uninstall(install::InstallOptions),
    Run(run::RunOptions),
    Test(test_command::TestOptions),
    Testing(TestingOptions),
    Node(node_command::NodeOptions),
    Assets(assets::AssetOptions),
    Kubeconfig(kubeconfig::KubeconfigOptions),
    Completion(completion::CompletionOptions),
    #[command(flatten)]
    Client(client::ClientCommand),
    /// The binary runs this when it is called by this name, as test environments do.
    #[command(skip)]
    KubeApiserver(kube_apiserver::CommandLine),
    #[command(skip)]
    Etcd(Vec<String>),
    #[command(skip)]
    Kubectl(Vec<std::ffi::OsString>),
}

/// What may be typed.
fn command_line() -> clap::Command {
    examples::add(Cli::command())
}

/// The name under which the binary was called: a link to it may replace another program.
fn called_as() -> Option<String> {
    let path = std::path::PathBuf::from(std::env::args_os().next()?);
    Some(path.file_name()?.to_str()?.to_owned())
}

#[expect(clippy::print_stderr, reason = "errors go to the person who typed the command")]
fn main() -> ExitCode {
    let called = called_as();
    let stand_in = |command| Cli { logs: LogOptions::default(), command };
    let Cli { logs, command } = match called.as_deref() {
        Some("kube-apiserver") => {
            let line = kube_apiserver::CommandLine::read(std::env::args().skip(1));
            Cli { logs: line.logs(), command: Command::KubeApiserver(line) }
        }
        Some("etcd") => stand_in(Command::Etcd(std::env::args().skip(1).collect())),
        Some("kubectl") => stand_in(Command::Kubectl(std::env::args_os().skip(1).collect())),
        _ => Cli::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit()),
    };
    logs::start(&logs);
    let outcome = world::run(|world| async move {
        match command {
            Command::Up(options) => up::run(&world, *options).await,
            Command::Bench(options) => bench::run(&world, options).await,
            Command::New(options) => new::run(&options),
            Command::Create(options) => create::run(&options),
            Command::Generate(options) => generate::run(&options),
            Command::Install(options) => install::run(&world, &options).await,
            Command::Uninstall(options) => install::remove(&options).await,
            Command::Run(options) => run::run(&world, options).await,
            Command::Test(options) => test_command::run(&options),
            Command::KubeApiserver(line) => kube_apiserver::run(&world, line).await,
            Command::Node(options) => node_command::run(&world, options).await,
            Command::Testing(options) => testing_command::run(&world, options).await,
            Command::Assets(options) => assets::run(&options),
            Command::Kubeconfig(options) => kubeconfig::run(&options),
            Command::Completion(options) => completion::run(&options, command_line()),
            Command::Client(command) => client::run(&world, command).await,
            Command::Kubectl(arguments) => kubectl::run(&world, arguments).await,
            Command::Etcd(arguments) => etcd_stand_in::run(&world, &arguments).await,
        }
    });
    match outcome.map_err(anyhow::Error::from).flatten() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<client::failure::ClientError>() {
                Some(client::failure::ClientError::OutputClosed) => {}
                // kubectl's words, as they are.
                Some(error) => eprintln!("{error}"),
                None => eprintln!("setpoint: {error:#}"),
            }
            ExitCode::FAILURE
        }
    }
}
