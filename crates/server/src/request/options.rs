//! Parses the query of a request.

use crate::refusal::Refusal;
use api::{field_selector, go, label_selector};
use schema::decode::FieldValidation;
use std::{collections::BTreeMap, time::Duration};

use super::path::decode;

/// The options of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) labels: label_selector::Selector,
    pub(crate) fields: field_selector::FieldSelector,
    /// As given; empty if not set.
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<Match>,
    pub(crate) limit: u64,
    pub(crate) continue_token: String,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    /// The stages that a dry run skips; `All` is the only value.
    pub(crate) dry_run: Vec<String>,
    pub(crate) field_manager: String,
    pub(crate) validation: FieldValidation,
    /// An unknown `fieldValidation`.
    pub(crate) bad_validation: Option<String>,
    /// Whether an apply takes fields from other managers; only valid for an apply.
    pub(crate) force: Option<bool>,
    pub(crate) pretty: bool,
    /// Parse errors of selectors, limit or timeout: reported for list and watch only.
    pub(crate) bad_selection: Option<String>,
    /// Parameters of some verbs only.
    pub(crate) rest: BTreeMap<String, String>,
}

/// `resourceVersionMatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
    /// An unknown value.
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
    pub(crate) fn parse(query: &str) -> Options {
        let mut options = Options::default();
        if query.is_empty() {
            return options;
        }
        for (key, value) in pairs(query) {
            match key.as_str() {
                "dryRun" => options.dry_run.push(value),
                // Kubernetes: the first of several values.
                _ => drop(options.rest.entry(key).or_insert(value)),
            }
        }
        options.take_selection();
        let mut text = |key: &str| options.rest.remove(key);
        let mut flag_at = |key: &str| text(key).map(|value| flag(&value));
        options.watch = flag_at("watch").unwrap_or(false);
        options.bookmarks = flag_at("allowWatchBookmarks").unwrap_or(false);
        options.initial_events = flag_at("sendInitialEvents");
        options.force = flag_at("force");
        options.pretty = flag_at("pretty").unwrap_or(false);
        options.resource_version = text("resourceVersion").unwrap_or_default();
        options.version_match = text("resourceVersionMatch").and_then(version_match);
        options.continue_token = text("continue").unwrap_or_default();
        options.field_manager = text("fieldManager").unwrap_or_default();
        if let Some(value) = text("fieldValidation") {
            match validation(&value) {
                Some(validation) => options.validation = validation,
                None => options.bad_validation = Some(value),
            }
        }
        options
    }

    /// Options of list and watch. Kubernetes: numbers are parsed before selectors, and one error
    /// invalidates all.
    fn take_selection(&mut self) {
        let mut take = |key: &str| self.rest.remove(key);
        let (timeout, limit) = (take("timeoutSeconds"), take("limit"));
        let (labels, fields) = (take("labelSelector"), take("fieldSelector"));
        let read = || -> Result<_, String> {
            let timeout = timeout.map(|text| go::parse_int(&text)).transpose()?;
            let limit = limit.map(|text| go::parse_int(&text)).transpose()?;
            let labels = labels
                .unwrap_or_default()
                .parse()
                .map_err(|bad: label_selector::BadSelector| bad.to_string())?;
            let fields = fields
                .unwrap_or_default()
                .parse()
                .map_err(|bad: field_selector::BadFieldSelector| bad.to_string())?;
            Ok((timeout, limit, labels, fields))
        };
        match read() {
            Ok((timeout, limit, labels, fields)) => {
                let seconds = timeout.filter(|seconds| *seconds != 0);
                self.timeout = seconds.map(|it| Duration::from_secs(u64::try_from(it).unwrap_or(0)));
                self.limit = limit.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(0);
                (self.labels, self.fields) = (labels, fields);
            }
            Err(problem) => self.bad_selection = Some(problem),
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// Rejects a malformed selector, limit or timeout.
    pub(crate) fn check_selection(&self) -> Result<(), Refusal> {
        self.bad_selection.as_ref().map_or(Ok(()), |problem| Err(Refusal::bad_request(problem.clone())))
    }
}

/// Names and values of a query. Kubernetes: malformed pairs are skipped.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let well_formed = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
    well_formed.filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(&key.replace('+', " "))?, decode(&value.replace('+', " "))?))
    })
}

/// A value for a query, as Go writes it.
pub(crate) fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Kubernetes: a flag is set by its name, unless its value is 0 or false.
pub(crate) fn flag(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "0" | "false")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_selections_are_reported_in_gos_words() {
        for (query, expected) in [
            ("", None),
            ("limit=-1&timeoutSeconds=5", None),
            ("labelSelector=%zz&fieldSelector=a;b", None),
            ("limit=1&limit=abc", None),
            ("limit=abc", Some("strconv.ParseInt: parsing \"abc\": invalid syntax")),
            ("limit=", Some("strconv.ParseInt: parsing \"\": invalid syntax")),
            (
                "labelSelector=((&timeoutSeconds=99999999999999999999",
                Some("strconv.ParseInt: parsing \"99999999999999999999\": value out of range"),
            ),
            ("labelSelector=a,", Some("found '', expected: identifier after ','")),
            (
                "labelSelector=a+in+b&fieldSelector=b",
                Some("unable to parse requirement: found 'b' expected: '('"),
            ),
            ("fieldSelector=b", Some("invalid selector: 'b'; can't understand 'b'")),
        ] {
            assert_eq!(Options::parse(query).bad_selection.as_deref(), expected, "{query}");
        }
    }
}
