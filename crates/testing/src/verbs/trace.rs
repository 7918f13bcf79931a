//! Trace: the last requests of all clients, in order.

use crate::{Cluster, Entry};
use serde_json::{Value, json};

const READS: [&str; 4] = ["get", "list", "watch", "other"];

pub(crate) fn trace(cluster: &Cluster, spec: &Value) -> Value {
    let trace = cluster.transport.recorder.trace();
    let limit = spec["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let fits: Vec<&Entry> = trace.entries.iter().filter(|entry| is_wanted(spec, entry)).collect();
    let (now, elapsed) = (cluster.clock.wall(), cluster.transport.elapsed());
    let requests = fits[fits.len().saturating_sub(limit)..].iter().map(|entry| {
        let at = now.saturating_sub(elapsed.saturating_sub(entry.at)).unwrap_or(now);
        let mut request = json!({
            "at": at.to_string(), "user": entry.caller, "client": entry.agent,
            "verb": entry.verb, "path": entry.path,
        });
        let more = [
            ("code", entry.code.map(Value::from)),
            ("resourceVersion", entry.resource_version.map(|version| version.to_string().into())),
            ("fault", entry.fault.clone().map(Value::from)),
        ];
        for (field, value) in more {
            if let Some(value) = value {
                request[field] = value;
            }
        }
        request
    });
    let requests: Vec<Value> = requests.collect();
    json!({"total": cluster.transport.recorder.count(), "requests": requests})
}

fn is_wanted(spec: &Value, entry: &Entry) -> bool {
    let is = |field: &str, found: &str| spec[field].as_str().is_none_or(|wanted| wanted == found);
    is("user", &entry.caller)
        && is("resource", &entry.resource)
        && spec["client"].as_str().is_none_or(|wanted| entry.agent.starts_with(wanted))
        && (is("verb", entry.verb) || (spec["verb"] == "write" && !READS.contains(&entry.verb)))
}
