//! YAML with the quotes of JSON, for extensions in protobuf documents.

use serde_json::Value;

pub(super) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    yaml_into(value, 0, &mut out);
    out
}

fn yaml_into(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                out.push_str(&format!("{indent}{}:", yaml_key(key)));
                yaml_member(member, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut text = String::new();
                yaml_into(item, depth + 1, &mut text);
                out.push_str(&format!("{indent}- {}", text.trim_start()));
            }
        }
        scalar => out.push_str(&format!("{indent}{scalar}\n")),
    }
}

fn yaml_member(member: &Value, depth: usize, out: &mut String) {
    match member {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            yaml_into(member, depth + 1, out);
        }
        // Kubernetes: lists are not indented below their key.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            yaml_into(member, depth, out);
        }
        scalar => out.push_str(&format!(" {scalar}\n")),
    }
}

/// Keys that are plain words are not quoted; all others are, as in JSON.
fn yaml_key(key: &str) -> String {
    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        && !matches!(
            key.to_ascii_lowercase().as_str(),
            "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
        );
    if plain { key.to_owned() } else { Value::from(key).to_string() }
}
