//! Known or intended differences: `differences.txt` and `workload-differences.txt`, each with its reason and narrow patterns.

use crate::{compare::Difference, story::Step};
use anyhow::{Context, Result, bail};
use regex::Regex;

static TEXT: &str = include_str!("../differences.txt");
static WORKLOADS: &str = include_str!("../workload-differences.txt");

#[derive(Debug)]
pub struct Known(Vec<Rule>);

/// All patterns of a rule must match.
#[derive(Debug, Default)]
struct Rule {
    reason: String,
    /// Matches some request before the one with the difference.
    earlier: Option<Regex>,
    request: Option<Regex>,
    path: Option<Regex>,
    real: Option<Regex>,
    ours: Option<Regex>,
}

impl Known {
    pub fn read() -> Result<Known> {
        Known::parse(TEXT)
    }

    /// Those of control loops: `request` is matched against every step of the story.
    pub fn read_of_workloads() -> Result<Known> {
        Known::parse(WORKLOADS)
    }

    /// The reason of a known difference at the end of a story of workloads.
    pub fn reason_in_story(&self, steps: &[String], difference: &Difference) -> Option<&str> {
        let matches =
            |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_none_or(|it| it.is_match(text));
        let found = self.0.iter().find(|rule| {
            matches(&rule.path, &difference.path)
                && matches(&rule.real, &difference.real)
                && matches(&rule.ours, &difference.ours)
                && (rule.request.is_none() || steps.iter().any(|step| matches(&rule.request, step)))
        });
        found.map(|rule| rule.reason.as_str())
    }

    /// Empty lines separate rules; `#` begins a reason, `earlier:`, `request:`, `path:`, `real:` and `ours:`
    /// a pattern.
    fn parse(text: &str) -> Result<Known> {
        let mut rules = Vec::new();
        for block in text.split("\n\n") {
            let rule = rule(block.trim()).with_context(|| format!("in differences.txt:\n{block}"))?;
            rules.extend(rule);
        }
        Ok(Known(rules))
    }

    /// The reason of a known difference in the response to the last step; `None` for a new one.
    pub fn reason(&self, steps: &[Step], difference: &Difference) -> Option<&str> {
        let (last, before) = steps.split_last()?;
        let text = last.request.to_string();
        let matches =
            |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_none_or(|it| it.is_match(text));
        let found = self.0.iter().find(|rule| {
            matches(&rule.path, &difference.path)
                && matches(&rule.real, &difference.real)
                && matches(&rule.ours, &difference.ours)
                && matches(&rule.request, &text)
                && (rule.earlier.is_none()
                    || before.iter().any(|step| matches(&rule.earlier, &step.request.to_string())))
        });
        found.map(|rule| rule.reason.as_str())
    }
}

fn rule(block: &str) -> Result<Option<Rule>> {
    let mut rule = Rule::default();
    let mut patterns = 0;
    for line in block.lines() {
        if let Some(reason) = line.strip_prefix('#') {
            rule.reason = format!("{} {}", rule.reason, reason.trim()).trim().to_owned();
            continue;
        }
        let (name, pattern) = line.split_once(": ").context("a line is a reason or `name: pattern`")?;
        let pattern = Some(Regex::new(pattern)?);
        match name {
            "earlier" => rule.earlier = pattern,
            "request" => rule.request = pattern,
            "path" => rule.path = pattern,
            "real" => rule.real = pattern,
            "ours" => rule.ours = pattern,
            _ => bail!("{name} is no name of a pattern"),
        }
        patterns += 1;
    }
    match (patterns, rule.reason.is_empty()) {
        // The heading of the file.
        (0, _) => Ok(None),
        (_, true) => bail!("a rule needs a reason"),
        (1, false) => bail!("one pattern alone is too wide"),
        _ => Ok(Some(rule)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Request;

    #[test]
    fn the_file_can_be_read() {
        Known::read().unwrap();
        Known::read_of_workloads().unwrap();
    }

    #[test]
    fn a_rule_matches_only_where_all_its_patterns_do() {
        let text = "# Heading.\n\n# Because.\nrequest: ^GET '/version\npath: ^body.x$\n\n\
                    # Before.\nearlier: ^PUT\npath: ^body.z$\n";
        let known = Known::parse(text).unwrap();
        let difference = |path: &str| Difference { path: path.into(), real: "1".into(), ours: "2".into() };
        let steps = |requests: &[(&'static str, &str)]| -> Vec<Step> {
            requests
                .iter()
                .map(|(method, path)| Step {
                    request: Request::new(method, *path),
                    compared: true,
                    until: None,
                    real_only: false,
                })
                .collect()
        };
        for (requests, path, expected) in [
            (&[("GET", "/version")][..], "body.x", Some("Because.")),
            (&[("GET", "/version")], "body.y", None),
            (&[("GET", "/api")], "body.x", None),
            (&[("GET", "/version"), ("GET", "/api")], "body.x", None),
            (&[("PUT", "/a"), ("GET", "/api")], "body.z", Some("Before.")),
            (&[("PUT", "/a")], "body.z", None),
        ] {
            assert_eq!(known.reason(&steps(requests), &difference(path)), expected, "{requests:?} {path}");
        }
    }

    #[test]
    fn wide_and_unexplained_rules_are_refused() {
        assert!(Known::parse("# Why.\npath: .*").is_err());
        assert!(Known::parse("path: x\nreal: y").is_err());
    }
}
