//! `setpoint testing`: the verbs of the testing API as commands, for scripts and makefiles.

mod call;

use crate::up::print_line;
use anyhow::{Context, Result, bail};
use call::TestingClient;
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};
use world::World;

/// Steer a cluster of `setpoint up --testing`: fork it, take it back, move its clock, make requests fail.
#[derive(Debug, clap::Args)]
pub(crate) struct TestingOptions {
    /// The cluster; by default $KUBECONFIG, or that of `setpoint up` in this directory
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(subcommand)]
    command: TestingCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TestingCommand {
    /// Start a copy of the cluster; prints the path of its kubeconfig
    Fork {
        /// Its name; by default a new one
        name: Option<String>,
        /// Start from this snapshot instead of the present state
        #[arg(long, value_name = "NAME")]
        snapshot: Option<String>,
        /// Where to write the kubeconfig; by default NAME.kubeconfig in the directory for temporary files
        #[arg(long, value_name = "FILE")]
        write_kubeconfig: Option<PathBuf>,
        /// Print a line for a shell: eval $(setpoint testing fork --export)
        #[arg(long)]
        export: bool,
        /// End the fork of this name
        #[arg(long, requires = "name")]
        delete: bool,
    },
    /// Keep the state of the cluster under a name
    Snapshot { name: String },
    /// Take the cluster back to a snapshot
    Restore { snapshot: String },
    /// Take the cluster back to how it started
    Reset,
    /// Wait until nothing is left to do
    Settle {
        /// How long nothing may have happened
        #[arg(long, default_value = "50ms", value_name = "DURATION")]
        quiet: String,
        #[arg(long, default_value = "30s", value_name = "DURATION")]
        timeout: String,
    },
    /// Show, freeze or move the clock
    Clock {
        /// Let time stand still
        #[arg(long, conflicts_with = "run")]
        freeze: bool,
        /// Let time go on
        #[arg(long)]
        run: bool,
        /// Move it on by so much, like 24h
        #[arg(long, value_name = "DURATION")]
        advance: Option<String>,
    },
    /// Make requests fail as a manifest of a Fault says, or end the faults of some names
    Fault {
        /// The manifest (YAML or JSON); - is standard input
        #[arg(short, long, value_name = "FILE", required_unless_present_any = ["delete", "list"])]
        filename: Option<PathBuf>,
        /// End these faults
        #[arg(long, value_name = "NAME", num_args = 1..)]
        delete: Vec<String>,
        /// Show all faults, and how many requests each has hit
        #[arg(long)]
        list: bool,
    },
    /// Print the last requests
    Trace {
        #[arg(long, default_value_t = 100, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only those of this user
        #[arg(long)]
        user: Option<String>,
        /// Only this verb; write stands for all that do not read
        #[arg(long)]
        verb: Option<String>,
        /// Only this resource
        #[arg(long)]
        resource: Option<String>,
    },
}

pub(crate) async fn run(world: &World, options: TestingOptions) -> Result<()> {
    let mut client = TestingClient::connect(world, &find_kubeconfig(options.kubeconfig)?).await?;
    match options.command {
        TestingCommand::Fork { name: Some(name), delete: true, .. } => client.delete("forks", &name).await?,
        TestingCommand::Fork { name, snapshot, write_kubeconfig, export, .. } => {
            let fork = client.create("Fork", name.as_deref(), json!({"snapshot": snapshot})).await?;
            let path = write_fork(&fork, write_kubeconfig)?;
            print_line(&format!("{}{}", if export { "export KUBECONFIG=" } else { "" }, path.display()));
        }
        TestingCommand::Snapshot { name } => {
            let made = client.create("Snapshot", Some(&name), json!({})).await?;
            print_line(&format!(
                "revision {}, {} objects",
                made["status"]["revision"], made["status"]["objects"]
            ));
        }
        TestingCommand::Restore { snapshot } => {
            print_change(&client.create("Restore", None, json!({"snapshot": snapshot})).await?);
        }
        TestingCommand::Reset => print_change(&client.create("Reset", None, json!({})).await?),
        TestingCommand::Settle { quiet, timeout } => {
            let settled = client.create("Settle", None, json!({"quiet": quiet, "timeout": timeout})).await?;
            print_line(&format!(
                "settled at revision {} after {}",
                settled["status"]["revision"],
                words(&settled["status"]["waited"])
            ));
        }
        TestingCommand::Clock { freeze, run, advance } => {
            if freeze || run {
                client.freeze(freeze).await?;
            }
            if let Some(by) = advance {
                client.create("Advance", None, json!({"by": by})).await?;
            }
            let clock = client.get("clocks/cluster").await?;
            let state = if clock["spec"]["frozen"] == true { " (frozen)" } else { "" };
            print_line(&format!("{}{state}", words(&clock["status"]["now"])));
        }
        TestingCommand::Fault { filename, delete, list } => {
            faults(&mut client, filename, delete, list).await?
        }
        TestingCommand::Trace { limit, user, verb, resource } => {
            let spec = json!({"limit": limit, "user": user, "verb": verb, "resource": resource});
            let trace = client.create("Trace", None, spec).await?;
            print_trace(&trace);
        }
    }
    Ok(())
}

fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The given kubeconfig, or the one that kubectl would take, or that of `setpoint up` here.
fn find_kubeconfig(given: Option<PathBuf>) -> Result<PathBuf> {
    let named =
        given.or_else(|| std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    let path = named.unwrap_or_else(|| PathBuf::from(".setpoint/kubeconfig"));
    if !path.exists() {
        bail!(
            "there is no {}; run `setpoint up --testing`, and name its kubeconfig with --kubeconfig",
            path.display()
        );
    }
    Ok(path)
}

/// Writes the kubeconfig of a fork, for its owner alone.
fn write_fork(fork: &Value, path: Option<PathBuf>) -> Result<PathBuf> {
    let name = words(&fork["metadata"]["name"]);
    let path = path.unwrap_or_else(|| std::env::temp_dir().join(format!("{name}.kubeconfig")));
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| file.write_all(words(&fork["status"]["kubeconfig"]).as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn print_change(done: &Value) {
    let status = &done["status"];
    print_line(&format!(
        "revision {}: {} created, {} updated, {} deleted",
        status["revision"], status["created"], status["updated"], status["deleted"]
    ));
}

async fn faults(
    client: &mut TestingClient,
    file: Option<PathBuf>,
    deleted: Vec<String>,
    list: bool,
) -> Result<()> {
    for name in deleted {
        client.delete("faults", &name).await?;
    }
    if let Some(path) = file {
        let fault = client.post("faults", &manifest(&path)?).await?;
        print_line(words(&fault["metadata"]["name"]));
    }
    if list {
        let all = client.get("faults").await?;
        for fault in all["items"].as_array().into_iter().flatten() {
            print_line(&format!(
                "{:<24} {} hits",
                words(&fault["metadata"]["name"]),
                fault["status"]["hits"]
            ));
        }
    }
    Ok(())
}

/// A manifest as JSON.
fn manifest(path: &Path) -> Result<Value> {
    let text = match path.to_str() {
        Some("-") => io::read_to_string(io::stdin())?.into_bytes(),
        _ => fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
    };
    let json =
        schema::yaml::to_json(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?.json;
    Ok(serde_json::from_slice(&json)?)
}

fn print_trace(trace: &Value) {
    for request in trace["status"]["requests"].as_array().into_iter().flatten() {
        let code = request["code"].as_u64().map_or("no answer".to_owned(), |code| code.to_string());
        let fault = request["fault"].as_str().map(|fault| format!("  ({fault})")).unwrap_or_default();
        let (at, user) = (words(&request["at"]), words(&request["user"]));
        print_line(&format!(
            "{at} {user} {} {} → {code}{fault}",
            words(&request["verb"]),
            words(&request["path"])
        ));
    }
}
