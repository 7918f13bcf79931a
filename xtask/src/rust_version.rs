//! The oldest compiler: pages and templates name the `rust-version` of Cargo.toml, and no dependency needs a newer one.

use crate::{metadata::Package, tools};
use anyhow::{Context, Result};
use std::{fs, path::Path};

/// Files with a text like `Rust 1.90`, `Rust toolchain (1.90 or newer)` or `rust-version = "1.90"`.
const FILES: [&str; 4] = [
    "README.md",
    "docs/guide/install.md",
    "docs/guide/first-operator.md",
    "crates/setpoint/templates/rust/Cargo.toml.tmpl",
];
/// Before a version.
const MARKS: [&str; 3] = ["Rust toolchain (", "rust-version = \"", "Rust "];

/// Texts and dependencies that do not fit to Cargo.toml.
pub(crate) fn problems(packages: &[Package]) -> Result<Vec<String>> {
    let root = tools::root()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let wanted = stated(&manifest).next().context("Cargo.toml has no rust-version")?.to_owned();
    let mut problems = newer(packages, &wanted);
    for file in FILES {
        problems.extend(others(&root, file, &wanted)?);
    }
    Ok(problems)
}

fn newer(packages: &[Package], wanted: &str) -> Vec<String> {
    let needs_more = |package: &&Package| {
        package.rust_version.as_ref().is_some_and(|version| number(version) > number(wanted))
    };
    let say = |package: &Package| {
        let version = package.rust_version.as_deref().unwrap_or_default();
        format!("{} needs Rust {version}, and Cargo.toml says {wanted}", package.title)
    };
    packages.iter().filter(needs_more).map(say).collect()
}

fn others(root: &Path, file: &str, wanted: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
    let others = stated(&text).filter(|version| *version != wanted);
    Ok(others.map(|version| format!("{file} says Rust {version}, and Cargo.toml {wanted}")).collect())
}

/// The versions of Rust that a text names.
fn stated(text: &str) -> impl Iterator<Item = &str> {
    let after =
        MARKS.iter().flat_map(|mark| text.match_indices(mark).map(|(at, _)| &text[at + mark.len()..]));
    let versions = after.map(|rest| {
        let end = rest.find(|letter: char| letter != '.' && !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    });
    versions.filter(|version| version.starts_with("1."))
}

/// `1.85.0` is `1.85`.
fn number(version: &str) -> [u32; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_name_a_version_of_rust_are_found() {
        let text = "Rust 1.90 or newer. A Rust toolchain (1.85 or newer). rust-version = \"1.80\". Rust 2024, Rust is.";
        let mut found: Vec<_> = stated(text).collect();
        found.sort_unstable();
        assert_eq!(found, ["1.80", "1.85", "1.90"]);
    }

    #[test]
    fn dependencies_that_need_a_newer_compiler_are_found() {
        let package = |version: &str| Package {
            title: "a 1.0.0".to_owned(),
            rust_version: Some(version.to_owned()),
            ..Package::default()
        };
        for (version, is_newer) in
            [("1.90", false), ("1.90.0", false), ("1.9", false), ("1.90.1", true), ("1.91", true)]
        {
            assert_eq!(!newer(&[package(version)], "1.90").is_empty(), is_newer, "{version}");
        }
    }
}
