//! The pod-security labels of a namespace: level and version to enforce, audit and warn about.

use api::{
    field::{Error, ErrorList, Path},
    object,
};
use serde_json::Value;
use std::fmt;

const PREFIX: &str = "pod-security.kubernetes.io/";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SecurityLevel {
    Privileged,
    Baseline,
    Restricted,
}

/// Version of the rules. Any minor version is older than the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StandardVersion {
    /// The number after `v1.`
    Minor(u32),
    Latest,
}

/// Shown as `restricted:v1.30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub(super) level: SecurityLevel,
    pub(super) version: StandardVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamespacePolicy {
    pub(super) enforce: Standard,
    pub(super) audit: Standard,
    pub(super) warn: Standard,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            SecurityLevel::Privileged => "privileged",
            SecurityLevel::Baseline => "baseline",
            SecurityLevel::Restricted => "restricted",
        };
        match self.version {
            StandardVersion::Minor(minor) => write!(f, "{level}:v1.{minor}"),
            StandardVersion::Latest => write!(f, "{level}:latest"),
        }
    }
}

impl SecurityLevel {
    fn parse(text: &str) -> Option<SecurityLevel> {
        match text {
            "privileged" => Some(SecurityLevel::Privileged),
            "baseline" => Some(SecurityLevel::Baseline),
            "restricted" => Some(SecurityLevel::Restricted),
            _ => None,
        }
    }
}

impl StandardVersion {
    fn parse(text: &str) -> Option<StandardVersion> {
        if text == "latest" {
            return Some(StandardVersion::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_canonical = minor == "0" || !minor.starts_with('0');
        let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        minor.parse().ok().filter(|_| is_canonical && is_number).map(StandardVersion::Minor)
    }
}

impl NamespacePolicy {
    /// Whether all three levels are privileged, so that nothing is checked.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn]
            .iter()
            .all(|standard| standard.level == SecurityLevel::Privileged)
    }

    /// Reads the labels of a namespace, with their errors. An invalid label enforces restricted, and
    /// neither audits nor warns.
    pub(super) fn of(namespace: &Value) -> (NamespacePolicy, ErrorList) {
        let mut errors = ErrorList::new();
        let enforced = read(namespace, "enforce", SecurityLevel::Restricted, &mut errors);
        let audited = read(namespace, "audit", SecurityLevel::Privileged, &mut errors);
        let warned = read(namespace, "warn", SecurityLevel::Privileged, &mut errors);
        let mut warn = warned.standard;
        // A namespace that enforces a level also warns about templates that violate it.
        if warned.level == LevelLabel::Missing
            && enforced.level == LevelLabel::Valid
            && enforced.standard.level > warn.level
        {
            warn.level = enforced.standard.level;
            if !warned.has_version {
                warn.version = enforced.standard.version;
            }
        }
        (NamespacePolicy { enforce: enforced.standard, audit: audited.standard, warn }, errors)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelLabel {
    Missing,
    Valid,
    Invalid,
}

struct ModeLabels {
    standard: Standard,
    level: LevelLabel,
    has_version: bool,
}

fn read(namespace: &Value, mode: &str, otherwise: SecurityLevel, errors: &mut ErrorList) -> ModeLabels {
    let metadata = Path::new("metadata");
    let path = metadata.child("labels");
    let (level_label, version_label) = (format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version"));
    let mut standard = Standard { level: SecurityLevel::Privileged, version: StandardVersion::Latest };
    let mut found = LevelLabel::Missing;
    if let Some(text) = object::label(namespace, &level_label) {
        let level = SecurityLevel::parse(text);
        found = if level.is_some() { LevelLabel::Valid } else { LevelLabel::Invalid };
        standard.level = level.unwrap_or(otherwise);
        if level.is_none() {
            let detail = "must be one of privileged, baseline, restricted";
            errors.push(Error::invalid(&path.key(&level_label), text, detail));
        }
    }
    let version = object::label(namespace, &version_label);
    if let Some(text) = version {
        match StandardVersion::parse(text) {
            Some(version) => standard.version = version,
            None => {
                let detail = "must be \"latest\" or \"v1.x\"";
                errors.push(Error::invalid(&path.key(&version_label), text, detail));
            }
        }
    }
    ModeLabels { standard, level: found, has_version: version.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_set_the_standards_of_a_namespace() {
        for (labels, expected) in [
            (json!({}), "privileged:latest privileged:latest privileged:latest"),
            (json!({"enforce": "baseline"}), "baseline:latest privileged:latest baseline:latest"),
            (
                json!({"enforce": "restricted", "enforce-version": "v1.24", "warn": "baseline"}),
                "restricted:v1.24 privileged:latest baseline:latest",
            ),
            (
                json!({"enforce": "restricted", "enforce-version": "v1.24"}),
                "restricted:v1.24 privileged:latest restricted:v1.24",
            ),
            (
                json!({"enforce": "Nonsense", "audit": "nonsense", "warn": "nonsense"}),
                "restricted:latest privileged:latest privileged:latest, 3 errors",
            ),
            (
                json!({"enforce": "baseline", "enforce-version": "v1.01", "warn-version": "v1.2"}),
                "baseline:latest privileged:latest baseline:v1.2, 1 errors",
            ),
        ] {
            let labels: serde_json::Map<String, Value> = labels
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (format!("{PREFIX}{name}"), value.clone()))
                .collect();
            let (policy, errors) = NamespacePolicy::of(&json!({"metadata": {"labels": labels}}));
            let mut shown = format!("{} {} {}", policy.enforce, policy.audit, policy.warn);
            if let Err(errors) = errors.into_result() {
                shown += &format!(", {} errors", errors.iter().count());
            }
            assert_eq!(shown, expected, "{labels:?}");
        }
    }
}
