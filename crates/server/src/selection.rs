//! Which objects a list or a watch is about.

use crate::{request::Options, stored::Stored, verbs::Call};
use api::{field_selector, label_selector, status::Status};
use serde_json::Value;
use std::collections::BTreeMap;

/// Selectors, checked against what the resource can be selected by.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: label_selector::Selector,
    fields: field_selector::Selector,
    group: &'static str,
    resource: &'static str,
}

impl Selection {
    pub(crate) fn new(call: &Call<'_>) -> Result<Selection, Status> {
        let Options { labels, fields, .. } = &call.options;
        let resource = call.served.resource;
        for term in fields.terms() {
            kinds::selectable::field(resource.group, resource.name, &term.field)
                .map_err(|problem| Status::bad_request(problem.to_string()))?;
        }
        let mut fields = fields.clone();
        if !call.target.name.is_empty() {
            fields = field_selector::Selector::equals("metadata.name", call.target.name.clone());
        }
        Ok(Selection { labels: labels.clone(), fields, group: resource.group, resource: resource.name })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object at rest belongs to it, parsing no more than needed.
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        if !self.labels.is_everything() {
            let metadata = stored.metadata();
            if !self.labels.matches(&labels(&metadata)) {
                return false;
            }
        }
        if self.fields.is_everything() {
            return true;
        }
        let object = stored.value();
        self.fields.matches(|label| kinds::selectable::value(self.group, self.resource, label, &object))
    }
}

fn labels(metadata: &Value) -> BTreeMap<String, String> {
    let labels = metadata.get("labels").and_then(Value::as_object).into_iter().flatten();
    labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}
