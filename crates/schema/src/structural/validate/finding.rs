//! One error of a keyword, and how errors add up.
//!
//! Kubernetes: kube-apiserver uses a library for JSON schemas, and clients see its texts. The library counts
//! matches, to report the best of several failed alternatives.

use std::collections::HashSet;
use std::fmt;

use api::field::{BadValue, Error, ErrorType, Path};

/// Errors past this number are dropped.
const MAX_FINDINGS: usize = 5_000;

/// The path of a value, as the library writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trail<'a> {
    before: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Property(&'a str),
    /// Under `additionalProperties`: at the root the name gets a dot.
    Additional(&'a str),
    Item(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Finding {
    at: String,
    sort: Sort,
    value: BadValue,
    message: String,
}

#[derive(Clone, Debug)]
enum Sort {
    Required,
    /// The supported values.
    NotSupported(Vec<String>),
    TooLong(i64),
    TooMany(i64),
    TypeInvalid,
    Invalid,
    /// The message names the place; the error has no field.
    Unplaced,
}

/// The result of a check.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    findings: Vec<Finding>,
    /// How many keywords matched.
    pub(super) matches: usize,
}

impl<'a> Trail<'a> {
    pub(super) const ROOT: Trail<'static> = Trail { before: None, step: Step::Root };

    pub(super) fn property(&'a self, name: &'a str) -> Self {
        Trail { before: Some(self), step: Step::Property(name) }
    }

    pub(super) fn additional(&'a self, name: &'a str) -> Self {
        Trail { before: Some(self), step: Step::Additional(name) }
    }

    pub(super) fn item(&'a self, nth: usize) -> Self {
        Trail { before: Some(self), step: Step::Item(nth) }
    }

    pub(super) fn is_root(&self) -> bool {
        self.before.is_none()
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Property(name) if self.before.is_none_or(Trail::is_root) => f.write_str(name),
            Step::Property(name) | Step::Additional(name) => write!(f, ".{name}"),
            Step::Item(nth) => write!(f, "[{nth}]"),
        }
    }
}

impl Finding {
    fn new(at: &Trail<'_>, sort: Sort, value: BadValue, message: fmt::Arguments<'_>) -> Self {
        let at = at.to_string();
        let message = format!("{at} in body {message}");
        Self { at, sort, value, message }
    }

    pub(super) fn invalid(at: &Trail<'_>, value: impl Into<BadValue>, message: fmt::Arguments<'_>) -> Self {
        Self::new(at, Sort::Invalid, value.into(), message)
    }

    pub(super) fn wrong_type(at: &Trail<'_>, wanted: &str, value: &str) -> Self {
        let shown = api::go::quote(value);
        Self::new(at, Sort::TypeInvalid, value.into(), format_args!("must be of type {wanted}: {shown}"))
    }

    pub(super) fn required(at: &Trail<'_>, name: &str) -> Self {
        let at = format!("{at}.{name}");
        let message = format!("{at} in body is required");
        Self { at, sort: Sort::Required, value: BadValue::OMITTED, message }
    }

    pub(super) fn not_supported(at: &Trail<'_>, value: BadValue, supported: Vec<String>) -> Self {
        let message = format!("should be one of {supported:?}");
        Self::new(at, Sort::NotSupported(supported), value, format_args!("{message}"))
    }

    pub(super) fn too_long(at: &Trail<'_>, max: i64) -> Self {
        let message = format_args!("should be at most {max} chars long");
        Self::new(at, Sort::TooLong(max), BadValue::OMITTED, message)
    }

    /// `what` is items or properties.
    pub(super) fn too_many(at: &Trail<'_>, actual: usize, max: i64, what: &str) -> Self {
        Self::new(at, Sort::TooMany(max), actual.into(), format_args!("should have at most {max} {what}"))
    }

    pub(super) fn forbidden_property(at: &Trail<'_>, name: &str) -> Self {
        let at = at.to_string();
        let message = format!("{at}.{name} in body is a forbidden property");
        Self { at, sort: Sort::Invalid, value: name.into(), message }
    }

    pub(super) fn odd_factor(at: &Trail<'_>, factor: &str) -> Self {
        let at = at.to_string();
        let message = format!("factor MultipleOf declared for {at} must be positive: {factor}");
        Self { at, sort: Sort::Invalid, value: BadValue::verbatim(factor), message }
    }

    /// An error that the library reports without a field.
    pub(super) fn unplaced(message: String) -> Self {
        Self { at: String::new(), sort: Sort::Unplaced, value: "".into(), message }
    }

    /// The error for the client; `under` is the path of the validated value, or empty.
    pub(super) fn into_error(self, under: &str) -> Error {
        let root = if under.is_empty() { "<nil>" } else { under };
        let field = match (self.at.strip_prefix('.').unwrap_or(&self.at), &self.sort) {
            ("", _) | (_, Sort::Unplaced) => root.to_owned(),
            (at, _) if under.is_empty() => at.to_owned(),
            (at, _) => format!("{under}.{at}"),
        };
        let count = |count: i64| usize::try_from(count).unwrap_or(0);
        let error = match self.sort {
            Sort::Required => Error::required(&Path::ROOT, ""),
            Sort::NotSupported(supported) => Error::not_supported(&Path::ROOT, self.value, supported),
            Sort::TooLong(max) => Error::too_long(&Path::ROOT, count(max)),
            Sort::TooMany(max) => Error::too_many(&Path::ROOT, self.value, count(max)),
            Sort::TypeInvalid => Error::type_invalid(&Path::ROOT, self.value, self.message),
            Sort::Invalid | Sort::Unplaced => Error::invalid(&Path::ROOT, self.value, self.message),
        };
        debug_assert!(error.error_type != ErrorType::Internal);
        Error { field, ..error }
    }
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS
            && !self.findings.iter().any(|known| known.message == finding.message)
        {
            self.findings.push(finding);
        }
    }

    /// Adds the errors of another check of the same value; equal texts are dropped.
    pub(super) fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        if self.findings.is_empty() {
            self.findings = other.findings;
            return;
        }
        let known: HashSet<_> = self.findings.iter().map(|finding| finding.message.clone()).collect();
        let fresh = other.findings.into_iter().filter(|finding| !known.contains(&finding.message));
        self.findings.extend(fresh);
        self.findings.truncate(MAX_FINDINGS);
    }

    /// Adds the errors of a part, whose texts cannot be duplicates.
    pub(super) fn absorb(&mut self, part: Outcome) {
        self.matches += part.matches;
        self.findings.extend(part.findings);
        self.findings.truncate(MAX_FINDINGS);
    }

    /// Drops the errors: the value is unchanged (ratcheting).
    pub(super) fn drop_ratcheted(&mut self) {
        self.findings.clear();
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}
