//! Licences of dependencies: each must be among those that `deny.toml` allows, and `docs/licences.md` lists them. Needs
//! neither cargo-deny nor a network.

use crate::{
    metadata::{self, Package},
    tools,
};
use anyhow::{Context, Result, bail};
use std::{fs, process::ExitCode};

const LIST: &str = "deny.toml";
const PAGE: &str = "docs/licences.md";

/// `cargo xtask licences`: prints the page, or writes it.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let page = page(&metadata::packages()?);
    match arguments {
        [] => print!("{page}"),
        ["--write"] => fs::write(tools::root()?.join(PAGE), page).context(PAGE)?,
        _ => bail!("usage: cargo xtask licences [--write]"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Dependencies whose licence `deny.toml` does not allow, licences there that no dependency needs, and whether the page
/// lists other dependencies.
pub(crate) fn problems(packages: &[Package]) -> Result<Vec<String>> {
    let root = tools::root()?;
    let text = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let mut problems = check(packages, &allowed(&text));
    if fs::read_to_string(root.join(PAGE)).ok() != Some(page(packages)) {
        problems.push(format!(
            "{PAGE}:1: it does not list the present dependencies: run `cargo xtask licences --write`"
        ));
    }
    Ok(problems)
}

/// Each dependency with its licence, by name.
fn page(packages: &[Package]) -> String {
    let others = packages.iter().filter(|package| !package.is_own);
    let mut lines: Vec<_> = others
        .map(|Package { title, licence, .. }| {
            format!("| {title} | {} |\n", licence.as_deref().unwrap_or("none is named"))
        })
        .collect();
    lines.sort();
    format!(
        "# Licences of dependencies\n\nSetpoint itself is under the licence in [LICENSE](../LICENSE). These are the crates that \
         are compiled on Linux,\nalso those that only builds and tests need, with the licences that their manifests name. \
         `deny.toml` says which\nlicences are allowed; `cargo xtask licences --write` writes this page, and `cargo xtask tidy` \
         compares it.\n\n| crate | licence |\n|---|---|\n{}",
        lines.concat()
    )
}

fn check(packages: &[Package], allowed: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    for Package { title, licence, is_own, .. } in packages {
        match licence {
            Some(licence) if is_allowed(licence, allowed) => {}
            Some(licence) => problems.push(format!("{title}: {LIST} does not allow its licence {licence}")),
            None if *is_own => {
                problems.push(format!("{title}: `license.workspace = true` is missing in its manifest"))
            }
            None => problems.push(format!("{title}: its manifest names no licence")),
        }
    }
    let needed = |licence: &&&str| {
        let others: Vec<_> = allowed.iter().copied().filter(|other| *other != **licence).collect();
        packages.iter().flat_map(|package| &package.licence).any(|licence| !is_allowed(licence, &others))
    };
    let unneeded = allowed.iter().filter(|licence| !needed(licence));
    problems.extend(unneeded.map(|licence| format!("{LIST} allows {licence}, and no dependency needs it")));
    problems
}

/// The list `allow` of the section `licenses`.
fn allowed(text: &str) -> Vec<&str> {
    let section = text.split_once("[licenses]").map_or("", |(_, section)| section);
    let list = section.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']'));
    let lines = list.map_or("", |(list, _)| list).lines();
    lines.flat_map(|line| line.split('#').next().unwrap_or_default().split('"').skip(1).step_by(2)).collect()
}

/// Whether an SPDX expression can be met with the allowed licences. Old manifests write `/` for `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = ["(", ")", "/"]
        .iter()
        .fold(expression.to_owned(), |text, sign| text.replace(sign, &format!(" {sign} ")));
    let spaced = spaced.replace(" WITH ", "_WITH_");
    let words: Vec<_> = spaced.split_whitespace().map(|word| word.replace("_WITH_", " WITH ")).collect();
    let mut parser = Parser { words: &words, at: 0, allowed };
    parser.any() && parser.at == words.len()
}

struct Parser<'a> {
    words: &'a [String],
    at: usize,
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn next_is(&mut self, words: &[&str]) -> bool {
        let is = self.words.get(self.at).is_some_and(|word| words.contains(&word.as_str()));
        self.at += usize::from(is);
        is
    }

    fn any(&mut self) -> bool {
        let mut is_met = self.all();
        while self.next_is(&["OR", "/"]) {
            is_met |= self.all();
        }
        is_met
    }

    fn all(&mut self) -> bool {
        let mut is_met = self.one();
        while self.next_is(&["AND"]) {
            is_met &= self.one();
        }
        is_met
    }

    fn one(&mut self) -> bool {
        if self.next_is(&["("]) {
            let is_met = self.any();
            return self.next_is(&[")"]) && is_met;
        }
        let word = self.words.get(self.at).map_or("", String::as_str);
        self.at += 1;
        self.allowed.contains(&word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_by_the_allowed_licences() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT/GPL-3.0", true),
            ("GPL-3.0 / MIT", true),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("ISC AND (GPL-3.0 OR AGPL-3.0)", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("MIT OR", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &["MIT", "ISC"]), expected, "{expression}");
        }
    }

    #[test]
    fn the_page_lists_the_crates_of_others_by_name() {
        let package = |title: &str, licence: Option<&str>, is_own| Package {
            title: title.to_owned(),
            licence: licence.map(str::to_owned),
            is_own,
            ..Package::default()
        };
        let page = page(&[
            package("b 2.0.0", Some("ISC"), false),
            package("own 0.1.0", Some("Apache-2.0"), true),
            package("a 1.0.0", None, false),
        ]);
        assert!(page.ends_with("|---|---|\n| a 1.0.0 | none is named |\n| b 2.0.0 | ISC |\n"), "{page}");
    }

    #[test]
    fn the_list_is_that_of_deny_toml() {
        let text =
            "[bans]\nallow = [\"x\"]\n[licenses]\n# why\nallow = [\n  \"MIT\", # \"no\"\n  \"ISC\",\n]\n";
        assert_eq!(allowed(text), ["MIT", "ISC"]);
        let package = |licence: Option<&str>| Package {
            title: "a 1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            ..Package::default()
        };
        assert_eq!(
            check(&[package(Some("MIT")), package(Some("ISC"))], &allowed(text)),
            Vec::<String>::new()
        );
        assert_eq!(
            check(&[package(Some("MIT AND Zlib")), package(None), package(Some("ISC"))], &allowed(text)),
            [
                "a 1.0.0: deny.toml does not allow its licence MIT AND Zlib",
                "a 1.0.0: its manifest names no licence",
            ]
        );
    }
}
