//! One version of a definition as discovery and the server know resources.

use std::borrow::Cow;

use schema::types::Name;

use super::{Definition, PrinterColumn, Version};
use crate::resources::{self, Resource, Storage, Subresource};

// Kubernetes: in this order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// While it goes nothing new comes.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

impl Definition {
    pub fn resource(&self, version: &Version) -> Resource {
        let verbs = if self.state.terminating { &LAST_VERBS[..] } else { &VERBS };
        let names = &self.names;
        let storage = self.storage_version().map(|stored| Storage {
            group: owned(&self.group),
            version: owned(&stored.name),
            prefix: format!("{}/{}", self.group, names.plural).into(),
        });
        Resource {
            group: owned(&self.group),
            version: owned(&version.name),
            name: owned(&names.plural),
            singular: owned(&names.singular),
            kind: owned(&names.kind),
            scope: self.scope,
            verbs: all(verbs),
            short_names: names.short_names.iter().map(|name| owned(name)).collect(),
            categories: names.categories.iter().map(|name| owned(name)).collect(),
            storage,
            subresources: self.subresources(version),
            columns: version.columns.iter().map(resources::Column::from).collect(),
        }
    }

    fn subresources(&self, version: &Version) -> Vec<Subresource> {
        let status = version.has_status.then(|| Subresource {
            name: Cow::Borrowed("status"),
            group: owned(&self.group),
            version: owned(&version.name),
            kind: owned(&self.names.kind),
            verbs: all(&SUBRESOURCE_VERBS),
        });
        let scale = version.scale.is_some().then(|| Subresource {
            name: Cow::Borrowed("scale"),
            group: Cow::Borrowed("autoscaling"),
            version: Cow::Borrowed("v1"),
            kind: Cow::Borrowed("Scale"),
            verbs: all(&SUBRESOURCE_VERBS),
        });
        status.into_iter().chain(scale).collect()
    }
}

impl From<&PrinterColumn> for resources::Column {
    fn from(column: &PrinterColumn) -> Self {
        resources::Column {
            name: owned(&column.name),
            type_name: owned(&column.type_name),
            format: owned(&column.format),
            priority: column.priority,
        }
    }
}

fn owned(text: &str) -> Name {
    Cow::Owned(text.to_owned())
}

fn all(words: &[&'static str]) -> Vec<Name> {
    words.iter().map(|word| Cow::Borrowed(*word)).collect()
}
