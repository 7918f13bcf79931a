//! The options of a connection as an object, which admission webhooks and policies review.

use crate::{
    call::Call,
    request::{flag, pairs},
};
use serde_json::{Map, Value, json};

/// `PodExecOptions` and the like. `path` is what a proxy is asked for.
pub(super) fn object(call: &Call, path: &str) -> Value {
    let subresource = call.target.subresource.as_str();
    let kind = call.served.subresource(subresource).map(|sub| sub.kind.to_string()).unwrap_or_default();
    let query = call.raw.as_ref().and_then(|raw| raw.uri.query()).unwrap_or_default();
    let mut object = json!({"kind": kind, "apiVersion": "v1"});
    for (name, value) in members(subresource, query, path) {
        object[name] = value;
    }
    object
}

/// Kubernetes: what is false or empty is left out.
fn members(subresource: &str, query: &str, path: &str) -> Map<String, Value> {
    let asked: Vec<(String, String)> = pairs(query).collect();
    let all = |wanted: &str| {
        asked.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value).collect::<Vec<_>>()
    };
    let mut found = Map::new();
    let mut tell =
        |name: &str, value: Option<Value>| found.extend(value.map(|value| (name.to_owned(), value)));
    match subresource {
        "exec" | "attach" => {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                tell(name, all(name).first().is_some_and(|value| flag(value)).then_some(true.into()));
            }
            tell(
                "container",
                all("container").first().filter(|name| !name.is_empty()).map(|name| json!(name)),
            );
            let words = all("command");
            tell("command", (subresource == "exec" && !words.is_empty()).then(|| json!(words)));
        }
        "portforward" => {
            let ports = all("ports").into_iter().flat_map(|ports| ports.split(','));
            let ports: Vec<u32> = ports.filter_map(|port| port.trim().parse().ok()).collect();
            tell("ports", (!ports.is_empty()).then(|| json!(ports)));
        }
        _ => tell("path", (!path.is_empty()).then(|| path.into())),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_connection_are_those_of_its_url() {
        for (subresource, query, path, expected) in [
            (
                "exec",
                "command=sh&command=-c&stdin=true&tty=false&stdout=1&container=a",
                "",
                json!({"stdin": true, "stdout": true, "container": "a", "command": ["sh", "-c"]}),
            ),
            ("attach", "stderr=true&command=sh&container=", "", json!({"stderr": true})),
            ("portforward", "ports=80,81&ports=x&ports=82", "", json!({"ports": [80, 81, 82]})),
            ("proxy", "a=b", "/x/y", json!({"path": "/x/y"})),
            ("proxy", "", "", json!({})),
        ] {
            assert_eq!(Value::Object(members(subresource, query, path)), expected, "{subresource}?{query}");
        }
    }
}
