//! A place in an object: its value and the way to it, so that reading and complaining need no second thought.

use api::field::{BadValue, Error, ErrorList, Path};
use api::name::{self, Format};
use api::quantity::Quantity;
use serde_json::Value;

use crate::strategy::prepare::same;

static NOTHING: Value = Value::Null;

/// A value and where it lies. What is missing reads as Go's zero value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'v, 'p> {
    value: &'v Value,
    path: Path<'p>,
}

impl<'v, 'p> At<'v, 'p> {
    pub(crate) fn root(value: &'v Value) -> At<'v, 'static> {
        At { value, path: Path::ROOT }
    }

    pub(crate) fn new(value: &'v Value, path: Path<'p>) -> Self {
        At { value, path }
    }

    pub(crate) fn field<'q>(&'q self, name: &'q str) -> At<'v, 'q> {
        At { value: self.value.get(name).unwrap_or(&NOTHING), path: self.path.child(name) }
    }

    pub(crate) fn index<'q>(&'q self, index: usize) -> At<'v, 'q> {
        At { value: self.value.get(index).unwrap_or(&NOTHING), path: self.path.index(index) }
    }

    pub(crate) fn items<'q>(&'q self) -> impl Iterator<Item = At<'v, 'q>> {
        let items = self.list().iter().enumerate();
        items.map(|(index, value)| At { value, path: self.path.index(index) })
    }

    /// The entries of a map, in the order of their keys.
    pub(crate) fn entries<'q>(&'q self) -> impl Iterator<Item = (&'v str, At<'v, 'q>)>
    where
        'v: 'q,
    {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), At { value, path: self.path.key(key) }))
    }

    pub(crate) fn value(&self) -> &'v Value {
        self.value
    }

    pub(crate) fn path(&self) -> &Path<'p> {
        &self.path
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    pub(crate) fn text_of(&self, name: &str) -> &'v str {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    pub(crate) fn int_of(&self, name: &str) -> i64 {
        self.value.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(crate) fn flag_of(&self, name: &str) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn list(&self) -> &'v [Value] {
        self.value.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Of a list or a map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::String(text) => text.is_empty(),
            other => other.is_null(),
        }
    }

    pub(crate) fn quantity(&self) -> Option<Quantity> {
        self.text().parse().ok()
    }

    pub(crate) fn required(&self, errors: &mut ErrorList, detail: &str) {
        errors.push(Error::required(&self.path, detail));
    }

    pub(crate) fn forbidden(&self, errors: &mut ErrorList, detail: impl Into<String>) {
        errors.push(Error::forbidden(&self.path, detail));
    }

    /// The value is shown as it lies here: right for scalars, and for types whose Go has JSON tags.
    pub(crate) fn invalid(&self, errors: &mut ErrorList, detail: impl Into<String>) {
        // The value may be all that was sent.
        if errors.is_full() {
            return;
        }
        errors.push(Error::invalid(&self.path, self.value, detail));
    }

    pub(crate) fn invalid_text(&self, errors: &mut ErrorList, detail: impl Into<String>) {
        errors.push(Error::invalid(&self.path, self.text(), detail));
    }

    pub(crate) fn invalid_int(&self, errors: &mut ErrorList, detail: impl Into<String>) {
        errors.push(Error::invalid(&self.path, self.int(), detail));
    }

    pub(crate) fn invalid_as(
        &self,
        errors: &mut ErrorList,
        shown: impl Into<BadValue>,
        detail: impl Into<String>,
    ) {
        errors.push(Error::invalid(&self.path, shown, detail));
    }

    pub(crate) fn unsupported(&self, errors: &mut ErrorList, supported: &[&str]) {
        errors.push(Error::not_supported(&self.path, self.text(), supported));
    }

    pub(crate) fn duplicate(&self, errors: &mut ErrorList) {
        // The value may be all that was sent.
        if errors.is_full() {
            return;
        }
        errors.push(Error::duplicate(&self.path, self.value));
    }

    pub(crate) fn not_found(&self, errors: &mut ErrorList) {
        errors.push(Error::not_found(&self.path, self.text()));
    }

    /// One of these words; an empty one is not.
    pub(crate) fn one_of(&self, errors: &mut ErrorList, supported: &[&str]) {
        if !supported.contains(&self.text()) {
            self.unsupported(errors, supported);
        }
    }

    /// One of these words; an empty one is missing.
    pub(crate) fn required_one_of(&self, errors: &mut ErrorList, supported: &[&str]) {
        if self.text().is_empty() {
            self.required(errors, "");
        } else {
            self.one_of(errors, supported);
        }
    }

    /// One of these words, if there is one at all.
    pub(crate) fn optional_one_of(&self, errors: &mut ErrorList, supported: &[&str]) {
        if self.is_set() {
            self.one_of(errors, supported);
        }
    }

    pub(crate) fn is_format(&self, errors: &mut ErrorList, format: Format) {
        errors.extend(format.check(&self.path, self.text()));
    }

    /// Not empty, and of that format.
    pub(crate) fn required_format(&self, errors: &mut ErrorList, format: Format) {
        if self.text().is_empty() {
            self.required(errors, "");
        } else {
            self.is_format(errors, format);
        }
    }

    pub(crate) fn not_negative(&self, errors: &mut ErrorList) {
        if self.int() < 0 {
            self.invalid_int(errors, "must be greater than or equal to 0");
        }
    }

    pub(crate) fn positive(&self, errors: &mut ErrorList) {
        if self.int() <= 0 {
            self.invalid_int(errors, "must be greater than 0");
        }
    }

    pub(crate) fn port_number(&self, errors: &mut ErrorList) {
        for problem in name::port_number_problems(self.int()) {
            self.invalid_int(errors, problem);
        }
    }

    /// A name or a number, as `targetPort` is.
    pub(crate) fn port_number_or_name(&self, errors: &mut ErrorList) {
        if self.value.is_string() {
            self.is_format(errors, Format::PortName);
        } else {
            self.port_number(errors);
        }
    }

    /// Whether it is what it was. Kubernetes: a list that is empty is the same as none.
    pub(crate) fn is_same(&self, old: &At<'_, '_>) -> bool {
        same(Some(self.value), Some(old.value))
    }

    /// A change of the value from what it was.
    pub(crate) fn immutable(&self, errors: &mut ErrorList, old: &At<'_, '_>) {
        if !self.is_same(old) {
            self.invalid(errors, IMMUTABLE);
        }
    }
}

pub(crate) const IMMUTABLE: &str = "field is immutable";
