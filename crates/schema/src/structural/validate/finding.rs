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
pub(super) struct ValuePath<'a> {
    before: Option<&'a ValuePath<'a>>,
    step: ValuePathStep<'a>,
}

#[derive(Clone, Copy, Debug)]
enum ValuePathStep<'a> {
    Root,
    Property(&'a str),
    /// Under `additionalProperties`: at the root the name gets a dot.
    Additional(&'a str),
    Item(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Finding {
    at: String,
    kind: FindingKind,
    value: BadValue,
    message: String,
}

#[derive(Clone, Debug)]
enum FindingKind {
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

impl<'a> ValuePath<'a> {
    pub(super) const ROOT: ValuePath<'static> = ValuePath { before: None, step: ValuePathStep::Root };

    pub(super) fn property(&'a self, name: &'a str) -> Self {
        ValuePath { before: Some(self), step: ValuePathStep::Property(name) }
    }

    pub(super) fn additional(&'a self, name: &'a str) -> Self {
        ValuePath { before: Some(self), step: ValuePathStep::Additional(name) }
    }

    pub(super) fn item(&'a self, nth: usize) -> Self {
        ValuePath { before: Some(self), step: ValuePathStep::Item(nth) }
    }

    pub(super) fn is_root(&self) -> bool {
        self.before.is_none()
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            ValuePathStep::Root => Ok(()),
            ValuePathStep::Property(name) if self.before.is_none_or(ValuePath::is_root) => f.write_str(name),
            ValuePathStep::Property(name) | ValuePathStep::Additional(name) => write!(f, ".{name}"),
            ValuePathStep::Item(nth) => write!(f, "[{nth}]"),
        }
    }
}

impl Finding {
    fn new(at: &ValuePath<'_>, kind: FindingKind, value: BadValue, message: fmt::Arguments<'_>) -> Self {
        let at = at.to_string();
        let message = format!("{at} in body {message}");
        Self { at, kind, value, message }
    }

    pub(super) fn invalid(
        at: &ValuePath<'_>,
        value: impl Into<BadValue>,
        message: fmt::Arguments<'_>,
    ) -> Self {
        Self::new(at, FindingKind::Invalid, value.into(), message)
    }

    pub(super) fn wrong_type(at: &ValuePath<'_>, wanted: &str, value: &str) -> Self {
        let shown = api::go::quote(value);
        Self::new(
            at,
            FindingKind::TypeInvalid,
            value.into(),
            format_args!("must be of type {wanted}: {shown}"),
        )
    }

    pub(super) fn required(at: &ValuePath<'_>, name: &str) -> Self {
        let at = format!("{at}.{name}");
        let message = format!("{at} in body is required");
        Self { at, kind: FindingKind::Required, value: BadValue::OMITTED, message }
    }

    pub(super) fn not_supported(at: &ValuePath<'_>, value: BadValue, supported: Vec<String>) -> Self {
        let message = format!("should be one of {supported:?}");
        Self::new(at, FindingKind::NotSupported(supported), value, format_args!("{message}"))
    }

    pub(super) fn too_long(at: &ValuePath<'_>, max: i64) -> Self {
        let message = format_args!("should be at most {max} chars long");
        Self::new(at, FindingKind::TooLong(max), BadValue::OMITTED, message)
    }

    /// `what` is items or properties.
    pub(super) fn too_many(at: &ValuePath<'_>, actual: usize, max: i64, what: &str) -> Self {
        Self::new(
            at,
            FindingKind::TooMany(max),
            actual.into(),
            format_args!("should have at most {max} {what}"),
        )
    }

    pub(super) fn forbidden_property(at: &ValuePath<'_>, name: &str) -> Self {
        let at = at.to_string();
        let message = format!("{at}.{name} in body is a forbidden property");
        Self { at, kind: FindingKind::Invalid, value: name.into(), message }
    }

    pub(super) fn odd_factor(at: &ValuePath<'_>, factor: &str) -> Self {
        let at = at.to_string();
        let message = format!("factor MultipleOf declared for {at} must be positive: {factor}");
        Self { at, kind: FindingKind::Invalid, value: BadValue::verbatim(factor), message }
    }

    /// An error that the library reports without a field.
    pub(super) fn unplaced(message: String) -> Self {
        Self { at: String::new(), kind: FindingKind::Unplaced, value: "".into(), message }
    }

    /// The error for the client; `under` is the path of the validated value, or empty.
    pub(super) fn into_error(self, under: &str) -> Error {
        let root = if under.is_empty() { "<nil>" } else { under };
        let field = match (self.at.strip_prefix('.').unwrap_or(&self.at), &self.kind) {
            ("", _) | (_, FindingKind::Unplaced) => root.to_owned(),
            (at, _) if under.is_empty() => at.to_owned(),
            (at, _) => format!("{under}.{at}"),
        };
        let count = |count: i64| usize::try_from(count).unwrap_or(0);
        let error = match self.kind {
            FindingKind::Required => Error::required(&Path::ROOT, ""),
            FindingKind::NotSupported(supported) => Error::not_supported(&Path::ROOT, self.value, supported),
            FindingKind::TooLong(max) => Error::too_long(&Path::ROOT, count(max)),
            FindingKind::TooMany(max) => Error::too_many(&Path::ROOT, self.value, count(max)),
            FindingKind::TypeInvalid => Error::type_invalid(&Path::ROOT, self.value, self.message),
            FindingKind::Invalid | FindingKind::Unplaced => {
                Error::invalid(&Path::ROOT, self.value, self.message)
            }
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
