//! `-o custom-columns=NAME:.metadata.name,…`: columns that the caller chooses.

use super::{table::visible, template::Template};
use schema::structural::json_path::JsonPath;
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct CustomColumns(Vec<(String, JsonPath)>);

impl CustomColumns {
    pub(crate) fn parse(text: &str) -> Result<CustomColumns, String> {
        if text.is_empty() {
            return Err("custom-columns format specified but no custom columns given".to_owned());
        }
        let column = |part: &str| {
            let (header, path) = part.split_once(':').ok_or_else(|| {
                format!("unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
            })?;
            Ok((header.to_owned(), Template::relaxed(path)?))
        };
        Ok(CustomColumns(text.split(',').map(column).collect::<Result<_, String>>()?))
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        self.0.iter().map(|(header, _)| header.clone()).collect()
    }

    pub(crate) fn row(&self, object: &Value) -> Result<Vec<String>, String> {
        let cell = |path: &JsonPath| {
            let found = path.find(object).map_err(|error| error.to_string())?;
            let texts: Vec<_> = found.into_iter().map(|value| visible(&go_text(value))).collect();
            Ok(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
        };
        self.0.iter().map(|(_, path)| cell(path)).collect()
    }
}

/// As Go prints a value: `map[a:1]`, `[x y]`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().map(api::go::float).unwrap_or_default(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" "))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_the_values_at_the_paths() {
        let columns = CustomColumns::parse(
            "NAME:.metadata.name,IMAGES:spec.containers[*].image,X:.x,L:{.metadata.labels}",
        );
        let columns = columns.unwrap();
        assert_eq!(columns.headers(), ["NAME", "IMAGES", "X", "L"]);
        let pod = json!({
            "metadata": {"name": "a", "labels": {"k": "v"}},
            "spec": {"containers": [{"image": "i:1"}, {"image": "i:2"}]},
        });
        assert_eq!(columns.row(&pod).unwrap(), ["a", "i:1,i:2", "<none>", "map[k:v]"]);
        assert!(CustomColumns::parse("NAME").is_err());
    }
}
