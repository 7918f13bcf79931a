//! Which files the compiler reaches from the roots of the crates, and which of them only for tests.

use super::{Source, outline::ModuleLine};
use std::collections::BTreeMap;

/// The modules of a root lie beside it, those of a module in a folder of its name. A file that `#[path]` names counts as a
/// root.
#[derive(Clone, Copy)]
enum Role {
    Root,
    Module,
}

/// The files that are reached, each with whether only tests reach it.
#[derive(Debug)]
pub(crate) struct Reach(BTreeMap<String, bool>);

impl Reach {
    pub(crate) fn of(sources: &[Source], manifests: &[(String, String)]) -> Reach {
        let by_path: BTreeMap<_, _> = sources.iter().map(|source| (source.path.as_str(), source)).collect();
        let mut reached = BTreeMap::new();
        let roots = manifests.iter().flat_map(|(folder, manifest)| roots(folder, manifest, sources));
        let mut waiting: Vec<_> = roots.map(|path| (path, Role::Root, false)).collect();
        while let Some((path, role, is_test)) = waiting.pop() {
            let Some(source) = by_path.get(path.as_str()) else { continue };
            let is_test = is_test || source.is_test;
            // Again where only tests had reached it.
            if reached.get(&path).is_some_and(|before| is_test || !before) {
                continue;
            }
            for line in &source.outline.modules {
                let role_of_child = if line.path.is_some() { Role::Root } else { Role::Module };
                let files = candidates(&path, role, line).into_iter();
                waiting.extend(files.map(|file| (file, role_of_child, is_test || line.is_test)));
            }
            reached.insert(path, is_test);
        }
        Reach(reached)
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    pub(crate) fn is_test_only(&self, path: &str) -> bool {
        self.0.get(path).copied().unwrap_or(false)
    }
}

/// The files with which the compiler begins: cargo's usual ones, and those that the manifest names.
fn roots(folder: &str, manifest: &str, sources: &[Source]) -> Vec<String> {
    let named = manifest
        .lines()
        .filter_map(|line| Some(line.trim().strip_prefix("path = \"")?.trim_end_matches('"')));
    let mut roots: Vec<_> = ["src/lib.rs", "src/main.rs", "build.rs"]
        .into_iter()
        .chain(named)
        .map(|file| format!("{folder}/{file}"))
        .collect();
    // A file directly in one of these folders is a program of its own, and so is a folder with a `main.rs`, unless the
    // manifest lists tests by name.
    let lists_tests = manifest.contains("autotests = false");
    for kind in ["tests", "benches", "examples", "src/bin"] {
        let prefix = format!("{folder}/{kind}/");
        if kind == "tests" && lists_tests {
            roots.extend(names_of("[[test]]", manifest).map(|name| format!("{prefix}{name}.rs")));
            continue;
        }
        let is_root = |path: &&String| {
            let file = path.strip_prefix(&prefix).map(|file| file.trim_end_matches("/main.rs"));
            file.is_some_and(|file| !file.contains('/'))
        };
        roots.extend(sources.iter().map(|source| &source.path).filter(is_root).cloned());
    }
    roots
}

/// The names under the headers of one sort in a manifest.
fn names_of<'a>(header: &str, manifest: &'a str) -> impl Iterator<Item = &'a str> {
    manifest.split(header).skip(1).filter_map(|section| {
        let line = section.lines().find_map(|line| line.trim().strip_prefix("name = \""))?;
        Some(line.trim_end_matches('"'))
    })
}

/// Where the file of a `mod` line can be.
fn candidates(path: &str, role: Role, line: &ModuleLine) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(named) = &line.path {
        return vec![joined(folder, named)];
    }
    let stem = file.trim_end_matches(".rs");
    let home = match role {
        Role::Module if stem != "mod" => format!("{folder}/{stem}"),
        Role::Root | Role::Module => folder.to_owned(),
    };
    let home = line.within.iter().fold(home, |home, module| format!("{home}/{module}"));
    vec![format!("{home}/{}.rs", line.name), format!("{home}/{}/mod.rs", line.name)]
}

/// A path relative to a folder, without `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Workspace;

    #[test]
    fn a_manifest_that_lists_tests_makes_the_others_modules() {
        let files =
            [("a/tests/all.rs", "mod part;"), ("a/tests/part.rs", "mod deep;"), ("a/tests/part/deep.rs", "")];
        let sources = files.map(|(path, text)| Source::parse(path, text));
        let manifest = "autotests = false\n[[test]]\nname = \"all\"\n".to_owned();
        let reach = Reach::of(&sources, &[("a".to_owned(), manifest)]);
        assert!(files.iter().all(|(path, _)| reach.contains(path)));
    }

    #[test]
    fn files_are_reached_through_mod_lines() {
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod cases;\n#[path = \"../extra/x.rs\"]\nmod x;"),
            ("crates/a/src/b.rs", "mod c;"),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/cases.rs", "mod deep;"),
            ("crates/a/src/cases/deep.rs", ""),
            ("crates/a/extra/x.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/tests/all.rs", "mod part;"),
            ("crates/a/tests/part.rs", ""),
            ("crates/a/tests/whole/main.rs", "mod piece;"),
            ("crates/a/tests/whole/piece.rs", "mod detail;"),
            ("crates/a/tests/whole/piece/detail.rs", ""),
        ]);
        let state = |path: &str| (workspace.reach.contains(path), workspace.reach.is_test_only(path));
        for (path, expected) in [
            ("crates/a/src/lib.rs", (true, false)),
            ("crates/a/src/b/c.rs", (true, false)),
            ("crates/a/extra/x.rs", (true, false)),
            ("crates/a/src/cases/deep.rs", (true, true)),
            ("crates/a/tests/part.rs", (true, true)),
            ("crates/a/tests/whole/piece/detail.rs", (true, true)),
            ("crates/a/src/lost.rs", (false, false)),
        ] {
            assert_eq!(state(path), expected, "{path}");
        }
    }
}
