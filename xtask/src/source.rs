//! The Rust files of the workspace, cut into tokens, with what each declares.

mod outline;
mod paths;
mod reach;
mod token;

pub(crate) use outline::{Function, Outline};
pub(crate) use paths::{PathUse, imports, module_path, paths};
pub(crate) use reach::Reach;

use anyhow::{Context, Result};
use std::{fs, path::Path};
use token::{Token, TokenKind};

/// Where the crates of the workspace lie: those below a folder, or the folder itself.
const MEMBERS: [&str; 3] = ["crates/*", "examples/*", "xtask"];

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the root of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Everything but comments.
    pub(crate) code: Vec<Token>,
    pub(crate) comments: Vec<Token>,
    pub(crate) outline: Outline,
    /// All of the file is compiled for tests or benchmarks only.
    pub(crate) is_test: bool,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Source {
        let (comments, code): (Vec<_>, Vec<_>) =
            token::tokens(text).into_iter().partition(|token| token.kind == TokenKind::Comment);
        let outline = Outline::of(text, &code);
        let is_test = is_test_path(path);
        Source { path: path.to_owned(), text: text.to_owned(), code, comments, outline, is_test }
    }

    pub(crate) fn text_of(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// The token of the code at a place; nothing behind the last one.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.code.get(at).map_or("", |token| self.text_of(token))
    }

    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// How many of its lines are compiled for tests only.
    pub(crate) fn test_lines(&self) -> usize {
        match self.is_test {
            true => self.lines(),
            false => self.outline.test_lines.iter().map(|lines| lines.clone().count()).sum(),
        }
    }

    /// Whether a line is compiled for tests only.
    pub(crate) fn is_test_at(&self, line: usize) -> bool {
        self.is_test || self.outline.is_test_at(line)
    }

    /// The folder of its crate: `crates/server`, `xtask`.
    pub(crate) fn krate(&self) -> &str {
        let depth =
            if self.path.starts_with("crates/") || self.path.starts_with("examples/") { 2 } else { 1 };
        let end = self.path.match_indices('/').nth(depth - 1).map_or(self.path.len(), |(at, _)| at);
        &self.path[..end]
    }

    /// Its path below `src` of its crate; `None` for tests, benchmarks and the like.
    pub(crate) fn in_src(&self) -> Option<&str> {
        self.path[self.krate().len()..].strip_prefix("/src/")
    }
}

fn is_test_path(path: &str) -> bool {
    ["/tests/", "/benches/"].iter().any(|folder| path.contains(folder)) || path.ends_with("/tests.rs")
}

/// All files, sorted by path.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) sources: Vec<Source>,
    pub(crate) reach: Reach,
    /// The folders of the crates, each with its Cargo.toml.
    pub(crate) manifests: Vec<(String, String)>,
}

impl Workspace {
    pub(crate) fn read(root: &Path) -> Result<Workspace> {
        let (mut sources, mut manifests) = (Vec::new(), Vec::new());
        for member in MEMBERS {
            for folder in folders(root, member)? {
                let manifest = root.join(&folder).join("Cargo.toml");
                let Ok(manifest) = fs::read_to_string(manifest) else { continue };
                manifests.push((folder.clone(), manifest));
                read_folder(root, &folder, &mut sources)?;
            }
        }
        Ok(Workspace::new(sources, manifests))
    }

    fn new(mut sources: Vec<Source>, manifests: Vec<(String, String)>) -> Workspace {
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        let reach = Reach::of(&sources, &manifests);
        for source in &mut sources {
            source.is_test |= reach.is_test_only(&source.path);
        }
        Workspace { sources, reach, manifests }
    }

    /// A workspace of these files, where every crate has an empty Cargo.toml.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Workspace {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::parse(path, text)).collect();
        let manifests: std::collections::BTreeMap<_, _> =
            sources.iter().map(|source| (source.krate().to_owned(), String::new())).collect();
        Workspace::new(sources, manifests.into_iter().collect())
    }

    pub(crate) fn source(&self, path: &str) -> Option<&Source> {
        let at = self.sources.binary_search_by(|source| source.path.as_str().cmp(path)).ok()?;
        self.sources.get(at)
    }
}

fn folders(root: &Path, member: &str) -> Result<Vec<String>> {
    let Some(parent) = member.strip_suffix("/*") else { return Ok(vec![member.to_owned()]) };
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join(parent)).with_context(|| format!("cannot list {parent}"))? {
        folders.push(format!("{parent}/{}", entry?.file_name().to_string_lossy()));
    }
    Ok(folders)
}

fn read_folder(root: &Path, folder: &str, sources: &mut Vec<Source>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_folder(root, &path, sources)?;
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            sources.push(Source::parse(&path, &text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_knows_its_crate_and_what_of_it_is_for_tests() {
        let source = Source::parse("crates/server/src/a/b.rs", "fn f() {}\n\n#[cfg(test)]\nmod tests {\n}\n");
        assert_eq!((source.krate(), source.in_src()), ("crates/server", Some("a/b.rs")));
        assert_eq!((source.lines(), source.test_lines()), (5, 3));
        assert!(!source.is_test_at(1) && source.is_test_at(4));
        let test = Source::parse("xtask/tests/all.rs", "fn f() {}\n");
        assert_eq!((test.krate(), test.in_src(), test.test_lines()), ("xtask", None, 1));
    }
}
