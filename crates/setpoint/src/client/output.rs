//! `-o`: the forms in which objects are printed.

use super::{
    catalog::{group_of, type_name},
    columns::CustomColumns,
    failure::{ClientError, ClientResult},
    json,
    table::Layout,
    template::Template,
    yaml,
};
use serde_json::{Value, json};

/// The forms that `get` knows.
const FORMATS: &str = "custom-columns,json,jsonpath,jsonpath-as-json,name,wide,yaml";

#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// Columns for people.
    Table {
        wide: bool,
    },
    Yaml,
    Json,
    Name,
    Template(Template),
    /// The values at a path, as a list.
    Values(Template),
    Columns(CustomColumns),
}

impl Format {
    pub(crate) fn parse(text: Option<&str>) -> ClientResult<Format> {
        let text = text.unwrap_or_default();
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match name {
            "" => Ok(Format::Table { wide: false }),
            "wide" => Ok(Format::Table { wide: true }),
            "yaml" => Ok(Format::Yaml),
            "json" => Ok(Format::Json),
            "name" => Ok(Format::Name),
            "jsonpath" | "jsonpath-as-json" if value.is_empty() => {
                Err(ClientError::error("template format specified but no template given"))
            }
            "jsonpath" | "jsonpath-as-json" => {
                let template = Template::parse(value).map_err(|problem| {
                    ClientError::error(format!("error parsing jsonpath {value}, {problem}"))
                })?;
                Ok(if name == "jsonpath" { Format::Template(template) } else { Format::Values(template) })
            }
            "custom-columns" => Ok(Format::Columns(CustomColumns::parse(value).map_err(ClientError::error)?)),
            "go-template" | "template" | "go-template-file" | "jsonpath-file" | "custom-columns-file" => {
                Err(ClientError::error(format!("-o {name} needs the real kubectl; there is: {FORMATS}")))
            }
            _ => Err(ClientError::error(format!(
                "unable to match a printer suitable for the output format \"{text}\", allowed formats are: {FORMATS}"
            ))),
        }
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Format::Table { .. })
    }
}

/// Prints objects one after the other in a form.
#[derive(Debug)]
pub(crate) struct ObjectPrinter {
    format: Format,
    shows_managed_fields: bool,
    has_headers: bool,
    layout: Layout,
    count: usize,
}

impl ObjectPrinter {
    pub(crate) fn new(format: Format, shows_managed_fields: bool, has_headers: bool) -> ObjectPrinter {
        ObjectPrinter { format, shows_managed_fields, has_headers, layout: Layout::default(), count: 0 }
    }

    /// The text of an object or a list.
    pub(crate) fn text(&mut self, object: &Value) -> ClientResult<String> {
        self.count += 1;
        match &self.format {
            Format::Yaml => {
                let border = if self.count > 1 { "---\n" } else { "" };
                Ok(format!("{border}{}", yaml::document(&self.shown(object))))
            }
            Format::Json => Ok(json::pretty(&self.shown(object))),
            Format::Name | Format::Table { .. } => {
                Ok(each(object).map(|object| format!("{}\n", short_name(object))).collect())
            }
            Format::Template(template) => template
                .fill(object)
                .map_err(|problem| ClientError::error(format!("error executing jsonpath: {problem}"))),
            Format::Values(template) => {
                let values = template.values(object).map_err(ClientError::error)?;
                Ok(json::pretty(&Value::Array(values)))
            }
            Format::Columns(columns) => {
                let mut rows = Vec::new();
                if self.has_headers && self.count == 1 {
                    rows.push(columns.headers());
                }
                for object in each(object) {
                    rows.push(columns.row(object).map_err(ClientError::error)?);
                }
                Ok(self.layout.lines(&rows))
            }
        }
    }

    /// An object without its managed fields, which say much and are asked for seldom.
    fn shown(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if !self.shows_managed_fields {
            let forget = |object: &mut Value| {
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("managedFields");
                }
            };
            forget(&mut object);
            for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                forget(item);
            }
        }
        object
    }
}

fn each(object: &Value) -> impl Iterator<Item = &Value> {
    let items = if object["kind"] == "List" { object["items"].as_array() } else { None };
    let single = items.is_none().then_some(object);
    items.into_iter().flatten().chain(single)
}

/// `deployment.apps/web`
pub(crate) fn short_name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = type_name(&text(&object["kind"]), group_of(&text(&object["apiVersion"])));
    format!("{kind}/{}", text(&object["metadata"]["name"]))
}

/// Several objects as kubectl's list.
pub(crate) fn as_list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_known_by_their_names() {
        for (text, expected) in [
            ("xml", "error: unable to match a printer suitable for the output format \"xml\""),
            ("jsonpath", "error: template format specified but no template given"),
            ("jsonpath={.a", "error: error parsing jsonpath {.a, unclosed action"),
            ("custom-columns=", "error: custom-columns format specified but no custom columns given"),
            ("go-template={{.a}}", "error: -o go-template needs the real kubectl"),
        ] {
            let said = Format::parse(Some(text)).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_list_is_printed_in_every_form() {
        let item = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "managedFields": [{}]}});
        let list = as_list(vec![item("a"), item("b")]);
        for (format, expected) in [
            ("name", "deployment.apps/a\ndeployment.apps/b\n"),
            ("jsonpath={.items[*].metadata.name}", "a b"),
            ("jsonpath-as-json={.items[*].metadata.name}", "[\n    \"a\",\n    \"b\"\n]\n"),
            ("custom-columns=N:.metadata.name,K:.kind", "N     K\na     Deployment\nb     Deployment\n"),
        ] {
            let mut printer = ObjectPrinter::new(Format::parse(Some(format)).unwrap(), false, true);
            assert_eq!(printer.text(&list).unwrap(), expected, "{format}");
        }
        let mut printer = ObjectPrinter::new(Format::Yaml, false, true);
        let one = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n";
        assert_eq!(printer.text(&item("a")).unwrap(), one);
        assert_eq!(printer.text(&item("a")).unwrap(), format!("---\n{one}"));
    }
}
