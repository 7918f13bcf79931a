//! Lists in pages, and watches that go on where the last one ended.

use super::{
    api::{Api, Call, JSON, Lines, with_query},
    failure::{ClientError, ClientResult, StatusAnswer},
};
use serde_json::Value;

/// Kubernetes: kubectl lists in pages of this many objects.
const PAGE: &str = "500";

/// So many watches in a row may end without an event, each after half an hour or more: a server that ends them at
/// once is not asked forever.
const MAX_QUIET_WATCHES: usize = 100;

/// Which objects of a collection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) labels: String,
    pub(crate) fields: String,
}

impl Selection {
    /// One object of a collection.
    pub(crate) fn of_name(name: &str) -> Selection {
        Selection { fields: format!("metadata.name={name}"), labels: String::new() }
    }
}

/// All pages of a list as one: the first, with the items or rows of the others.
pub(crate) async fn list(api: &Api, path: &str, accept: &str, selection: &Selection) -> ClientResult<Value> {
    let mut whole: Option<Value> = None;
    let mut next = String::new();
    loop {
        let query = [
            ("labelSelector", selection.labels.as_str()),
            ("fieldSelector", &selection.fields),
            ("limit", PAGE),
            ("continue", &next),
        ];
        let mut page = api.json(Call::get(&with_query(path, &query), accept)).await?;
        next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        let joined = match whole.take() {
            None => page,
            Some(mut joined) => {
                for field in ["items", "rows"] {
                    if let (Some(all), Some(more)) =
                        (joined[field].as_array_mut(), page[field].as_array_mut())
                    {
                        all.append(more);
                    }
                }
                joined
            }
        };
        if next.is_empty() {
            return Ok(joined);
        }
        whole = Some(joined);
    }
}

/// The objects of a collection, each with its kind, which lists leave out.
pub(crate) async fn items(api: &Api, path: &str, selection: &Selection) -> ClientResult<Vec<Value>> {
    let mut page = list(api, path, JSON, selection).await?;
    let api_version = page["apiVersion"].clone();
    let kind = page["kind"].as_str().unwrap_or_default();
    let kind = Value::from(kind.strip_suffix("List").unwrap_or(kind));
    let Some(Value::Array(mut items)) = page.get_mut("items").map(Value::take) else { return Ok(Vec::new()) };
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.entry("apiVersion").or_insert_with(|| api_version.clone());
        item.entry("kind").or_insert_with(|| kind.clone());
    }
    Ok(items)
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    /// `ADDED`, `MODIFIED` or `DELETED`
    pub(crate) event: String,
    pub(crate) object: Value,
}

/// A watch of a collection, which starts again where the server ends it.
#[derive(Debug)]
pub(crate) struct Following<'a> {
    api: &'a Api,
    path: String,
    accept: &'a str,
    selection: Selection,
    version: String,
    lines: Option<Lines>,
    quiet_watches: usize,
}

impl<'a> Following<'a> {
    /// From a resourceVersion on.
    pub(crate) fn new(
        api: &'a Api,
        path: &str,
        accept: &'a str,
        selection: &Selection,
        version: &Value,
    ) -> Following<'a> {
        let version = version.as_str().unwrap_or_default().to_owned();
        let (path, selection) = (path.to_owned(), selection.clone());
        Following { api, path, accept, selection, version, lines: None, quiet_watches: 0 }
    }

    /// The next event. An error means that the watch cannot go on.
    pub(crate) async fn next(&mut self) -> ClientResult<Happening> {
        loop {
            let lines = match &mut self.lines {
                Some(lines) => lines,
                None => {
                    let query = [
                        ("watch", "1"),
                        ("labelSelector", self.selection.labels.as_str()),
                        ("fieldSelector", &self.selection.fields),
                        ("resourceVersion", &self.version),
                    ];
                    let path = with_query(&self.path, &query);
                    self.lines.insert(self.api.lines(Call::get(&path, self.accept)).await?)
                }
            };
            let Some(line) = lines.next().await? else {
                self.lines = None;
                self.quiet_watches += 1;
                if self.quiet_watches > MAX_QUIET_WATCHES {
                    return Err(ClientError::error(format!("the server ends each watch of {}", self.path)));
                }
                continue;
            };
            self.quiet_watches = 0;
            let mut event: Value = serde_json::from_slice(&line)
                .map_err(|error| ClientError::error(format!("an event of the watch is no JSON: {error}")))?;
            let (kind, object) = (event["type"].take(), event["object"].take());
            let kind = kind.as_str().unwrap_or_default().to_owned();
            if kind == "ERROR" {
                return Err(ClientError::Status(Box::new(StatusAnswer::of(500, &object))));
            }
            if let Some(version) = version_of(&object) {
                self.version = version.to_owned();
            }
            if kind != "BOOKMARK" {
                return Ok(Happening { event: kind, object });
            }
        }
    }
}

/// The resourceVersion of an object, or of the object of a table with one row.
fn version_of(object: &Value) -> Option<&str> {
    let own = object["metadata"]["resourceVersion"].as_str();
    let row = || object["rows"][0]["object"]["metadata"]["resourceVersion"].as_str();
    own.or_else(row).filter(|version| !version.is_empty())
}
