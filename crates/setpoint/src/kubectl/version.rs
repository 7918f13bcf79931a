//! `kubectl version`: the versions of this program and of the server.

use crate::client::{
    connect::ConnectOptions,
    failure::{ClientError, ClientResult},
    json, print, yaml,
};
use serde_json::{Value, json};

/// Show the versions of client and server.
#[derive(Debug, clap::Args)]
pub(super) struct VersionOptions {
    /// Only the client
    #[arg(long)]
    client: bool,
    /// yaml or json
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

pub(super) async fn run(options: &VersionOptions) -> ClientResult<()> {
    // Kubernetes: scripts read the minor version out of `v1.36…`.
    let client = concat!("v1.36.0+setpoint-", env!("CARGO_PKG_VERSION"));
    let mut versions = json!({"clientVersion": {"gitVersion": client, "major": "1", "minor": "36"}});
    if !options.client {
        versions["serverVersion"] = options.connect.connect().await?.api.get("/version").await?;
    }
    let text = match options.output.as_deref() {
        Some("json") => json::pretty(&versions),
        Some("yaml") => yaml::document(&versions),
        None => short(&versions),
        Some(_) => return Err(ClientError::error("--output must be 'yaml' or 'json'")),
    };
    print(&text)
}

fn short(versions: &Value) -> String {
    let line = |title, version: &Value| match version["gitVersion"].as_str() {
        Some(version) => format!("{title} Version: {version}\n"),
        None => String::new(),
    };
    line("Client", &versions["clientVersion"]) + &line("Server", &versions["serverVersion"])
}
