//! Who wrote which fields: managedFields in words.

use serde_json::Value;
use std::collections::BTreeMap;

/// More paths than this are told by what they have in common.
const MAX_PATHS: usize = 6;

/// What one writer did: `kubectl applied spec.replicas, spec.template (12 fields)`.
pub(super) fn words(entry: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verb = if entry["operation"] == "Apply" { "applied" } else { "wrote" };
    let subresource = match text(&entry["subresource"]).as_str() {
        "" => String::new(),
        name => format!(" through /{name}"),
    };
    format!("{} {verb} {}{subresource}", text(&entry["manager"]), summary(&entry["fieldsV1"]))
}

/// The paths of a set of fields, shortened if there are many.
fn summary(fields: &Value) -> String {
    let mut paths = Vec::new();
    leaves(fields, &mut Vec::new(), &mut paths);
    if paths.is_empty() {
        return "no fields".to_owned();
    }
    if paths.len() <= MAX_PATHS {
        return paths.iter().map(|path| join(path)).collect::<Vec<_>>().join(", ");
    }
    let two = grouped(&paths, 2);
    let groups = if two.len() <= MAX_PATHS { two } else { grouped(&paths, 1) };
    let tell = |(path, count): (String, usize)| match count {
        1 => path,
        _ => format!("{path} ({count} fields)"),
    };
    groups.into_iter().map(tell).collect::<Vec<_>>().join(", ")
}

/// How many paths begin with each of their first segments; a group of one keeps its whole path.
fn grouped(paths: &[Vec<String>], segments: usize) -> Vec<(String, usize)> {
    let mut groups: BTreeMap<Vec<String>, Vec<&Vec<String>>> = BTreeMap::new();
    for path in paths {
        groups.entry(path.iter().take(segments).cloned().collect()).or_default().push(path);
    }
    let tell = |(start, members): (Vec<String>, Vec<&Vec<String>>)| match members.as_slice() {
        [path] => (join(path), 1),
        members => (join(&start), members.len()),
    };
    groups.into_iter().map(tell).collect()
}

/// The fields that have none below them.
fn leaves(fields: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    for (key, below) in fields.as_object().into_iter().flatten() {
        // `.` is the element itself, which its fields tell as well.
        if key == "." {
            continue;
        }
        path.push(segment(key));
        let has_fields = below.as_object().is_some_and(|below| below.keys().any(|key| key != "."));
        if has_fields {
            leaves(below, path, out);
        } else {
            out.push(path.clone());
        }
        path.pop();
    }
}

/// `f:spec` is `.spec`, `k:{"name":"main"}` is `[name=main]`, `v:"x"` is `["x"]`.
fn segment(key: &str) -> String {
    match key.split_once(':') {
        Some(("f", name)) if name.contains('.') => format!("[{name}]"),
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => match serde_json::from_str::<BTreeMap<String, Value>>(keys) {
            Ok(keys) => {
                let pairs = keys.iter().map(|(name, value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                });
                format!("[{}]", pairs.collect::<Vec<_>>().join(","))
            }
            Err(_) => format!("[{keys}]"),
        },
        Some((_, value)) => format!("[{value}]"),
        None => key.to_owned(),
    }
}

fn join(path: &[String]) -> String {
    path.concat().trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_told_as_paths() {
        let container =
            json!({"f:image": {}, "f:name": {}, ".": {}, "f:ports": {"k:{\"containerPort\":80}": {".": {}}}});
        for (fields, expected) in [
            (json!({"f:spec": {"f:replicas": {}}}), "spec.replicas"),
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": container}}}),
                "spec.containers[name=main].image, spec.containers[name=main].name, \
                 spec.containers[name=main].ports[containerPort=80]",
            ),
            (
                json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"x/y\"": {}}}}),
                "metadata.finalizers[\"x/y\"]",
            ),
            (json!({"f:metadata": {"f:labels": {"f:a.b/c": {}}}}), "metadata.labels[a.b/c]"),
            (json!({}), "no fields"),
            (
                json!({"f:spec": {"f:a": {"f:1": {}, "f:2": {}, "f:3": {}, "f:4": {}, "f:5": {}, "f:6": {}}, "f:b": {}}}),
                "spec.a (6 fields), spec.b",
            ),
        ] {
            assert_eq!(summary(&fields), expected);
        }
        let entry = json!({"manager": "kubectl", "operation": "Apply", "subresource": "scale",
            "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        assert_eq!(words(&entry), "kubectl applied spec.replicas through /scale");
    }
}
