//! A type name means one thing in a crate. `Error` and `Result` are exempt: Rust tells them apart by module, as in
//! `io::Error` and `fmt::Error`.

use super::Finding;
use crate::source::Workspace;
use std::collections::BTreeMap;

const NAMED_BY_MODULE: [&str; 2] = ["Error", "Result"];

pub(super) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut places: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for source in workspace.sources.iter().filter(|source| source.in_src().is_some()) {
        let declared = source.outline.types.iter().filter(|declared| !source.is_test_at(declared.line));
        for declared in declared.filter(|declared| !NAMED_BY_MODULE.contains(&declared.name.as_str())) {
            let name = (source.krate(), declared.name.as_str());
            places.entry(name).or_default().push((source.path.as_str(), declared.line));
        }
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    let of_name = |((krate, name), places): ((&str, &str), Vec<(&str, usize)>)| {
        let (first, line) = places[0];
        let others = places[1..].iter().map(move |(path, at)| Finding {
            path: (*path).to_owned(),
            line: *at,
            place: format!("{krate}:{name}"),
            size: 1,
            problem: format!(
                "`{name}` is also the type at {first}:{line}: rename one of them after what it is"
            ),
        });
        others.collect::<Vec<_>>()
    };
    repeated.flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn a_name_that_two_types_of_a_crate_have_is_found() {
        let (a, b) = ("crates/a/src/a.rs", "crates/a/src/b.rs");
        check(find, &[(a, "struct Next;"), (b, "enum Last {}"), ("crates/b/src/c.rs", "enum Next {}")], &[]);
        check(find, &[(a, "struct Next;"), (b, "#[cfg(test)]\nmod tests { struct Next; }")], &[]);
        check(find, &[(a, "struct Next;"), (b, "impl Next { type Next = u8; }")], &[]);
        check(find, &[(a, "struct Error;"), (b, "enum Error {}")], &[]);
        check(find, &[(a, "struct Next;"), (b, "pub type Next = u8;")], &[("crates/a:Next", 1)]);
    }
}
