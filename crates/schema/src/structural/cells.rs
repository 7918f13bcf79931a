//! `additionalPrinterColumns`: the columns and cells of a table.

use api::time::Time;
use api::{go, object};
use serde_json::{Value, json};

use super::json_path::JsonPath;
use crate::patch::print;

/// The columns of one version of a definition.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    column_type: ColumnType,
    path: JsonPath,
    definition: Value,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    String,
    Integer,
    Number,
    Boolean,
    Date,
    /// An unknown type: the cell is empty.
    Unknown,
}

impl Columns {
    /// Compiles columns that were found valid; without any there is the age. Columns after one with an
    /// invalid path are dropped with it.
    #[must_use]
    pub fn compile(columns: &[Value]) -> Self {
        let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": CREATION_TIMESTAMP});
        let columns = if columns.is_empty() { std::slice::from_ref(&age) } else { columns };
        Self { columns: columns.iter().map_while(column).collect() }
    }

    /// The `columnDefinitions` of a table.
    #[must_use]
    pub fn definitions(&self) -> Vec<Value> {
        let name =
            json!({"name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0});
        std::iter::once(name).chain(self.columns.iter().map(|column| column.definition.clone())).collect()
    }

    /// The cells of an object; `age` formats how long ago a time was.
    #[must_use]
    pub fn cells(&self, object: &Value, age: &dyn Fn(Time) -> String) -> Vec<Value> {
        let name = Value::from(object::name(object));
        std::iter::once(name).chain(self.columns.iter().map(|column| column.cell(object, age))).collect()
    }
}

fn column(column: &Value) -> Option<Column> {
    let text = |name: &str| column[name].as_str().unwrap_or_default();
    let description = match text("description") {
        "" => format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")),
        description => description.to_owned(),
    };
    let column_type = match text("type") {
        "string" => ColumnType::String,
        "integer" => ColumnType::Integer,
        "number" => ColumnType::Number,
        "boolean" => ColumnType::Boolean,
        "date" => ColumnType::Date,
        _ => ColumnType::Unknown,
    };
    let definition = json!({
        "name": text("name"),
        "type": text("type"),
        "format": text("format"),
        "description": description,
        "priority": column["priority"].as_i64().unwrap_or(0),
    });
    Some(Column { column_type, path: JsonPath::parse(text("jsonPath")).ok()?, definition })
}

impl Column {
    fn cell(&self, object: &Value, age: &dyn Fn(Time) -> String) -> Value {
        let found = self.path.find(object).ok().and_then(|found| found.first().copied());
        let Some(value) = found else { return Value::Null };
        match (self.column_type, value) {
            (ColumnType::String, Value::Null) => "<no value>".into(),
            (ColumnType::String, Value::Array(_) | Value::Object(_)) => {
                go::json(value).unwrap_or_default().into()
            }
            (ColumnType::String, value) => print::plain(value).into(),
            (ColumnType::Integer, Value::Number(number)) => match number.as_i64() {
                Some(integer) => integer.into(),
                None => number.as_f64().map_or(Value::Null, |real| (real as i64).into()),
            },
            (ColumnType::Number, Value::Number(number)) => {
                crate::number::double(number.as_f64().unwrap_or_default())
            }
            (ColumnType::Boolean, Value::Bool(_)) => value.clone(),
            (ColumnType::Date, Value::String(text)) => match text.as_str() {
                "" | "null" => "<unknown>".into(),
                text => match text.parse::<Time>() {
                    Ok(moment) if moment.is_zero() => "<unknown>".into(),
                    Ok(moment) => age(moment).into(),
                    Err(_) => "<invalid>".into(),
                },
            },
            _ => Value::Null,
        }
    }
}

// Kubernetes: kube-apiserver's descriptions of these two, here and for built-in kinds.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
    resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATION_TIMESTAMP: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set \
    this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for \
    lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_show_values_of_their_type() {
        let object = json!({
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"s": "x", "i": 7, "f": 2.5, "b": true, "n": null, "l": ["a", "<"], "m": {"k": 1},
                "d": "soon", "e": 1000000.0},
        });
        for (sort, path, expected) in [
            ("string", ".spec.s", json!("x")),
            ("string", ".spec.i", json!("7")),
            ("string", ".spec.e", json!("1e+06")),
            ("string", ".spec.b", json!("true")),
            ("string", ".spec.n", json!("<no value>")),
            ("string", ".spec.l", json!(r#"["a","\u003c"]"#)),
            ("string", ".spec.l[*]", json!("a")),
            ("string", ".spec.l[9]", json!(null)),
            ("string", ".spec.m", json!(r#"{"k":1}"#)),
            ("string", ".spec.gone", json!(null)),
            ("integer", ".spec.i", json!(7)),
            ("integer", ".spec.f", json!(2)),
            ("integer", ".spec.s", json!(null)),
            ("number", ".spec.f", json!(2.5)),
            ("number", ".spec.i", json!(7)),
            ("boolean", ".spec.b", json!(true)),
            ("boolean", ".spec.s", json!(null)),
            ("date", ".metadata.creationTimestamp", json!("5d")),
            ("date", ".spec.d", json!("<invalid>")),
            ("date", ".spec.gone", json!(null)),
            ("date", ".spec.i", json!(null)),
        ] {
            let columns = Columns::compile(&[json!({"name": "C", "type": sort, "jsonPath": path})]);
            let cells = columns.cells(&object, &|_| "5d".to_owned());
            assert_eq!(cells, [json!("a"), expected], "{sort} {path}");
        }
    }

    #[test]
    fn without_columns_there_is_the_age() {
        let columns = Columns::compile(&[]);
        let names: Vec<_> = columns.definitions().iter().map(|column| column["name"].clone()).collect();
        assert_eq!(names, ["Name", "Age"]);
    }
}
