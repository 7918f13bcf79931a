//! Which crate may depend on which. A new edge is a change of the architecture: ARCHITECTURE.md tells why.

pub(crate) mod modules;

use crate::source::Workspace;
use std::collections::BTreeSet;

/// Each crate and the crates of the workspace that it may depend on.
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
    ("testing", &["world", "store", "api", "server", "node"]),
    ("testkit", &[ANYTHING]),
    ("fuzz", &[ANYTHING]),
    ("twin", &["world", "api", "schema", "kinds"]),
    ("setpoint", &[ANYTHING]),
    ("xtask", &[]),
];
const ANYTHING: &str = "*";
/// Any crate may have them as dev-dependencies, and none may ship them.
const TEST_ONLY: [&str; 2] = ["testkit", "fuzz"];

/// Dependencies that the table does not allow, and crates that it does not know.
pub(crate) fn strays(workspace: &Workspace) -> Vec<String> {
    let crates = workspace.manifests.iter().filter(|(folder, _)| !folder.starts_with("examples/"));
    crates.flat_map(|(folder, manifest)| check(name_of(folder), manifest)).collect()
}

/// The folders of the crates that there are, in the order of the table, with their manifests.
pub(crate) fn crates(workspace: &Workspace) -> impl Iterator<Item = (&str, &str)> {
    let find = |name: &str| workspace.manifests.iter().find(|(folder, _)| name_of(folder) == name);
    let found = TABLE.iter().filter_map(move |(name, _)| find(name));
    found.map(|(folder, manifest)| (folder.as_str(), manifest.as_str()))
}

fn name_of(folder: &str) -> &str {
    folder.trim_start_matches("crates/")
}

fn check(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = TABLE.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name} is not in the table of xtask/src/dependencies.rs")];
    };
    let is_stray = |dependency: &&str| {
        TEST_ONLY.contains(dependency) || !(allowed.contains(&ANYTHING) || allowed.contains(dependency))
    };
    let strays = shipped(manifest).into_iter().filter(is_stray);
    strays.map(|dependency| format!("{name} must not depend on {dependency}")).collect()
}

/// The crates of the table that are compiled into the crate of a manifest.
pub(crate) fn shipped(manifest: &str) -> Vec<&str> {
    let house: BTreeSet<_> = TABLE.iter().map(|(name, _)| *name).collect();
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            continue;
        }
        let dependency = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if house.contains(dependency) && is_shipped(section) {
            found.push(dependency);
        }
    }
    found
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
    fn the_crates_keep_to_the_table() {
        let workspace = Workspace::read(&crate::tools::root().unwrap()).unwrap();
        assert_eq!(strays(&workspace), Vec::<String>::new());
        assert!(crates(&workspace).any(|(folder, _)| folder == "crates/world"));
    }

    /// The dependencies of an operator, each with its features.
    fn dependencies_of_an_operator(edges: &str) -> BTreeSet<String> {
        let mut tree = std::process::Command::new(env!("CARGO"));
        tree.args(["tree", "--locked", "--package", "example-digest", "--edges", edges]);
        tree.args(["--prefix", "none", "--format", "{p} {f}", "--no-dedupe"]);
        let output = tree.current_dir(crate::tools::root().unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Otherwise `cargo build` after `cargo test` would compile them again.
    #[test]
    fn the_tests_of_an_operator_use_its_dependencies_with_the_same_features() {
        let built = dependencies_of_an_operator("normal,build");
        let tested = dependencies_of_an_operator("normal,build,dev");
        let others: Vec<&String> = built.difference(&tested).collect();
        assert!(others.is_empty(), "{others:?}");
        assert!(built.len() <= MOST_DEPENDENCIES, "{} dependencies", built.len());
    }

    /// Of the smallest example, with what its build scripts need. Most come with kube and its TLS.
    const MOST_DEPENDENCIES: usize = 185;

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
