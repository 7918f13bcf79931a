//! The object form of a selector, as workloads carry it: `matchLabels` and `matchExpressions`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BadSelector, Operator, Requirement, Selector};
use crate::field::{BadValue, Error, ErrorList, Path};
use crate::go;
use crate::name::{self, Format};

/// Kubernetes' `LabelSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; whatever else it is must survive until it is rejected.
    pub operator: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What a check lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    None,
    /// For an update of an object whose stored selector has such values.
    InvalidValues,
    /// For access reviews, which may ask about operators of the future.
    UnknownOperators,
}

impl LabelSelector {
    pub fn to_selector(&self) -> Result<Selector, BadSelector> {
        let equals =
            self.match_labels.iter().map(|(key, value)| (key, Ok(Operator::Equals), vec![value.clone()]));
        let expressions =
            self.match_expressions.iter().map(|term| (&term.key, term.operator(), term.values.clone()));
        let requirements = equals.chain(expressions).map(|(key, operator, values)| {
            Requirement::new(&Path::ROOT, key, operator?, values)
                .map_err(|errors| BadSelector(errors.to_string()))
        });
        requirements.collect::<Result<_, _>>().map(Selector::new)
    }

    /// An absent selector selects nothing, an empty one everything.
    pub fn selector_of(selector: Option<&Self>) -> Result<Selector, BadSelector> {
        selector.map_or(Ok(Selector::nothing()), Self::to_selector)
    }

    pub fn check(&self, path: &Path<'_>, tolerance: Tolerance) -> ErrorList {
        let labels = self.match_labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut errors = name::labels(&path.child("matchLabels"), labels);
        let path = path.child("matchExpressions");
        for (index, requirement) in self.match_expressions.iter().enumerate() {
            errors.extend(requirement.check(&path.index(index), tolerance));
        }
        errors
    }

    /// Whether an update must tolerate invalid values.
    pub fn has_invalid_value(&self) -> bool {
        self.match_expressions
            .iter()
            .flat_map(|term| &term.values)
            .any(|value| !Format::LabelValue.fits(value))
    }
}

impl LabelSelectorRequirement {
    fn operator(&self) -> Result<Operator, BadSelector> {
        match self.operator.as_str() {
            "In" => Ok(Operator::In),
            "NotIn" => Ok(Operator::NotIn),
            "Exists" => Ok(Operator::Exists),
            "DoesNotExist" => Ok(Operator::DoesNotExist),
            other => Err(BadSelector(format!("{} is not a valid label selector operator", go::quote(other)))),
        }
    }

    fn check(&self, path: &Path<'_>, tolerance: Tolerance) -> ErrorList {
        let mut errors = ErrorList::new();
        let values = path.child("values");
        match (self.operator(), self.values.is_empty()) {
            (Ok(Operator::In | Operator::NotIn), true) => {
                errors.push(Error::required(&values, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            (Ok(Operator::Exists | Operator::DoesNotExist), false) => {
                let problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(Error::forbidden(&values, problem));
            }
            (Err(_), _) if tolerance != Tolerance::UnknownOperators => {
                let operator = BadValue::json(&self.operator);
                errors.push(Error::invalid(
                    &path.child("operator"),
                    operator,
                    "not a valid selector operator",
                ));
            }
            _ => {}
        }
        errors.extend(name::label_key(&path.child("key"), &self.key));
        if tolerance != Tolerance::InvalidValues {
            for (index, value) in self.values.iter().enumerate() {
                errors.extend(Format::LabelValue.check(&values.index(index), value));
            }
        }
        errors
    }
}

/// As `kubectl get` shows it.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_selector() {
            Ok(selector) if selector.is_everything() => f.write_str("<none>"),
            Ok(selector) => selector.fmt(f),
            Err(_) => f.write_str("<error>"),
        }
    }
}
