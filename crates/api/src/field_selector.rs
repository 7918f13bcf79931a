//! Which fields an object must have: `metadata.name=web,status.phase!=Running`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// All of the terms must hold; none at all match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub field: String,
    pub operator: FieldOperator,
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    Equals,
    NotEquals,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFieldSelector {
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term { selector: String, term: String },
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    // Kubernetes prints the number of the character.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    pub const fn everything() -> Self {
        FieldSelector { terms: Vec::new() }
    }

    /// One field has one value.
    pub fn equals(field: impl Into<String>, value: impl Into<String>) -> Self {
        let term = Term { field: field.into(), operator: FieldOperator::Equals, value: value.into() };
        FieldSelector { terms: vec![term] }
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// `value_of` gives a field's value; one that the object does not have is empty.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.terms.iter().all(|term| {
            let is_equal = value_of(&term.field) == term.value;
            is_equal == (term.operator == FieldOperator::Equals)
        })
    }

    /// The only value that the field may have, if the selector says so: `metadata.name=web` is a lookup.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        let mut terms = self.terms.iter();
        terms
            .find(|term| term.field == field && term.operator == FieldOperator::Equals)
            .map(|term| term.value.as_str())
    }

    /// Renames fields and rewrites values, or rejects them. A term that comes back empty asks for nothing.
    pub fn transform<E>(
        self,
        mut convert: impl FnMut(&str, &str) -> Result<(String, String), E>,
    ) -> Result<Self, E> {
        let terms = self.terms.into_iter().map(|term| {
            let (field, value) = convert(&term.field, &term.value)?;
            Ok(Term { field, value, operator: term.operator })
        });
        terms.collect::<Result<_, _>>().map(FieldSelector::new)
    }

    fn new(mut terms: Vec<Term>) -> Self {
        terms.retain(|term| !term.field.is_empty() || !term.value.is_empty());
        FieldSelector { terms }
    }
}

impl FromStr for FieldSelector {
    type Err = BadFieldSelector;

    fn from_str(text: &str) -> Result<Self, BadFieldSelector> {
        let mut parts = split_terms(text);
        // Kubernetes: sorted, so that equal selectors have equal texts.
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty()).map(|part| {
            let (field, operator, value) = split_term(part)
                .ok_or_else(|| BadFieldSelector::Term { selector: text.to_owned(), term: part.to_owned() })?;
            Ok(Term { field: field.to_owned(), operator, value: unescape(value)? })
        });
        terms.collect::<Result<_, _>>().map(FieldSelector::new)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        };
        write!(f, "{}{operator}{}", self.field, escape(&self.value))
    }
}

/// A literal value as it must be written in a selector.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn unescape(value: &str) -> Result<String, BadFieldSelector> {
    let mut literal = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => literal.push(escaped),
                other => return Err(BadFieldSelector::Escape(['\\'].into_iter().chain(other).collect())),
            },
            ',' | '=' => return Err(BadFieldSelector::Unescaped(c)),
            c => literal.push(c),
        }
    }
    Ok(literal)
}

/// At the commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let is_separator = move |c| {
        let separates = c == ',' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        separates
    };
    text.split(is_separator).collect()
}

/// At the first operator: a field has no escapes.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let (field, value) = term.split_once('=')?;
    match field.strip_suffix('!') {
        Some(field) => Some((field, FieldOperator::NotEquals, value)),
        None => Some((field, FieldOperator::Equals, value.strip_prefix('=').unwrap_or(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_parse_and_print_as_in_kubernetes() {
        for (text, printed) in [
            ("", ""),
            ("metadata.name=web", "metadata.name=web"),
            ("b=2,a==1,c!=3", "a=1,b=2,c!=3"),
            (",a=1,,", "a=1"),
            ("=", ""),
            ("a=", "a="),
            ("a!b=c", "a!b=c"),
            ("a=x\\,y\\=z\\\\", "a=x\\,y\\=z\\\\"),
            ("a= 1 ", "a= 1 "),
        ] {
            assert_eq!(
                text.parse::<FieldSelector>().map(|selector| selector.to_string()),
                Ok(printed.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_selectors_get_the_real_errors() {
        for (text, expected) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=\\", "invalid field selector: invalid escape sequence: \\"),
        ] {
            assert_eq!(
                text.parse::<FieldSelector>().map_err(|bad| bad.to_string()),
                Err(expected.to_owned())
            );
        }
    }

    #[test]
    fn an_absent_field_is_empty() {
        let value_of = |field: &str| match field {
            "metadata.name" => "a,b".into(),
            _ => Cow::Borrowed(""),
        };
        for (text, expected) in [
            ("", true),
            ("metadata.name=a\\,b", true),
            ("metadata.name!=a\\,b", false),
            ("metadata.name=a", false),
            ("spec.nodeName=", true),
            ("spec.nodeName!=", false),
            ("spec.nodeName!=n,metadata.name!=a", true),
        ] {
            assert_eq!(text.parse::<FieldSelector>().unwrap().matches(value_of), expected, "{text}");
        }
    }

    #[test]
    fn an_exact_match_can_be_looked_up() {
        let selector: FieldSelector = "metadata.name=web,metadata.namespace!=x".parse().unwrap();
        assert_eq!(selector.required_value("metadata.name"), Some("web"));
        assert_eq!(selector.required_value("metadata.namespace"), None);
        assert_eq!(FieldSelector::equals("a", "b"), "a=b".parse().unwrap());
    }

    #[test]
    fn fields_can_be_renamed_dropped_and_rejected() {
        let convert = |field: &str, value: &str| match field {
            "old" => Ok(("new".to_owned(), value.to_owned())),
            "gone" => Ok((String::new(), String::new())),
            other => Err(format!("field label not supported: {other}")),
        };
        let transform = |text: &str| text.parse::<FieldSelector>().unwrap().transform(convert);
        assert_eq!(transform("old=1,gone=2").map(|selector| selector.to_string()), Ok("new=1".to_owned()));
        assert_eq!(transform("spec.color=red"), Err("field label not supported: spec.color".to_owned()));
    }
}
