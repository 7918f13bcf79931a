//! What `cargo metadata` says of the packages that this workspace is built from. Reads no network.

use crate::tools;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{collections::BTreeSet, process::Command};

/// Packages for other systems need not be on this machine.
const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    /// Name and version.
    pub(crate) title: String,
    /// An SPDX expression.
    pub(crate) licence: Option<String>,
    /// The oldest compiler that it promises to build with.
    pub(crate) rust_version: Option<String>,
    /// A crate of this workspace.
    pub(crate) is_own: bool,
}

/// All packages in the lock file for Linux.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let mut command = Command::new(tools::cargo());
    command.args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", TARGET]);
    let output = command.current_dir(tools::root()?).output().context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    read(&serde_json::from_slice(&output.stdout)?)
}

fn read(metadata: &Value) -> Result<Vec<Package>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("no resolve.nodes")?;
    let used: BTreeSet<_> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let packages =
        packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    Ok(packages.map(package).collect())
}

fn package(package: &Value) -> Package {
    let text = |field: &str| package[field].as_str().map(str::to_owned);
    Package {
        title: [text("name"), text("version")].into_iter().flatten().collect::<Vec<_>>().join(" "),
        licence: text("license"),
        rust_version: text("rust_version"),
        is_own: package["source"].is_null(),
    }
}

#[test]
fn packages_have_licences_and_those_that_are_not_used_are_left_out() {
    let metadata = serde_json::json!({
        "resolve": {"nodes": [{"id": "a"}]},
        "packages": [
            {"id": "a", "name": "a", "version": "1.0.0", "license": "MIT", "rust_version": "1.70", "source": "x"},
            {"id": "b", "name": "b", "version": "1.0.0", "license": null, "source": null},
        ],
    });
    let found = read(&metadata).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].title.as_str(), found[0].licence.as_deref(), found[0].is_own),
        ("a 1.0.0", Some("MIT"), false)
    );
}
