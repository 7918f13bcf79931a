//! The list of excuses: `check place number`, a line each. Comments say why.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Excuse {
    pub(super) check: String,
    pub(super) place: String,
    /// The largest size that is excused.
    pub(super) allowed: usize,
    pub(super) line: usize,
}

#[derive(Debug)]
pub(super) struct Excuses(Vec<Excuse>);

impl Excuses {
    pub(super) fn parse(text: &str) -> Result<Excuses> {
        let lines = text.lines().enumerate().filter(|(_, line)| is_excuse(line));
        let excuses: Result<Vec<_>> = lines.map(|(at, line)| parse_line(line, at + 1)).collect();
        Ok(Excuses(excuses?))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Excuse> {
        self.0.iter()
    }

    /// The size that is excused at a place.
    pub(super) fn allowed(&self, check: &str, place: &str) -> Option<usize> {
        self.iter()
            .filter(|excuse| excuse.check == check && excuse.place == place)
            .map(|excuse| excuse.allowed)
            .max()
    }
}

/// The list with each number brought down to the size that is there.
pub(super) fn lowered(text: &str, sizes: &BTreeMap<(String, String), usize>) -> Result<String> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if !is_excuse(line) {
            lines.push(line.to_owned());
            continue;
        }
        let Excuse { check, place, allowed, .. } = parse_line(line, at + 1)?;
        let size = sizes.get(&(check.clone(), place.clone())).copied().unwrap_or(0);
        if size > 0 {
            lines.push(format!("{check} {place} {}", size.min(allowed)));
        }
    }
    Ok(lines.join("\n") + "\n")
}

fn is_excuse(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn parse_line(line: &str, at: usize) -> Result<Excuse> {
    let words: Vec<_> = line.split_whitespace().collect();
    ensure!(words.len() == 3, "line {at} of the excuses is not `check place number`: {line}");
    let allowed =
        words[2].parse().with_context(|| format!("line {at} of the excuses ends with no number: {line}"))?;
    Ok(Excuse { check: words[0].to_owned(), place: words[1].to_owned(), allowed, line: at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_to_what_is_there_and_never_rise() {
        let size = |place: &str, size| (("status".to_owned(), place.to_owned()), size);
        let sizes = BTreeMap::from([size("less", 1), size("more", 9)]);
        let text = "# why\n\nstatus less 3\nstatus more 3\nstatus gone 3\n";
        assert_eq!(lowered(text, &sizes).unwrap(), "# why\n\nstatus less 1\nstatus more 3\n");
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        for line in ["status a.rs", "status a.rs many", "status a.rs 3 because"] {
            assert!(Excuses::parse(line).is_err(), "{line}");
        }
    }
}
