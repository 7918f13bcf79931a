//! What a type says without being told: values for its fields, and a rule for what depends on other fields.

use serde_json::Value;

use super::member::Members;

/// Completes one object in place. The objects that it holds are completed after it.
pub(crate) type Rule = fn(&mut Members);

/// The defaults of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeDefaults {
    /// Without `io.k8s.api.`: `apps.v1.Deployment`.
    pub(crate) type_name: &'static str,
    /// Runs before the values are filled in.
    pub(crate) rule: Option<Rule>,
    /// Paths of fields and what stands there when nothing does. Defaults that OpenAPI publishes are not repeated.
    pub(crate) values: &'static [(&'static str, DefaultValue)],
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultValue {
    Text(&'static str),
    Number(i64),
    Flag(bool),
    EmptyObject,
    Computed(fn() -> Value),
}

impl TypeDefaults {
    pub(crate) const fn of(type_name: &'static str) -> Self {
        TypeDefaults { type_name, rule: None, values: &[] }
    }

    pub(crate) const fn rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    pub(crate) const fn values(mut self, values: &'static [(&'static str, DefaultValue)]) -> Self {
        self.values = values;
        self
    }
}

impl From<DefaultValue> for Value {
    fn from(value: DefaultValue) -> Value {
        match value {
            DefaultValue::Text(text) => text.into(),
            DefaultValue::Number(number) => number.into(),
            DefaultValue::Flag(flag) => flag.into(),
            DefaultValue::EmptyObject => Members::new().into(),
            DefaultValue::Computed(compute) => compute(),
        }
    }
}
