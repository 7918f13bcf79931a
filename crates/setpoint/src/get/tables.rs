//! `get` for people: the tables of the server, in columns.

use super::{Wanted, sort};
use crate::client::{
    api::{Call, TABLE, with_query},
    failure::{ClientError, ClientResult},
    follow, note, print,
    table::{Layout, Rows},
    target::ArgumentTarget,
};
use serde_json::Value;

/// Tables of one type that follow each other.
struct Section<'a> {
    target: &'a ArgumentTarget,
    tables: Vec<Value>,
}

pub(super) async fn run(wanted: &Wanted<'_>) -> ClientResult<()> {
    let mut failures = Vec::new();
    let mut sections: Vec<Section<'_>> = Vec::new();
    for target in &wanted.targets {
        match fetch(wanted, target).await {
            Ok(table) => match sections.last_mut() {
                Some(last) if last.target.resource() == target.resource() => last.tables.push(table),
                _ => sections.push(Section { target, tables: vec![table] }),
            },
            Err(error) if wanted.options.ignore_not_found && error.is_not_found() => {}
            Err(error) => failures.push(error),
        }
    }
    let text = render(wanted, &mut sections)?;
    print(&text)?;
    if text.is_empty() && failures.is_empty() && !wanted.options.ignore_not_found {
        // Kubernetes: kubectl's words.
        if wanted.options.all_namespaces
            || sections.iter().any(|section| !section.target.resource().is_namespaced)
        {
            note("No resources found");
        } else {
            note(&format!("No resources found in {} namespace.", wanted.connection.namespace));
        }
    }
    ClientError::all(failures)
}

async fn fetch(wanted: &Wanted<'_>, target: &ArgumentTarget) -> ClientResult<Value> {
    let api = &wanted.connection.api;
    // Sorting looks at all fields.
    let include = if wanted.options.sort_by.is_some() { "Object" } else { "" };
    match target {
        ArgumentTarget::Object(object) => {
            let path = with_query(&object.path(), &[("includeObject", include)]);
            api.json(Call::get(&path, TABLE)).await
        }
        ArgumentTarget::All(resource) => {
            let path = with_query(&resource.path(wanted.namespace()), &[("includeObject", include)]);
            follow::list(api, &path, TABLE, &wanted.selection).await
        }
    }
}

/// Sections with an empty line between them.
fn render(wanted: &Wanted<'_>, sections: &mut [Section<'_>]) -> ClientResult<String> {
    let types = sections.iter().filter(|section| !section.tables.is_empty()).count();
    let mut text = String::new();
    for section in sections {
        if let Some(path) = &wanted.options.sort_by {
            sort::rows(&mut section.tables, path)?;
        }
        let mut rows = Rows::new(wanted.view(section.target, types > 1));
        let rows: Vec<_> = section.tables.iter().flat_map(|table| rows.of(table, None)).collect();
        if !rows.is_empty() && !text.is_empty() && !wanted.options.no_headers {
            text.push('\n');
        }
        text.push_str(&Layout::default().lines(&rows));
    }
    Ok(text)
}
