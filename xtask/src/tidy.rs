//! `cargo xtask tidy`: rules of style and structure that the compiler does not know.
//!
//! A rule is a file of this folder and a line of [`CHECKS`]. What broke a rule before the rule was there is listed in
//! `xtask/tidy-excuses.txt`, with its size; the list can only shrink.

mod dead_files;
mod excuses;
mod file_length;
mod first_line;
mod function_length;
mod module_order;
mod riddles;
mod status;
mod store_writes;
mod type_names;

pub(crate) use module_order::{KRATE as ORDERED_CRATE, order as module_order};

use crate::{licences, map, metadata, rust_version, source::Workspace, tools};
use anyhow::{Context, Result};
use excuses::Excuses;
use std::{collections::BTreeMap, fs, process::ExitCode};

const EXCUSES: &str = "xtask/tidy-excuses.txt";

/// A rule.
struct Check {
    /// As the list of excuses names it.
    name: &'static str,
    find: fn(&Workspace) -> Vec<Finding>,
}

const CHECKS: [Check; 9] = [
    Check { name: "file-length", find: file_length::find },
    Check { name: "function-length", find: function_length::find },
    Check { name: "first-line", find: first_line::find },
    Check { name: "type-names", find: type_names::find },
    Check { name: "dead-files", find: dead_files::find },
    Check { name: "module-order", find: module_order::find },
    Check { name: "status", find: status::find },
    Check { name: "store-writes", find: store_writes::find },
    Check { name: "riddles", find: riddles::find },
];

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    /// What an excuse names: a file, a function, a crate, a pair of modules. The sizes of findings at one place add up.
    place: String,
    size: usize,
    /// What is wrong, and what to do about it.
    problem: String,
}

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let problems = match arguments {
        [] => problems()?,
        ["--lower"] => {
            lower()?;
            problems()?
        }
        _ => anyhow::bail!("usage: cargo xtask tidy [--lower]"),
    };
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that is not as the rules say, in words.
pub(crate) fn problems() -> Result<Vec<String>> {
    let root = tools::root()?;
    let workspace = Workspace::read(&root)?;
    let excuses = Excuses::parse(&fs::read_to_string(root.join(EXCUSES)).context(EXCUSES)?)?;
    let mut problems = judge(&findings(&workspace), &excuses);
    problems.extend(map::problems(&root, &workspace)?);
    let packages = metadata::packages()?;
    problems.extend(licences::problems(&packages)?);
    problems.extend(rust_version::problems(&packages)?);
    Ok(problems)
}

/// Brings the numbers of the excuses down to what is there, and takes out those that are not needed. No number rises.
fn lower() -> Result<()> {
    let root = tools::root()?;
    let text = fs::read_to_string(root.join(EXCUSES)).context(EXCUSES)?;
    let sizes = sizes(&findings(&Workspace::read(&root)?));
    Ok(fs::write(root.join(EXCUSES), excuses::lowered(&text, &sizes)?)?)
}

type Findings = Vec<(&'static str, Finding)>;

fn findings(workspace: &Workspace) -> Findings {
    let found = CHECKS.iter().map(|check| (check.name, (check.find)(workspace)));
    found.flat_map(|(name, findings)| findings.into_iter().map(move |finding| (name, finding))).collect()
}

/// How much of each check there is at each place.
fn sizes(findings: &Findings) -> BTreeMap<(String, String), usize> {
    let mut sizes = BTreeMap::new();
    for (check, finding) in findings {
        *sizes.entry(((*check).to_owned(), finding.place.clone())).or_default() += finding.size;
    }
    sizes
}

/// What has no excuse or more than its excuse allows, and excuses for more than is there.
fn judge(findings: &Findings, excuses: &Excuses) -> Vec<String> {
    let sizes = sizes(findings);
    let mut problems = Vec::new();
    for (check, finding) in findings {
        let Finding { path, line, place, problem, .. } = finding;
        let size = sizes[&((*check).to_owned(), place.clone())];
        match excuses.allowed(check, place) {
            Some(allowed) if size <= allowed => {}
            Some(allowed) => problems.push(format!(
                "{path}:{line}: {problem} ({check} {place} is {size}, and {allowed} is excused)"
            )),
            None => problems.push(format!("{path}:{line}: {problem} ({check} {place} {size})")),
        }
    }
    for excuse in excuses.iter() {
        let size = sizes.get(&(excuse.check.clone(), excuse.place.clone())).copied().unwrap_or(0);
        if size < excuse.allowed {
            problems.push(format!(
                "{EXCUSES}:{}: {} {} excuses {}, and there are {size}: run `cargo xtask tidy --lower`",
                excuse.line, excuse.check, excuse.place, excuse.allowed
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a check over files and compares the places that it finds, with their sizes.
    pub(super) fn check(
        find: fn(&Workspace) -> Vec<Finding>,
        files: &[(&str, &str)],
        expected: &[(&str, usize)],
    ) {
        let findings = find(&Workspace::of(files));
        let found: Vec<_> = findings.iter().map(|finding| (finding.place.as_str(), finding.size)).collect();
        assert_eq!(found, expected, "{files:?}");
    }

    fn judged(excuses: &str) -> Vec<String> {
        let finding = |line| Finding {
            path: "a.rs".to_owned(),
            line,
            place: "a.rs".to_owned(),
            size: 1,
            problem: "wrong".to_owned(),
        };
        judge(&vec![("status", finding(3)), ("status", finding(7))], &Excuses::parse(excuses).unwrap())
    }

    #[test]
    fn what_is_found_needs_an_excuse_of_its_size() {
        assert_eq!(judged("status a.rs 2"), Vec::<String>::new());
        assert_eq!(judged(""), ["a.rs:3: wrong (status a.rs 2)", "a.rs:7: wrong (status a.rs 2)"]);
        let beyond = "(status a.rs is 2, and 1 is excused)";
        assert_eq!(
            judged("status a.rs 1"),
            [format!("a.rs:3: wrong {beyond}"), format!("a.rs:7: wrong {beyond}")]
        );
    }

    #[test]
    fn an_excuse_for_more_than_is_there_must_be_lowered() {
        let todo = "run `cargo xtask tidy --lower`";
        assert_eq!(
            judged("# why\nstatus a.rs 3\nstatus b.rs 1\nriddles a.rs 1"),
            [
                format!("{EXCUSES}:2: status a.rs excuses 3, and there are 2: {todo}"),
                format!("{EXCUSES}:3: status b.rs excuses 1, and there are 0: {todo}"),
                format!("{EXCUSES}:4: riddles a.rs excuses 1, and there are 0: {todo}"),
            ]
        );
    }
}
