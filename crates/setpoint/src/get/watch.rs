//! `get --watch`: what there is, and then every change.

use super::Wanted;
use crate::client::{
    api::{JSON, TABLE},
    failure::{ClientError, ClientResult},
    follow::{self, Following, Selection},
    output::ObjectPrinter,
    print,
    table::{Layout, Rows},
    target::ArgumentTarget,
};
use serde_json::{Value, json};

pub(super) async fn run(wanted: &Wanted<'_>) -> ClientResult<()> {
    let [target] = wanted.targets.as_slice() else {
        return Err(ClientError::error("you may only specify a single resource type"));
    };
    let (path, selection) = match target {
        ArgumentTarget::All(resource) => (resource.path(wanted.namespace()), wanted.selection.clone()),
        ArgumentTarget::Object(object) => {
            // A missing object is a failure now; a list of none would wait for it.
            match wanted.connection.api.get(&object.path()).await {
                Err(error) if error.is_not_found() && wanted.options.ignore_not_found => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            (object.resource.path(object.namespace.as_deref()), Selection::of_name(&object.name))
        }
    };
    let mut printer = WatchPrinter::new(wanted, target);
    let accept = if wanted.format.is_table() { TABLE } else { JSON };
    let api = &wanted.connection.api;
    let first = follow::list(api, &path, accept, &selection).await?;
    if !wanted.options.watch_only {
        print(&printer.all(&first, wanted)?)?;
    }
    let version = &first["metadata"]["resourceVersion"];
    let mut following = Following::new(api, &path, accept, &selection, version);
    loop {
        let happening = following.next().await?;
        print(&printer.one(&happening.object, &happening.event, wanted)?)?;
    }
}

/// Tables go on in their columns; objects follow each other.
enum WatchPrinter {
    Table { rows: Rows, layout: Layout },
    Objects(Box<ObjectPrinter>),
}

impl WatchPrinter {
    fn new(wanted: &Wanted<'_>, target: &ArgumentTarget) -> WatchPrinter {
        if wanted.format.is_table() {
            let rows = Rows::new(wanted.view(target, false));
            return WatchPrinter::Table { rows, layout: Layout::default() };
        }
        let options = wanted.options;
        let (format, headers) = (wanted.format.clone(), !options.no_headers);
        WatchPrinter::Objects(Box::new(ObjectPrinter::new(format, options.show_managed_fields, headers)))
    }

    /// What the first list shows.
    fn all(&mut self, list: &Value, wanted: &Wanted<'_>) -> ClientResult<String> {
        match self {
            WatchPrinter::Table { .. } => self.one(list, "ADDED", wanted),
            WatchPrinter::Objects(_) => {
                let mut text = String::new();
                let kind = list["kind"].as_str().unwrap_or_default();
                let kind = kind.strip_suffix("List").unwrap_or(kind);
                for item in list["items"].as_array().into_iter().flatten() {
                    let mut item = item.clone();
                    item["apiVersion"] = list["apiVersion"].clone();
                    item["kind"] = kind.into();
                    text.push_str(&self.one(&item, "ADDED", wanted)?);
                }
                Ok(text)
            }
        }
    }

    fn one(&mut self, object: &Value, event: &str, wanted: &Wanted<'_>) -> ClientResult<String> {
        let is_told = wanted.options.output_watch_events;
        match self {
            WatchPrinter::Table { rows, layout } => {
                Ok(layout.lines(&rows.of(object, is_told.then_some(event))))
            }
            WatchPrinter::Objects(printer) if is_told => {
                printer.text(&json!({"type": event, "object": object}))
            }
            WatchPrinter::Objects(printer) => printer.text(object),
        }
    }
}
