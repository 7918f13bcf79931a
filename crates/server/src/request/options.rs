//! A query string in, the options of a request out.

use api::{field_selector, go, label_selector, status::Status};
use schema::decode::FieldValidation;
use std::{collections::BTreeMap, num::IntErrorKind, time::Duration};

use super::path::decode;

/// What a query asks for beside the target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) labels: label_selector::Selector,
    pub(crate) fields: field_selector::Selector,
    /// As given; `""` where it was not.
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<Match>,
    pub(crate) limit: u64,
    pub(crate) continue_token: String,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    /// What a dry run is to leave out; `All` is the only choice.
    pub(crate) dry_run: Option<String>,
    pub(crate) field_manager: String,
    pub(crate) validation: FieldValidation,
    /// A `fieldValidation` that is none.
    pub(crate) bad_validation: Option<String>,
    pub(crate) force: bool,
    pub(crate) pretty: bool,
    /// What only some verbs look at.
    pub(crate) rest: BTreeMap<String, String>,
}

/// `resourceVersionMatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
    /// There is none of that name.
    Unknown(String),
}

impl Match {
    pub(crate) fn text(&self) -> &str {
        match self {
            Match::Exact => "Exact",
            Match::NotOlderThan => "NotOlderThan",
            Match::Unknown(text) => text,
        }
    }
}

impl Options {
    pub(crate) fn parse(query: &str) -> Result<Options, Status> {
        let mut options = Options::default();
        let mut seen: Vec<String> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part: &str| {
                decode(&part.replace('+', " "))
                    .ok_or_else(|| Status::bad_request(format!("invalid URL escape in {part:?}")))
            };
            let key = text(key)?;
            // Kubernetes: of several, the first.
            if !seen.contains(&key) {
                options.set(&key, text(value)?)?;
                seen.push(key);
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), Status> {
        match key {
            "labelSelector" => {
                self.labels = value.parse().map_err(|error| Status::bad_request(format!("{error}")))?;
            }
            "fieldSelector" => {
                self.fields = value.parse().map_err(|error| Status::bad_request(format!("{error}")))?;
            }
            "resourceVersion" => self.resource_version = value,
            "resourceVersionMatch" => self.version_match = version_match(value),
            "limit" => self.limit = u64::try_from(integer(&value)?).unwrap_or(0),
            "continue" => self.continue_token = value,
            "watch" => self.watch = flag(&value),
            "allowWatchBookmarks" => self.bookmarks = flag(&value),
            "sendInitialEvents" => self.initial_events = Some(flag(&value)),
            "timeoutSeconds" => {
                // Kubernetes: none is as good as zero, and less is over at once.
                let seconds = Some(integer(&value)?).filter(|seconds| *seconds != 0);
                self.timeout = seconds.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs()));
            }
            "dryRun" => self.dry_run = Some(value),
            "fieldManager" => self.field_manager = value,
            "fieldValidation" => match validation(&value) {
                Some(validation) => self.validation = validation,
                None => self.bad_validation = Some(value),
            },
            "force" => self.force = flag(&value),
            "pretty" => self.pretty = flag(&value),
            _ => drop(self.rest.insert(key.to_owned(), value)),
        }
        Ok(())
    }
}

/// Kubernetes: a flag that is named is set, unless it says otherwise.
pub(crate) fn flag(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "0" | "false")
}

/// A number as Go reads it, or its complaint.
pub(crate) fn integer(value: &str) -> Result<i64, Status> {
    value.parse::<i64>().map_err(|error| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Status::bad_request(format!("strconv.ParseInt: parsing {}: {problem}", go::quote(value)))
    })
}

fn version_match(value: String) -> Option<Match> {
    match value.as_str() {
        "" => None,
        "Exact" => Some(Match::Exact),
        "NotOlderThan" => Some(Match::NotOlderThan),
        _ => Some(Match::Unknown(value)),
    }
}

fn validation(value: &str) -> Option<FieldValidation> {
    match value {
        "" | "Warn" => Some(FieldValidation::Warn),
        "Strict" => Some(FieldValidation::Strict),
        "Ignore" => Some(FieldValidation::Ignore),
        _ => None,
    }
}
