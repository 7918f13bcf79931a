//! `--for`: what is waited for, and whether an object is there yet.

use crate::client::{
    columns::go_text,
    failure::{ClientError, ClientResult},
    template::Template,
};
use schema::structural::json_path::JsonPath;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Goal {
    Created,
    Deleted,
    Condition {
        name: String,
        value: String,
    },
    /// A path with this value, or with any.
    Path {
        path: JsonPath,
        value: Option<String>,
    },
}

impl Goal {
    pub(super) fn parse(text: &str) -> ClientResult<Goal> {
        if text.eq_ignore_ascii_case("create") {
            return Ok(Goal::Created);
        }
        if text.eq_ignore_ascii_case("delete") {
            return Ok(Goal::Deleted);
        }
        if let Some(condition) = text.strip_prefix("condition=") {
            let (name, value) = condition.split_once('=').unwrap_or((condition, "true"));
            return Ok(Goal::Condition { name: name.to_owned(), value: value.to_owned() });
        }
        let Some(path) = text.strip_prefix("jsonpath=") else {
            return Err(ClientError::error(format!("unrecognized condition: \"{text}\"")));
        };
        let (path, value) = match single_equals(path) {
            Some(at) => (&path[..at], Some(path[at + 1..].trim_matches(['\'', '"']))),
            None => (path, None),
        };
        if value == Some("") {
            return Err(ClientError::error(
                "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3",
            ));
        }
        let path = Template::relaxed(path).map_err(ClientError::error)?;
        Ok(Goal::Path { path, value: value.map(str::to_owned) })
    }

    pub(super) fn is_met(&self, object: &Value) -> ClientResult<bool> {
        match self {
            Goal::Created => Ok(true),
            Goal::Deleted => Ok(false),
            Goal::Condition { name, value } => Ok(has_condition(object, name, value)),
            Goal::Path { path, value } => {
                let found = path.find(object).map_err(ClientError::error)?;
                match (found.as_slice(), value) {
                    ([], _) => Ok(false),
                    ([_], None) => Ok(true),
                    ([Value::Array(_) | Value::Object(_)], Some(_)) => Err(ClientError::error(
                        "jsonpath leads to a nested object or list which is not supported",
                    )),
                    ([found], Some(value)) => Ok(go_text(found).trim() == value.trim()),
                    _ => Err(ClientError::error("given jsonpath expression matches more than one value")),
                }
            }
        }
    }
}

/// Where the first `=` stands that is no part of a `==`.
fn single_equals(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'=', Some(b'=')) => at += 2,
            (b'=', _) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// Kubernetes: a condition about an older generation of the object does not count.
fn has_condition(object: &Value, name: &str, value: &str) -> bool {
    let is_named =
        |condition: &&Value| condition["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(name));
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let Some(condition) = conditions.find(is_named) else { return false };
    let observed = condition["observedGeneration"].as_i64();
    let observed = observed.or_else(|| object["status"]["observedGeneration"].as_i64());
    if let (Some(generation), Some(observed)) = (object["metadata"]["generation"].as_i64(), observed)
        && observed < generation
    {
        return false;
    }
    condition["status"].as_str().is_some_and(|status| status.eq_ignore_ascii_case(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn goals_are_met_as_in_kubectl() {
        let object = json!({
            "metadata": {"generation": 2},
            "status": {"phase": "Running", "replicas": 3, "list": [1, 2], "conditions": [
                {"type": "Ready", "status": "True", "observedGeneration": 2},
                {"type": "Old", "status": "True", "observedGeneration": 1},
            ]},
        });
        for (goal, expected) in [
            ("create", true),
            ("delete", false),
            ("condition=Ready", true),
            ("condition=ready=TRUE", true),
            ("condition=Ready=False", false),
            ("condition=Old", false),
            ("condition=None", false),
            ("jsonpath={.status.phase}=Running", true),
            ("jsonpath=.status.replicas=3", true),
            ("jsonpath={.status.replicas}=4", false),
            ("jsonpath={.status.replicas}", true),
            ("jsonpath={.status.absent}", false),
            (r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}=True"#, true),
        ] {
            assert_eq!(Goal::parse(goal).unwrap().is_met(&object).unwrap(), expected, "{goal}");
        }
        for (goal, expected) in [
            ("ready", "unrecognized condition: \"ready\""),
            ("jsonpath={.a}=", "has to have a value after equal sign"),
        ] {
            let said = Goal::parse(goal).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
        for goal in ["jsonpath={.status.list}=1", "jsonpath={.status.list[*]}"] {
            assert!(Goal::parse(goal).unwrap().is_met(&object).is_err(), "{goal}");
        }
    }
}
