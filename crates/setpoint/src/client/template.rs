//! Templates of kubectl's JSONPath: text, `{.paths}`, `{"literals"}` and `{range}` … `{end}`.

use super::json;
use schema::structural::json_path::JsonPath;
use serde_json::Value;

/// How deep ranges may nest.
const MAX_RANGES: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Path(JsonPath),
    Range(JsonPath, Vec<Part>),
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut rest = text;
        let parts = parts(&mut rest, 0)?;
        Ok(Template(parts))
    }

    /// One path, with or without braces and leading dot, as `--sort-by`, `--for` and custom columns take it.
    pub(crate) fn relaxed(text: &str) -> Result<JsonPath, String> {
        let inner = text.strip_prefix('{').map_or(Some(text), |inner| inner.strip_suffix('}'));
        let Some(inner) = inner.filter(|inner| !inner.is_empty() && !inner.contains(['{', '}'])) else {
            return Err("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'".to_owned());
        };
        let path = if inner.starts_with(['.', '[', '$']) { inner.to_owned() } else { format!(".{inner}") };
        JsonPath::parse(&path).map_err(|error| error.to_string())
    }

    pub(crate) fn fill(&self, value: &Value) -> Result<String, String> {
        let mut out = String::new();
        fill(&self.0, value, &mut out)?;
        Ok(out)
    }

    /// The values of all paths outside ranges.
    pub(crate) fn values(&self, value: &Value) -> Result<Vec<Value>, String> {
        let mut values = Vec::new();
        for part in &self.0 {
            if let Part::Path(path) = part {
                values.extend(path.find(value).map_err(|error| error.to_string())?.into_iter().cloned());
            }
        }
        Ok(values)
    }
}

/// Parts up to the end of the text, or to the `{end}` of a range.
fn parts(rest: &mut &str, depth: usize) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let text = &rest[..rest.find('{').unwrap_or(rest.len())];
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
            *rest = &rest[text.len()..];
            continue;
        }
        let end = action_end(rest).ok_or("unclosed action")?;
        let action = rest[1..end].trim();
        *rest = &rest[end + 1..];
        if action == "end" {
            return if depth == 0 { Err("not in range, nothing to end".to_owned()) } else { Ok(parts) };
        }
        if let Some(path) =
            action.strip_prefix("range").filter(|path| !path.starts_with(char::is_alphanumeric))
        {
            if depth == MAX_RANGES {
                return Err(format!("ranges nest deeper than {MAX_RANGES}"));
            }
            let path = JsonPath::parse(path.trim()).map_err(|error| error.to_string())?;
            parts.push(Part::Range(path, self::parts(rest, depth + 1)?));
        } else if action.starts_with(['"', '\'']) {
            parts.push(Part::Text(literal(action)?));
        } else {
            parts.push(Part::Path(JsonPath::parse(action).map_err(|error| error.to_string())?));
        }
    }
    if depth > 0 { Err("unclosed range: end it with {end}".to_owned()) } else { Ok(parts) }
}

/// Where the action at the start of the text ends; braces between quotes do not count.
fn action_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '}' => return Some(at),
            None => {}
        }
    }
    None
}

/// `"\t"`: a quoted text with the escapes of Go.
fn literal(action: &str) -> Result<String, String> {
    let quote = &action[..1];
    let inner = action[1..].strip_suffix(quote).ok_or("unterminated quoted string")?;
    let mut out = String::new();
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        match (c, if c == '\\' { characters.next() } else { None }) {
            (_, Some('n')) => out.push('\n'),
            (_, Some('t')) => out.push('\t'),
            (_, Some('r')) => out.push('\r'),
            (_, Some(other)) => out.push(other),
            (c, None) => out.push(c),
        }
    }
    Ok(out)
}

fn fill(parts: &[Part], value: &Value, out: &mut String) -> Result<(), String> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => {
                let found = path.find(value).map_err(|error| error.to_string())?;
                let texts: Vec<_> = found.into_iter().map(text).collect();
                out.push_str(&texts.join(" "));
            }
            Part::Range(path, inner) => {
                for item in path.find(value).map_err(|error| error.to_string())? {
                    fill(inner, item, out)?;
                }
            }
        }
    }
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().map(api::go::float).unwrap_or_default(),
        other => json::compact(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_are_filled_as_by_kubectl() {
        let list = json!({"kind": "List", "items": [
            {"metadata": {"name": "a", "labels": {"x.y/z": "1"}}, "ready": true, "ports": [80, 81]},
            {"metadata": {"name": "b"}, "ready": false, "ports": []},
        ]});
        for (template, expected) in [
            ("{.kind}", "List"),
            ("kind={.kind};", "kind=List;"),
            ("{.items[*].metadata.name}", "a b"),
            ("{.items[0].ports}", "[80,81]"),
            ("{.items[-1].metadata.name}", "b"),
            ("{.items[0].metadata}", r#"{"labels":{"x.y/z":"1"},"name":"a"}"#),
            (r"{.items[0].metadata.labels.x\.y/z}", "1"),
            ("{.items[?(@.ready==true)].metadata.name}", "a"),
            (r#"{.items[?(@.metadata.name=="b")].ready}"#, "false"),
            ("{..name}", "a b"),
            ("{.missing}", ""),
            ("{range .missing[*]}x{end}", ""),
            (
                r#"{range .items[*]}{.metadata.name}{"\t"}{range .ports[*]}{@},{end}{'\n'}{end}done"#,
                "a\t80,81,\nb\t\ndone",
            ),
            ("{.items[0]['ready','ports']}", "true [80,81]"),
            ("{.items[0:1].metadata.name}", "a"),
            (r#"{"}"}"#, "}"),
            ("no braces", "no braces"),
        ] {
            let filled = Template::parse(template).and_then(|template| template.fill(&list));
            assert_eq!(filled.as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn broken_templates_are_refused() {
        for (template, expected) in [
            ("{.a", "unclosed action"),
            ("{end}", "not in range, nothing to end"),
            ("{range .a[*]}x", "unclosed range: end it with {end}"),
            ("{\"a}", "unclosed action"),
        ] {
            assert_eq!(Template::parse(template).map(drop), Err(expected.to_owned()), "{template}");
        }
        for path in ["metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"] {
            let found = Template::relaxed(path).map(|path| path.text(&json!({"metadata": {"name": "x"}})));
            assert_eq!(found.as_deref(), Ok("x"), "{path}");
        }
        assert!(Template::relaxed("{.a").is_err());
    }
}
