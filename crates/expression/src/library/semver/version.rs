//! Parses a version, with the error texts of the library that Kubernetes uses.

use std::cmp::Ordering;

use api::go::quote;

#[derive(Debug)]
pub(super) struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    /// The part after a dash. The part after a plus is ignored and not kept.
    prerelease: Vec<Identifier>,
}

/// Numbers come before words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    pub(super) fn parse(text: &str) -> Result<Version, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<_> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "major", "Major")?, number(minor, "minor", "Minor")?);
        let (rest, build) = split(rest, '+');
        let (patch, prerelease) = split(rest, '-');
        let patch = number(patch, "patch", "Patch")?;
        let prerelease =
            prerelease.map_or_else(|| Ok(Vec::new()), |text| text.split('.').map(identifier).collect())?;
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_word(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
        }
        Ok(Version { major, minor, patch, prerelease })
    }

    /// Also takes `v1`, `1.2` and `01.02.03`.
    pub(super) fn parse_tolerantly(text: &str) -> Result<Version, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<_> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Version::parse(&parts.join("."))
    }

    pub(super) fn cmp(&self, other: &Version) -> Ordering {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        let release = |version: &Version| version.prerelease.is_empty();
        // A release is greater than its pre-releases.
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| release(self).cmp(&release(other)))
            .then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn number(text: &str, name: &str, capitalised: &str) -> Result<u64, String> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{capitalised} number must not contain leading zeroes {}", quote(text)));
    }
    whole(text)
}

/// As Go's `strconv.ParseUint` reads digits.
fn whole(digits: &str) -> Result<u64, String> {
    let problem = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
    digits.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {problem}", quote(digits)))
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            let quoted = quote(text);
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {quoted}"));
        }
        return whole(text).map(Identifier::Number);
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Identifier::Word(text.to_owned()))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b == b'-' || b.is_ascii_alphanumeric())
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    let zero = if trimmed.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
    format!("{zero}{trimmed}")
}
