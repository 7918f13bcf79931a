//! Which top-level modules of a crate use which others, from the paths in their files. Tests do not count.

use crate::source::{PathUse, Workspace, imports, module_path, paths};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) files: usize,
    pub(crate) lines: usize,
    pub(crate) test_lines: usize,
    pub(crate) uses: Vec<Edge>,
}

/// One use of a module by another.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// The modules of a crate in the order of the alphabet. The root is none: it wires the others, and all may use it. What it
/// imports from a module, others may name as `crate::Name`: that is a use of the module.
pub(crate) fn of(workspace: &Workspace, krate: &str) -> Vec<Module> {
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    let sources = || workspace.sources.iter().filter(|source| source.krate() == krate);
    for (source, in_src) in sources().filter_map(|source| Some((source, source.in_src()?))) {
        let Some(name) = module_path(in_src).first().cloned() else { continue };
        let module = modules.entry(name.clone()).or_insert_with(|| Module::new(&name));
        module.files += 1;
        module.lines += source.lines() - source.test_lines();
        module.test_lines += source.test_lines();
        for path in paths(source).into_iter().filter(|path| !source.is_test_at(path.line)) {
            let Some(to) = path.segments.into_iter().next().filter(|to| *to != name) else { continue };
            module.uses.push(Edge { from: name.clone(), to, path: source.path.clone(), line: path.line });
        }
    }
    let names: Vec<_> = modules.keys().cloned().collect();
    let reexports = reexports(workspace, krate);
    for module in modules.values_mut() {
        for edge in &mut module.uses {
            if let Some(home) = reexports.get(&edge.to).filter(|_| !names.contains(&edge.to)) {
                edge.to.clone_from(home);
            }
        }
        module.uses.retain(|edge| names.contains(&edge.to) && edge.to != edge.from);
    }
    modules.into_values().collect()
}

/// The names that the root of a crate imports, each with the module from which.
fn reexports(workspace: &Workspace, krate: &str) -> BTreeMap<String, String> {
    let root = workspace.source(&format!("{krate}/src/lib.rs"));
    let paths = root.map(imports).unwrap_or_default();
    let name = |path: PathUse| Some((path.segments.last()?.clone(), path.segments.first()?.clone()));
    paths.into_iter().filter_map(name).collect()
}

impl Module {
    fn new(name: &str) -> Module {
        Module { name: name.to_owned(), files: 0, lines: 0, test_lines: 0, uses: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_counted_with_the_modules_that_they_use() {
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", "mod one;\nmod two;\npub use one::One;\npub struct Root;"),
            ("crates/a/src/one.rs", "mod part;\nuse crate::{Root, two::Two};\n"),
            ("crates/a/src/one/part.rs", "use super::super::two;\n#[cfg(test)]\nmod tests {}\n"),
            ("crates/a/src/two.rs", "use crate::One;"),
            ("crates/a/tests/all.rs", ""),
        ]);
        let modules = of(&workspace, "crates/a");
        let found: Vec<_> = modules
            .iter()
            .map(|module| {
                (module.name.as_str(), module.files, module.lines, module.test_lines, module.uses.len())
            })
            .collect();
        assert_eq!(found, [("one", 2, 3, 2, 2), ("two", 1, 1, 0, 1)]);
    }
}
