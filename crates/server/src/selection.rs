//! Selects the objects of a list or watch by label and field selectors.

use crate::{
    Inner, call::Call, convert, refusal::Refusal, request::Options, served::Served, stored::Selectable,
};
use api::{field_selector, label_selector};
use std::sync::Arc;

/// Fields that are read without parsing the object: those that nodes and single-object watches select by.
const PLAIN: [&str; 4] = ["metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"];

/// Fields that are the same in all versions of custom resources.
const VERSIONLESS: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// Selectors, checked against the selectable fields of the resource.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: label_selector::Selector,
    fields: field_selector::FieldSelector,
    /// All fields are plain texts at the path of their name.
    is_plain: bool,
    served: Arc<Served>,
}

impl Selection {
    pub(crate) fn new(call: &Call) -> Result<Selection, Refusal> {
        let Options { labels, fields, .. } = &call.options;
        for term in fields.terms() {
            call.served.check_selectable(&term.field).map_err(Refusal::bad_request)?;
        }
        let (mut fields, name) = (fields.clone(), call.target.name.as_str());
        if !name.is_empty() && fields.is_everything() {
            fields = field_selector::FieldSelector::equals("metadata.name", name);
        }
        if !name.is_empty() && fields.required_value("metadata.name") != Some(name) {
            return Err(Refusal::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let is_plain = fields.terms().iter().all(|term| PLAIN.contains(&term.field.as_str()));
        Ok(Selection { labels: labels.clone(), fields, is_plain, served: Arc::clone(&call.served) })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The name that every selected object has.
    pub(crate) fn required_name(&self) -> Option<&str> {
        self.fields.required_value("metadata.name")
    }

    /// Which of some stored objects are selected by their labels, and by their fields in the version of the request.
    pub(crate) async fn select<S: Selectable>(
        &self,
        inner: &Inner,
        objects: &[&S],
    ) -> Result<Vec<bool>, Refusal> {
        // Built-in kinds have the same selectable fields in all versions.
        let is_same = self.fields.terms().iter().all(|term| VERSIONLESS.contains(&term.field.as_str()));
        if is_same || self.served.custom().is_none() {
            return objects.iter().map(|object| self.matches(*object)).collect();
        }
        let (mut selected, mut labelled, mut values) = (vec![false; objects.len()], Vec::new(), Vec::new());
        for (at, object) in objects.iter().enumerate() {
            if self.labels.is_everything() || self.labels.matches(&*object.labels()?) {
                labelled.push(at);
                values.push(object.value()?.into_owned());
            }
        }
        let values = convert::in_version(inner, &self.served, values).await?;
        for (at, object) in labelled.into_iter().zip(values) {
            selected[at] = self.fields.matches(|label| self.served.selectable_value(label, &object));
        }
        Ok(selected)
    }

    /// Whether a stored object is selected, parsing no more than needed.
    fn matches(&self, stored: &impl Selectable) -> Result<bool, Refusal> {
        if !self.labels.is_everything() && !self.labels.matches(&*stored.labels()?) {
            return Ok(false);
        }
        if self.fields.is_everything() {
            return Ok(true);
        }
        if self.is_plain {
            return Ok(self.fields.matches(|label| stored.text_at(&label.split('.').collect::<Vec<_>>())));
        }
        let object = stored.value()?;
        Ok(self.fields.matches(|label| self.served.selectable_value(label, &object)))
    }
}
