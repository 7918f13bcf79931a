//! Licences of dependencies: each must be among those that `deny.toml` allows. Needs neither cargo-deny nor a network.

use crate::{metadata::Package, tools};
use anyhow::{Context, Result};
use std::fs;

const LIST: &str = "deny.toml";

/// Dependencies whose licence `deny.toml` does not allow, and licences there that no dependency needs.
pub(crate) fn problems(packages: &[Package]) -> Result<Vec<String>> {
    let text = fs::read_to_string(tools::root()?.join(LIST)).context(LIST)?;
    Ok(check(packages, &allowed(&text)))
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
