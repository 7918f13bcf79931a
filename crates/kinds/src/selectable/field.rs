//! What a kind says about field selectors: the fields, what they are worth, and how others are refused.

use std::borrow::Cow;

use serde_json::Value;

use super::{Refusal, UnknownField};

/// The fields of a kind that a selector may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selectable {
    fields: &'static [SelectableField],
    /// Labels that mean a field by another name.
    aliases: &'static [(&'static str, &'static str)],
    refusal: Refusal,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectableField {
    name: &'static str,
    value: FieldValue,
}

/// The name of the field and the object in, the value of the field out.
type Compute = for<'a> fn(&'static str, &'a Value) -> &'a str;

#[derive(Clone, Copy, Debug)]
enum FieldValue {
    /// The text at the path that is the field's name.
    Text,
    /// `true` or `false`, the boolean at the path that is the field's name.
    Flag,
    /// The number at this path, or 0.
    Count(&'static str),
    Computed(Compute),
}

impl SelectableField {
    pub(crate) const NAME: SelectableField = SelectableField::text("metadata.name");
    pub(crate) const NAMESPACE: SelectableField = SelectableField::text("metadata.namespace");

    pub(crate) const fn text(name: &'static str) -> Self {
        SelectableField { name, value: FieldValue::Text }
    }

    pub(crate) const fn flag(name: &'static str) -> Self {
        SelectableField { name, value: FieldValue::Flag }
    }

    pub(crate) const fn count(name: &'static str, path: &'static str) -> Self {
        SelectableField { name, value: FieldValue::Count(path) }
    }

    pub(crate) const fn computed(name: &'static str, value: Compute) -> Self {
        SelectableField { name, value: FieldValue::Computed(value) }
    }

    fn value<'a>(&self, object: &'a Value) -> Cow<'a, str> {
        match self.value {
            FieldValue::Text => Cow::Borrowed(text(at(object, self.name))),
            FieldValue::Flag if at(object, self.name).as_bool() == Some(true) => Cow::Borrowed("true"),
            FieldValue::Flag => Cow::Borrowed("false"),
            FieldValue::Count(path) => Cow::Owned(at(object, path).as_i64().unwrap_or_default().to_string()),
            FieldValue::Computed(value) => Cow::Borrowed(value(self.name, object)),
        }
    }
}

impl Selectable {
    /// What most kinds take.
    pub(crate) const METADATA: Selectable = Selectable {
        fields: &[SelectableField::NAME, SelectableField::NAMESPACE],
        aliases: &[],
        refusal: Refusal::MetadataOnly,
    };

    pub(crate) const fn new(fields: &'static [SelectableField]) -> Self {
        Selectable { fields, aliases: &[], refusal: Refusal::Plain }
    }

    pub(crate) const fn alias(mut self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn refusing(mut self, refusal: Refusal) -> Self {
        self.refusal = refusal;
        self
    }

    pub(super) fn field(&self, label: &str) -> Result<&'static str, UnknownField> {
        let alias = self.aliases.iter().find(|(alias, _)| *alias == label);
        let meant = alias.map_or(label, |(_, field)| field);
        let known = self.fields.iter().find(|field| field.name == meant);
        known
            .map(|field| field.name)
            .ok_or_else(|| UnknownField { label: label.to_owned(), refusal: self.refusal })
    }

    pub(super) fn value<'a>(&self, name: &str, object: &'a Value) -> Cow<'a, str> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.map_or(Cow::Borrowed(""), |field| field.value(object))
    }
}

/// What stands at a path of names with dots between them.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, member| &value[member])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
