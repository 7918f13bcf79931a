//! Crates and modules as tables: their sizes, and which use which.

use crate::{dependencies, dependencies::modules, source::Workspace, tidy};
use std::collections::BTreeSet;

const CRATES: &str = "| crate | files | lines | lines of tests | uses |\n|---|---|---|---|---|";
const MODULES: &str = "| module | files | lines | lines of tests | uses | users |\n|---|---|---|---|---|---|";

/// The crates of the table of dependencies, which goes from those that use no others upwards.
pub(super) fn crates(workspace: &Workspace) -> String {
    let mut rows = vec![CRATES.to_owned()];
    for (folder, manifest) in dependencies::crates(workspace) {
        let sources = || workspace.sources.iter().filter(|source| source.krate() == folder);
        let (all, tests) = sources()
            .fold((0, 0), |(all, tests), source| (all + source.lines(), tests + source.test_lines()));
        let (files, lines, tests) = (sources().count(), hundreds(all - tests), hundreds(tests));
        let (name, uses) = (folder.trim_start_matches("crates/"), dependencies::shipped(manifest).join(" "));
        rows.push(format!("| `{name}` | {files} | {lines} | {tests} | {uses} |"));
    }
    rows.join("\n")
}

/// The top-level modules of a crate.
pub(super) fn modules(workspace: &Workspace, krate: &str) -> String {
    let mut modules = modules::of(workspace, krate);
    let order = order(workspace, krate);
    modules.sort_by_key(|module| order.iter().position(|name| *name == module.name));
    let mut rows = vec![MODULES.to_owned()];
    for module in &modules {
        let used: BTreeSet<_> = module.uses.iter().map(|edge| edge.to.as_str()).collect();
        let uses: Vec<_> =
            modules.iter().map(|module| module.name.as_str()).filter(|name| used.contains(name)).collect();
        let users =
            modules.iter().filter(|other| other.uses.iter().any(|edge| edge.to == module.name)).count();
        let (lines, tests) = (hundreds(module.lines), hundreds(module.test_lines));
        let (name, files, uses) = (&module.name, module.files, uses.join(" "));
        rows.push(format!("| `{name}` | {files} | {lines} | {tests} | {uses} | {users} |"));
    }
    rows.join("\n")
}

/// The modules of the server as their order is fixed, those of others as the root of the crate names them.
fn order(workspace: &Workspace, krate: &str) -> Vec<String> {
    if krate == tidy::ORDERED_CRATE {
        return tidy::module_order().map(str::to_owned).collect();
    }
    let root = workspace.source(&format!("{krate}/src/lib.rs"));
    root.iter().flat_map(|root| &root.outline.modules).map(|line| line.name.clone()).collect()
}

/// Rounded to whole hundreds, so that the map is not another one after each edit.
fn hundreds(lines: usize) -> usize {
    (lines + 50) / 100 * 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_listed_as_the_root_names_them() {
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", "mod two;\nmod one;"),
            ("crates/a/src/one.rs", &"\n".repeat(149)),
            ("crates/a/src/two.rs", &format!("use crate::one::One;{}", "\n".repeat(150))),
        ]);
        assert_eq!(
            modules(&workspace, "crates/a"),
            format!("{MODULES}\n| `two` | 1 | 200 | 0 | one | 0 |\n| `one` | 1 | 100 | 0 |  | 1 |")
        );
    }
}
