//! The audit policy: which requests are recorded, at which level.

use crate::{
    audit_trail::AuditLevel,
    authenticate::Caller,
    authorize::{Attributes, OnResource},
};
use api::{
    field::{Error, ErrorList, Path},
    name::Format,
};
use serde::{Deserialize, Serialize};

// Kubernetes: apiVersion and kind of a policy file.
const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

/// A policy of `audit.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPolicy {
    rules: Vec<AuditRule>,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadAuditPolicy {
    #[error("cannot be read")]
    Unreadable(#[from] std::io::Error),
    #[error("failed decoding: {0}")]
    Undecodable(String),
    #[error("unknown group version field {version}, Kind={kind} in policy")]
    Foreign { version: String, kind: String },
    #[error("{0}")]
    Invalid(ErrorList),
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

/// The stages at which events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

/// How a matching rule records a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recording {
    pub(super) level: AuditLevel,
    pub(super) omitted: Vec<Stage>,
    pub(super) omits_owners: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AuditRule {
    file: RuleFile,
    recording: Recording,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicyFile {
    api_version: String,
    kind: String,
    rules: Vec<RuleFile>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RuleFile {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Stage {
    const ALL: [(Stage, &'static str); 4] = [
        (Stage::RequestReceived, "RequestReceived"),
        (Stage::ResponseStarted, "ResponseStarted"),
        (Stage::ResponseComplete, "ResponseComplete"),
        (Stage::Panic, "Panic"),
    ];

    fn named(text: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|(_, name)| *name == text).map(|(stage, _)| stage)
    }
}

impl AuditPolicy {
    pub fn read(path: &std::path::Path) -> Result<AuditPolicy, BadAuditPolicy> {
        AuditPolicy::parse(&std::fs::read(path)?)
    }

    /// Parses YAML or JSON. Kubernetes: unknown fields are ignored.
    pub fn parse(text: &[u8]) -> Result<AuditPolicy, BadAuditPolicy> {
        let undecodable = |problem: String| BadAuditPolicy::Undecodable(problem);
        let json = schema::yaml::to_json(text).map_err(|error| undecodable(error.to_string()))?.json;
        let file: PolicyFile =
            serde_json::from_slice(&json).map_err(|error| undecodable(error.to_string()))?;
        if (file.api_version.as_str(), file.kind.as_str()) != (API_VERSION, KIND) {
            return Err(BadAuditPolicy::Foreign { version: file.api_version, kind: file.kind });
        }
        file.check().into_result().map_err(BadAuditPolicy::Invalid)?;
        if file.rules.is_empty() {
            return Err(BadAuditPolicy::Empty);
        }
        let rules = file.rules.iter().map(|rule| AuditRule {
            file: rule.clone(),
            recording: Recording {
                level: AuditLevel::named(&rule.level).unwrap_or(AuditLevel::None),
                omitted: file
                    .omit_stages
                    .iter()
                    .chain(&rule.omit_stages)
                    .filter_map(|name| Stage::named(name))
                    .collect(),
                omits_owners: rule.omit_managed_fields.unwrap_or(file.omit_managed_fields),
            },
        });
        Ok(AuditPolicy { rules: rules.collect() })
    }

    /// The first matching rule's level and stages; `None` where nothing is recorded.
    pub(super) fn recording(&self, caller: Option<&Caller>, wanted: &Attributes<'_>) -> Option<&Recording> {
        let found = self.rules.iter().find(|rule| rule.file.matches(caller, wanted))?;
        Some(&found.recording).filter(|recording| recording.level != AuditLevel::None)
    }
}

impl RuleFile {
    fn matches(&self, caller: Option<&Caller>, wanted: &Attributes<'_>) -> bool {
        let has = |list: &[String], text: &str| list.iter().any(|it| it == text);
        let is_user = || caller.is_some_and(|caller| has(&self.users, &caller.name));
        let is_member =
            || caller.is_some_and(|caller| caller.groups.iter().any(|it| has(&self.user_groups, it)));
        let verb = match wanted {
            Attributes::Resource(wanted) => wanted.verb,
            Attributes::Path { verb, .. } => verb,
        };
        if (!self.users.is_empty() && !is_user())
            || (!self.user_groups.is_empty() && !is_member())
            || (!self.verbs.is_empty() && !has(&self.verbs, verb))
        {
            return false;
        }
        let is_of_resources = !self.namespaces.is_empty() || !self.resources.is_empty();
        match wanted {
            Attributes::Resource(wanted) if is_of_resources => {
                (self.namespaces.is_empty() || has(&self.namespaces, wanted.namespace))
                    && (self.resources.is_empty() || self.resources.iter().any(|it| it.name(wanted)))
            }
            Attributes::Path { .. } if is_of_resources => false,
            _ if self.paths.is_empty() => true,
            Attributes::Resource(_) => false,
            Attributes::Path { path, .. } => self.paths.iter().any(|rule| path_matches(rule, path)),
        }
    }
}

fn path_matches(rule: &str, path: &str) -> bool {
    rule == "*" || rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

impl Resources {
    fn name(&self, wanted: &OnResource<'_>) -> bool {
        if self.group != wanted.group && self.group != "*" {
            return false;
        }
        let is_named =
            self.resource_names.is_empty() || self.resource_names.iter().any(|it| it == wanted.name);
        self.resources.is_empty() || (is_named && self.resources.iter().any(|it| covers(it, wanted)))
    }
}

/// `pods`, `pods/log`, `pods/*`, `*/scale` or `*`.
fn covers(rule: &str, wanted: &OnResource<'_>) -> bool {
    let (resource, sub) = (wanted.resource, wanted.subresource);
    match rule.split_once('/') {
        _ if rule == "*" => true,
        None => sub.is_empty() && rule == resource,
        Some((of, "*")) if of == resource => true,
        Some(("*", of)) => !sub.is_empty() && of == sub,
        Some((of, part)) => of == resource && part == sub,
    }
}

impl PolicyFile {
    fn check(&self) -> ErrorList {
        let mut errors = check_stages(&self.omit_stages, &Path::new("omitStages"));
        let rules = Path::new("rules");
        for (at, rule) in self.rules.iter().enumerate() {
            rule.check(&rules.index(at), &mut errors);
        }
        errors
    }
}

impl RuleFile {
    fn check(&self, at: &Path<'_>, errors: &mut ErrorList) {
        let level = at.child("level");
        match self.level.as_str() {
            "" => errors.push(Error::required(&level, "")),
            file if AuditLevel::named(file).is_none() => {
                errors.push(Error::not_supported(&level, file, AuditLevel::ALL.map(AuditLevel::text)));
            }
            _ => {}
        }
        let paths = at.child("nonResourceURLs");
        for (index, path) in self.paths.iter().enumerate().filter(|(_, path)| *path != "*") {
            if !path.starts_with('/') {
                let why = "non-resource URL rules must begin with a '/' character";
                errors.push(Error::invalid(&paths.index(index), path.as_str(), why));
            }
            if path.strip_suffix('*').unwrap_or(path).contains('*') {
                let why = "non-resource URL wildcards '*' must be the final character of the rule";
                errors.push(Error::invalid(&paths.index(index), path.as_str(), why));
            }
        }
        let resources = at.child("resources");
        for it in &self.resources {
            if !it.group.is_empty() && it.group != "*" {
                let problems = Format::Dns1123Subdomain.problems(&it.group).join(",");
                if !problems.is_empty() {
                    errors.push(Error::invalid(&resources.child("group"), it.group.as_str(), problems));
                }
            }
            if !it.resource_names.is_empty() && it.resources.is_empty() {
                let names = serde_json::json!(it.resource_names);
                let why = "using resourceNames requires at least one resource";
                errors.push(Error::invalid(&resources.child("resourceNames"), &names, why));
            }
        }
        errors.extend(check_stages(&self.omit_stages, &at.child("omitStages")));
        if !self.paths.is_empty() && (!self.resources.is_empty() || !self.namespaces.is_empty()) {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(Error::invalid(&paths, &serde_json::json!(self.paths), why));
        }
    }
}

fn check_stages(stages: &[String], at: &Path<'_>) -> ErrorList {
    let unknown = stages.iter().enumerate().filter(|(_, name)| Stage::named(name).is_none());
    let names = Stage::ALL.map(|(_, name)| name).join(",");
    unknown
        .map(|(index, name)| {
            Error::invalid(&at.index(index), name.as_str(), format!("allowed stages are {names}"))
        })
        .collect()
}

#[cfg(test)]
mod tests;
