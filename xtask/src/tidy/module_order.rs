//! In the server, a module uses only modules that stand below it in `xtask/server-modules.txt`.

use super::Finding;
use crate::{
    dependencies::modules::{self, Edge},
    source::Workspace,
};

const ORDER: &str = include_str!("../../server-modules.txt");
const FILE: &str = "xtask/server-modules.txt";
pub(crate) const KRATE: &str = "crates/server";

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    check(workspace, &lines(ORDER))
}

/// The modules of the server from the top down.
pub(crate) fn order() -> impl Iterator<Item = &'static str> {
    lines(ORDER).into_iter().flatten()
}

/// The names on each line; what follows `#` says why.
fn lines(text: &str) -> Vec<Vec<&str>> {
    let names =
        |line| str::split(line, '#').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>();
    text.lines().map(names).collect()
}

fn check(workspace: &Workspace, lines: &[Vec<&str>]) -> Vec<Finding> {
    let place = |module: &str| lines.iter().position(|names| names.contains(&module));
    let found = modules::of(workspace, KRATE);
    let mut findings = Vec::new();
    for module in found.iter().filter(|module| place(&module.name).is_none()) {
        findings
            .push(misplaced(&module.name, &format!("the module `{}` has no line: give it one", module.name)));
    }
    for gone in lines.iter().flatten().filter(|name| !found.iter().any(|module| module.name == **name)) {
        findings.push(misplaced(gone, &format!("there is no module `{gone}`: take it out")));
    }
    for Edge { from, to, path, line } in found.iter().flat_map(|module| &module.uses) {
        if let (Some(user), Some(used)) = (place(from), place(to))
            && user >= used
        {
            findings.push(Finding {
                path: path.clone(),
                line: *line,
                place: format!("{from}->{to}"),
                size: 1,
                problem: format!("`{from}` uses `{to}`, which does not stand below it in {FILE}"),
            });
        }
    }
    findings
}

fn misplaced(module: &str, problem: &str) -> Finding {
    Finding { path: FILE.to_owned(), line: 1, place: module.to_owned(), size: 1, problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(order: &str) -> Vec<String> {
        let workspace = Workspace::of(&[
            ("crates/server/src/lib.rs", "mod verbs;\nmod write;\nuse write::Checked;"),
            ("crates/server/src/verbs.rs", "use crate::write::create;\nuse crate::verbs::get;"),
            ("crates/server/src/write.rs", "mod commit;"),
            ("crates/server/src/write/commit.rs", "#[cfg(test)]\nmod tests { use crate::verbs::Call; }"),
        ]);
        check(&workspace, &lines(order)).into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn uses_of_modules_above_are_found() {
        assert_eq!(places("verbs # what clients ask for\nwrite"), Vec::<String>::new());
        assert_eq!(places("write\nverbs"), ["verbs->write"]);
        assert_eq!(places("write verbs"), ["verbs->write"]);
        assert_eq!(places("verbs\nwrite\nattic"), ["attic"]);
        assert_eq!(places("verbs"), ["write"]);
    }
}
