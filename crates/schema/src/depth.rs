//! The limit on the nesting depth of objects, for every reader, patch and stored object.

use serde_json::Value;

/// How many objects and lists may be nested, counting the outermost.
///
/// Every stored object must be readable by serde_json, which this server and every Rust client use: it stops
/// at 128. Objects are also sent inside other documents: a list adds 2 levels, a table or a conversion review
/// 3. kube-apiserver takes 10,000; objects in use stay far below 100, and the deepest CRD schemas nest about
/// 60.
pub const MAX_DEPTH: usize = 120;

/// The deepest object whose fields can have managers: `metadata.managedFields[].fieldsV1` repeats its
/// nesting, and is 5 levels deep itself.
pub const MAX_OWNED_DEPTH: usize = MAX_DEPTH - 5;

/// The nesting depth: 0 for a scalar. Not recursive, so that recursive walks after it are safe.
#[must_use]
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{FieldValidation, decode_any};

    #[test]
    fn objects_at_the_depth_limit_are_readable_by_serde_json() {
        let json = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let list = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        for text in [json(MAX_DEPTH), list(MAX_DEPTH)] {
            let read = decode_any(text.as_bytes(), FieldValidation::Strict).unwrap().value;
            assert_eq!(depth(&read), MAX_DEPTH);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), read);
            let in_a_table = format!("{{\"rows\":[{{\"object\":{text}}}]}}");
            assert!(serde_json::from_str::<Value>(&in_a_table).is_ok());
            let from_yaml = crate::yaml::to_json(text.as_bytes()).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&from_yaml.json).unwrap(), read);
        }
        for text in [json(MAX_DEPTH + 1), list(MAX_DEPTH + 1)] {
            let refused = decode_any(text.as_bytes(), FieldValidation::Ignore).unwrap_err();
            assert!(refused.to_string().contains("exceeded max depth"), "{refused}");
            let refused = crate::yaml::to_json(text.as_bytes()).unwrap_err();
            assert!(refused.to_string().contains("exceeded max depth"), "{refused}");
        }
    }
}
