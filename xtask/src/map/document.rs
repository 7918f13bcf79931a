//! The part of ARCHITECTURE.md that holds the map, between two markers.

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- map: `cargo xtask map --write` writes what follows -->\n";
const END: &str = "<!-- end of the map -->";
/// Sizes may be so far from those in the document, in lines and as a fraction, before it has to be written again.
const FEW_LINES: usize = 200;
const FRACTION: usize = 10;

pub(super) fn map_in(document: &str) -> Result<&str> {
    let (_, after) =
        document.split_once(BEGIN).with_context(|| format!("the document has no line {BEGIN}"))?;
    let (map, _) = after.split_once(END).with_context(|| format!("the document has no line {END}"))?;
    Ok(map)
}

/// The document with another map.
pub(super) fn replace(document: &str, map: &str) -> Result<String> {
    let (before, after) =
        document.split_once(BEGIN).with_context(|| format!("the document has no line {BEGIN}"))?;
    let (_, after) = after.split_once(END).with_context(|| format!("the document has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n{map}\n{END}{after}"))
}

/// Whether two maps have the same words, and numbers that are not far from each other.
pub(super) fn is_alike(one: &str, other: &str) -> bool {
    let (one, other): (Vec<_>, Vec<_>) =
        (one.split_whitespace().collect(), other.split_whitespace().collect());
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_word_alike(one, other))
}

fn is_word_alike(one: &str, other: &str) -> bool {
    match (one.parse::<usize>(), other.parse::<usize>()) {
        (Ok(one), Ok(other)) => one.abs_diff(other) <= FEW_LINES.max(one / FRACTION),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_replaced_between_its_markers() {
        let document = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let replaced = replace(&document, "new").unwrap();
        assert_eq!(replaced, format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert_eq!(map_in(&replaced).unwrap().trim(), "new");
        assert!(map_in("no markers").is_err());
    }

    #[test]
    fn sizes_may_differ_a_little_and_words_not_at_all() {
        for (one, other, expected) in [
            ("| api | 4700 |", "| api | 4800 |", true),
            ("| api | 4700 |", "| api | 5300 |", false),
            ("| server | 47000 |", "| server | 50000 |", true),
            ("| api | 4700 |", "| store | 4700 |", false),
            ("| api | 4700 |", "| api | 4700 | world |", false),
        ] {
            assert_eq!(is_alike(one, other), expected, "{one} {other}");
        }
    }
}
