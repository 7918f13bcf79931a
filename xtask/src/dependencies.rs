//! Checks which crate depends on which. A new edge is an architecture change: ARCHITECTURE.md has the
//! reasons.

use crate::tools;
use anyhow::{Context, Result};
use std::{collections::BTreeSet, fs};

/// Each crate and the crates of this workspace that it may depend on.
const TABLE: &[(&str, &[&str])] = &[
    ("world", &[]),
    ("api", &[]),
    ("expression", &["api"]),
    ("schema", &["api", "expression"]),
    ("kinds", &["api", "expression", "schema"]),
    ("store", &["world"]),
    ("server", &["world", "store", "api", "expression", "schema", "kinds"]),
    ("operator", &["world", "api"]),
    ("controllers", &["world", "api", "operator"]),
    ("node", &["world", "api", "operator"]),
    ("prove", &["world", "api", "operator", "server"]),
    ("testkit", &[ANYTHING]),
    ("fuzz", &[ANYTHING]),
    ("twin", &["world", "api", "schema", "kinds"]),
    ("setpoint", &[ANYTHING]),
    ("xtask", &[]),
];
const ANYTHING: &str = "*";
/// Any crate may use them in tests, none may ship them.
const TEST_ONLY: [&str; 2] = ["testkit", "fuzz"];

/// Dependencies that the table does not allow, and crates that it does not know.
pub(crate) fn strays() -> Result<Vec<String>> {
    let root = tools::root()?;
    let mut strays = Vec::new();
    let mut folders = vec![root.join("xtask")];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    for folder in folders.iter().filter(|folder| folder.join("Cargo.toml").exists()) {
        let name =
            folder.file_name().and_then(|name| name.to_str()).context("a crate's folder has a name")?;
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        strays.extend(check(name, &manifest));
    }
    Ok(strays)
}

fn check(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = TABLE.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name} is not in the table of xtask/src/dependencies.rs")];
    };
    let house: BTreeSet<_> = TABLE.iter().map(|(name, _)| *name).collect();
    let mut strays = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            continue;
        }
        let dependency = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if !house.contains(dependency) || !is_shipped(section) {
            continue;
        }
        if TEST_ONLY.contains(&dependency) || !(allowed.contains(&ANYTHING) || allowed.contains(&dependency))
        {
            strays.push(format!("{name} must not depend on {dependency}"));
        }
    }
    strays
}

/// Whether a section of a manifest lists dependencies of the crate itself, not of its tests.
fn is_shipped(section: &str) -> bool {
    let section = section.rsplit('.').next().unwrap_or(section);
    matches!(section, "dependencies" | "build-dependencies")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_within_the_table() {
        assert_eq!(strays().unwrap(), Vec::<String>::new());
        assert!(tools::root().unwrap().join("crates/world/Cargo.toml").exists());
    }

    #[test]
    fn strays_are_found() {
        for (name, manifest, expected) in [
            ("store", "[dependencies]\nworld.workspace = true\nbytes = \"1\"", vec![]),
            ("store", "[dependencies]\napi.workspace = true", vec!["store must not depend on api"]),
            ("store", "[dependencies]\napi = { path = \"../api\" }", vec!["store must not depend on api"]),
            ("store", "[target.'cfg(unix)'.dependencies]\napi = \"1\"", vec!["store must not depend on api"]),
            ("store", "[dev-dependencies]\napi.workspace = true", vec![]),
            ("setpoint", "[dependencies]\nserver = \"1\"", vec![]),
            ("setpoint", "[dependencies]\ntestkit = \"1\"", vec!["setpoint must not depend on testkit"]),
            ("attic", "", vec!["attic is not in the table of xtask/src/dependencies.rs"]),
        ] {
            assert_eq!(check(name, manifest), expected, "{name}: {manifest}");
        }
    }
}
