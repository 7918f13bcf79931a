//! Tables of the server, laid out in columns as kubectl lays them out.

use serde_json::Value;
use std::collections::BTreeMap;

/// Kubernetes: kubectl's columns are at least this wide, with these many spaces after the longest cell.
const MIN_WIDTH: usize = 6;
const PADDING: usize = 3;

/// The widths of columns, which only grow: the lines of a watch stay in their columns.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    widths: Vec<usize>,
}

impl Layout {
    /// The lines of rows; the last cell of a row is not padded.
    pub(crate) fn lines(&mut self, rows: &[Vec<String>]) -> String {
        for row in rows {
            let padded = row.len().saturating_sub(1);
            if self.widths.len() < padded {
                self.widths.resize(padded, MIN_WIDTH);
            }
            for (width, cell) in self.widths.iter_mut().zip(&row[..padded]) {
                *width = (*width).max(cell.chars().count() + PADDING);
            }
        }
        let mut out = String::new();
        for row in rows {
            for (at, cell) in row.iter().enumerate() {
                out.push_str(cell);
                if at + 1 < row.len() {
                    let spaces = self.widths[at] - cell.chars().count();
                    out.extend(std::iter::repeat_n(' ', spaces));
                }
            }
            out.push('\n');
        }
        out
    }
}

/// What is shown of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) wide: bool,
    pub(crate) headers: bool,
    pub(crate) namespaces: bool,
    /// The type before each name, such as `deployment.apps`.
    pub(crate) kind: Option<String>,
    pub(crate) labels: bool,
    pub(crate) label_columns: Vec<String>,
}

/// Turns tables of one type into rows. Headers come with the first row, and when columns change.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) view: View,
    columns: Vec<Column>,
    has_headers: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Column {
    name: String,
    is_name: bool,
    is_wide: bool,
}

impl Rows {
    pub(crate) fn new(view: View) -> Rows {
        Rows { view, ..Rows::default() }
    }

    /// The rows of a table, with the headers if they are due. `event` is the first cell of each row.
    pub(crate) fn of(&mut self, table: &Value, event: Option<&str>) -> Vec<Vec<String>> {
        let columns: Vec<Column> =
            table["columnDefinitions"].as_array().into_iter().flatten().map(Column::read).collect();
        // Tables of later watch events have no columns of their own.
        if !columns.is_empty() && columns != self.columns {
            (self.columns, self.has_headers) = (columns, false);
        }
        let empty = Vec::new();
        let rows = table["rows"].as_array().unwrap_or(&empty);
        let mut lines = Vec::new();
        if !rows.is_empty() && !self.has_headers {
            self.has_headers = true;
            if self.view.headers {
                lines.push(self.headers(event.is_some()));
            }
        }
        lines.extend(rows.iter().map(|row| self.row(row, event)));
        lines
    }

    fn headers(&self, has_event: bool) -> Vec<String> {
        let mut cells = Vec::new();
        if has_event {
            cells.push("EVENT".to_owned());
        }
        if self.view.namespaces {
            cells.push("NAMESPACE".to_owned());
        }
        cells.extend(self.shown().map(|(_, column)| column.name.to_uppercase()));
        for label in &self.view.label_columns {
            cells.push(label.rsplit('/').next().unwrap_or(label).to_uppercase());
        }
        if self.view.labels {
            cells.push("LABELS".to_owned());
        }
        cells
    }

    fn row(&self, row: &Value, event: Option<&str>) -> Vec<String> {
        let metadata = &row["object"]["metadata"];
        let mut cells = Vec::new();
        if let Some(event) = event {
            // Kubernetes: kubectl pads the type of an event to the longest.
            cells.push(format!("{event:<8}"));
        }
        if self.view.namespaces {
            cells.push(metadata["namespace"].as_str().unwrap_or_default().to_owned());
        }
        for (at, column) in self.shown() {
            let mut cell = plain(&row["cells"][at]);
            if let (true, Some(kind)) = (column.is_name, &self.view.kind) {
                cell = format!("{kind}/{cell}");
            }
            cells.push(cell);
        }
        let labels: BTreeMap<&str, &str> = metadata["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
            .collect();
        for label in &self.view.label_columns {
            cells.push(
                labels.get(label.as_str()).map_or_else(|| "<none>".to_owned(), |&value| value.to_owned()),
            );
        }
        if self.view.labels {
            let pairs: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            cells.push(if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") });
        }
        cells
    }

    fn shown(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| self.view.wide || !column.is_wide)
    }
}

impl Column {
    fn read(definition: &Value) -> Column {
        Column {
            name: definition["name"].as_str().unwrap_or_default().to_owned(),
            is_name: definition["format"] == "name" && definition["type"] == "string",
            is_wide: definition["priority"].as_i64().unwrap_or(0) != 0,
        }
    }
}

/// A cell as text: only its first line, with what would steer a terminal made visible.
fn plain(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => match text.find(['\n', '\r', '\x0c']) {
            Some(end) => visible(&text[..end]) + "...",
            None => visible(text),
        },
        Value::Number(number) if number.is_f64() => number.as_f64().map(api::go::float).unwrap_or_default(),
        other => visible(&other.to_string()),
    }
}

/// Kubernetes: kubectl shows the escape character as `^[`.
pub(crate) fn visible(text: &str) -> String {
    text.replace('\x1b', "^[").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods() -> Value {
        json!({
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name"},
                {"name": "Ready", "type": "string"},
                {"name": "Restarts", "type": "integer"},
                {"name": "Node", "type": "string", "priority": 1},
            ],
            "rows": [
                {"cells": ["web-1", "1/1", 0, "node-1"],
                 "object": {"metadata": {"namespace": "default", "labels": {"b": "2", "a": "1"}}}},
                {"cells": ["a-longer-name", null, 12, "line one\nline two"],
                 "object": {"metadata": {"namespace": "other"}}},
            ],
        })
    }

    #[track_caller]
    fn check(view: View, expected: &str) {
        let rows = Rows::new(view).of(&pods(), None);
        assert_eq!(Layout::default().lines(&rows), expected);
    }

    #[test]
    fn columns_are_padded_and_wide_ones_are_left_out() {
        let view = View { headers: true, ..View::default() };
        check(
            view.clone(),
            "NAME            READY   RESTARTS\nweb-1           1/1     0\na-longer-name           12\n",
        );
        check(View { headers: false, ..view.clone() }, "web-1           1/1   0\na-longer-name         12\n");
        check(
            View { wide: true, kind: Some("pod".to_owned()), ..view.clone() },
            "NAME                READY   RESTARTS   NODE\npod/web-1           1/1     0          node-1\n\
             pod/a-longer-name           12         line one...\n",
        );
        check(
            View {
                namespaces: true,
                labels: true,
                label_columns: vec!["x/b".to_owned(), "b".to_owned()],
                ..view
            },
            "NAMESPACE   NAME            READY   RESTARTS   B        B        LABELS\n\
             default     web-1           1/1     0          <none>   2        a=1,b=2\n\
             other       a-longer-name           12         <none>   <none>   <none>\n",
        );
    }

    #[test]
    fn the_lines_of_a_watch_keep_their_columns_and_have_headers_once() {
        let mut rows = Rows::new(View { headers: true, ..View::default() });
        let mut layout = Layout::default();
        layout.lines(&rows.of(&pods(), None));
        let later = json!({"columnDefinitions": [], "rows": [{"cells": ["x", "0/1", 1, ""]}]});
        assert_eq!(layout.lines(&rows.of(&later, None)), "x               0/1     1\n");
        assert_eq!(rows.of(&later, Some("ADDED")), [["ADDED   ", "x", "0/1", "1"]]);
    }
}
