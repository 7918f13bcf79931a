//! Called as `kubectl`: the everyday commands, for machines that have no kubectl.

mod version;

use crate::client::{self, ClientCommand};
use anyhow::{Result, bail};
use clap::Parser;
use std::ffi::OsString;
use version::VersionOptions;
use world::World;

/// The commands of kubectl that there are.
const KNOWN: [&str; 7] = ["apply", "delete", "events", "get", "logs", "version", "wait"];
/// Flags with a value that may stand before the command.
const WITH_VALUE: [&str; 12] = [
    "--as",
    "--as-group",
    "--certificate-authority",
    "--cluster",
    "--context",
    "--kubeconfig",
    "--namespace",
    "--server",
    "--token",
    "--user",
    "-n",
    "-s",
];

/// The everyday commands of kubectl, from Setpoint.
#[derive(Debug, Parser)]
#[command(name = "kubectl", disable_version_flag = true)]
struct KubectlCli {
    #[command(subcommand)]
    command: KubectlCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KubectlCommand {
    #[command(flatten)]
    Client(ClientCommand),
    Version(Box<VersionOptions>),
}

pub(crate) async fn run(world: &World, arguments: Vec<OsString>) -> Result<()> {
    let arguments = command_first(simplified(arguments));
    match arguments.first().map(|name| name.to_string_lossy()) {
        None => bail!("name a command: {}", KNOWN.join(", ")),
        Some(name) if !KNOWN.contains(&&*name) && !["-h", "--help", "help"].contains(&&*name) => bail!(
            "unknown command \"{name}\": this kubectl is Setpoint's, with {}; install the real kubectl for the rest",
            KNOWN.join(", ")
        ),
        Some(_) => {}
    }
    match KubectlCli::parse_from(std::iter::once(OsString::from("kubectl")).chain(arguments)).command {
        KubectlCommand::Client(command) => client::run(world, command).await,
        KubectlCommand::Version(options) => Ok(version::run(&options).await?),
    }
}

/// Flags whose value may be `true` or `false` without being switches.
const WITH_WORDS: [&str; 5] = ["--cascade", "--for", "--ignore-not-found", "--validate", "--wait"];

/// Without `-v=6` and `--v=6`, since there are no levels of log here, and with `--watch=true` as `--watch`.
fn simplified(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut kept = Vec::with_capacity(arguments.len());
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "-v" || text == "--v" {
            arguments.next_if(|next| next.to_string_lossy().parse::<i32>().is_ok());
        } else if !text.starts_with("-v=") && !text.starts_with("--v=") {
            match text.split_once('=') {
                Some((name, "true")) if !WITH_WORDS.contains(&name) => kept.push(name.into()),
                Some((name, "false")) if !WITH_WORDS.contains(&name) => {}
                _ => kept.push(argument),
            }
        }
    }
    kept
}

/// kubectl takes flags before its command; here they come after it.
fn command_first(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at).map(|argument| argument.to_string_lossy()) {
        if !argument.starts_with('-') || argument == "-h" || argument == "--help" {
            break;
        }
        at += if WITH_VALUE.contains(&&*argument) { 2 } else { 1 };
    }
    if at >= arguments.len() {
        return arguments;
    }
    let mut ordered = vec![arguments.remove(at)];
    ordered.append(&mut arguments);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_before_the_command_come_after_it() {
        for (line, expected) in [
            ("get pods", "get pods"),
            ("-n x get pods -o wide", "get -n x pods -o wide"),
            ("--context=a --kubeconfig f get pods", "get --context=a --kubeconfig f pods"),
            ("-v=6 get pods --v 3", "get pods"),
            ("logs x --all-containers=true -f=false --wait=false", "logs x --all-containers --wait=false"),
            ("--help", "--help"),
            ("-n x", "-n x"),
        ] {
            let arguments = line.split(' ').map(OsString::from).collect();
            let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(command_first(simplified(arguments)), expected, "{line}");
        }
    }
}
