//! Normalizes what control loops leave: hashes, generated names, uids, times and addresses; events are counted.

use super::play::KindAndObject;
use regex::{Captures, Regex};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::LazyLock};

/// What stands in the end: objects by kind and normalized name, several if their names were generated.
pub type Leveled = BTreeMap<String, Vec<Value>>;

/// Kubernetes: how the message of an event begins that stands for many similar ones.
pub(super) const COMBINED: &str = "(combined from similar events)";
/// Kubernetes: the letters of generated names.
const LETTERS: &str = "[bcdfghjklmnpqrstvwxz2456789]";
/// The names of workloads in stories.
const WORKLOAD: &str = r"(?:web|old|set|daemon|job|db|cron)-\d+";

static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<uid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
        r"|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)",
        r"|(?P<address>\b10\.\d+\.\d+\.\d+)",
        r"|(?P<volume>kube-api-access-[a-z0-9]{5})",
        r"|(?P<node>\bnode-\d+\b)",
        // Of ReplicaSets and revisions that are gone.
        r#"|(?P<hash>"(pod-template-hash|controller-revision-hash)":"[0-9a-z]{7,10}")"#,
    ))
    .expect("the pattern is a constant")
});
static GENERATED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"\b(?P<owner>{WORKLOAD}(?:-#[rv]?\d*|-\d+)?)-{LETTERS}{{5}}\b"))
        .expect("the pattern is a constant")
});
/// The hash of a ReplicaSet that is gone.
static HASH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"\b(?P<owner>{WORKLOAD})-[0-9a-z]{{7,10}}\b")).expect("the pattern is a constant")
});

/// Fields of metadata that differ by their nature, or by who writes.
const VARYING_METADATA: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "selfLink"];

/// Normalizes everything that was found.
pub fn level(namespace: &str, found: Vec<KindAndObject>) -> Leveled {
    let hashes = hashes(&found);
    let mut leveled = Leveled::new();
    let mut events: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, object) in found {
        if kind == "Event" {
            if let Some((event, count)) = event(&object) {
                *events.entry(text(&event, namespace, &hashes)).or_default() += count;
            }
            continue;
        }
        let object = reduced(kind, object);
        let object = text(&object.to_string(), namespace, &hashes);
        // What was text is text again: only letters within strings have changed.
        let Ok(object) = serde_json::from_str::<Value>(&object) else { continue };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        leveled.entry(format!("{kind} {name}")).or_default().push(sorted(object));
    }
    for objects in leveled.values_mut() {
        objects.sort_by_key(Value::to_string);
    }
    for (event, count) in events {
        leveled.insert(format!("Event {event}"), vec![json!({"count": count})]);
    }
    leveled
}

/// The hashes of ReplicaSets and revisions, and what stands for them: `#` and the number of the revision.
fn hashes(found: &[KindAndObject]) -> Vec<(String, String)> {
    let mut hashes = Vec::new();
    for (kind, object) in found {
        let metadata = &object["metadata"];
        let (hash, number) = match *kind {
            "ReplicaSet" => (
                &metadata["labels"]["pod-template-hash"],
                metadata["annotations"]["deployment.kubernetes.io/revision"]
                    .as_str()
                    .unwrap_or("0")
                    .to_owned(),
            ),
            "ControllerRevision" => {
                let labels = &metadata["labels"];
                let hash = [&labels["controller.kubernetes.io/hash"], &labels["controller-revision-hash"]];
                let hash = hash.into_iter().find(|it| it.is_string()).unwrap_or(&Value::Null);
                (hash, object["revision"].to_string())
            }
            _ => continue,
        };
        if let Some(hash) = hash.as_str() {
            let letter = if *kind == "ReplicaSet" { 'r' } else { 'v' };
            hashes.push((hash.to_owned(), format!("#{letter}{number}")));
        }
    }
    hashes
}

/// An object without what differs by its nature. Of pods, whose nodes are the same program on both sides, only what
/// control loops decide is left.
fn reduced(kind: &str, mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| !VARYING_METADATA.contains(&name.as_str()));
    }
    if kind == "Pod" {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let conditions: BTreeMap<String, Value> = conditions
            .map(|it| {
                (it["type"].as_str().unwrap_or_default().to_owned(), json!([it["status"], it["reason"]]))
            })
            .filter(|(kind, _)| !matches!(kind.as_str(), "Ready" | "ContainersReady"))
            .collect();
        object["status"] = json!({"phase": object["status"]["phase"], "conditions": conditions});
        object["spec"].as_object_mut().map(|spec| spec.remove("nodeName"));
    }
    if kind == "ConfigMap" {
        // The certificate of the cluster.
        object.as_object_mut().map(|it| it.remove("data"));
    }
    if kind == "EndpointSlice" {
        for endpoint in object["endpoints"].as_array_mut().into_iter().flatten() {
            endpoint.as_object_mut().map(|it| it.remove("nodeName"));
        }
    }
    if kind == "Endpoints" {
        for subset in object["subsets"].as_array_mut().into_iter().flatten() {
            for list in ["addresses", "notReadyAddresses"] {
                for address in subset[list].as_array_mut().into_iter().flatten() {
                    address.as_object_mut().map(|it| it.remove("nodeName"));
                }
                if subset[list].is_null() {
                    subset.as_object_mut().map(|it| it.remove(list));
                }
            }
        }
    }
    object
}

/// Lists whose order has no meaning: conditions by their type, endpoints by their text.
fn sorted(mut object: Value) -> Value {
    if let Some(conditions) = object["status"]["conditions"].as_array() {
        let by_type: BTreeMap<String, Value> = conditions
            .iter()
            .map(|it| (it["type"].as_str().unwrap_or_default().to_owned(), it.clone()))
            .collect();
        object["status"]["conditions"] = json!(by_type);
    }
    if let Some(endpoints) = object["endpoints"].as_array_mut() {
        endpoints.sort_by_key(Value::to_string);
    }
    for subset in object["subsets"].as_array_mut().into_iter().flatten() {
        for list in ["addresses", "notReadyAddresses"] {
            if let Some(addresses) = subset[list].as_array_mut() {
                addresses.sort_by_key(Value::to_string);
            }
        }
    }
    drop_empty(&mut object);
    object
}

/// Indexing creates members that are null.
fn drop_empty(object: &mut Value) {
    for member in ["status", "endpoints", "subsets"] {
        if object[member].is_null() {
            object.as_object_mut().map(|object| object.remove(member));
        }
    }
    if object["status"].is_object() && object["status"]["conditions"].is_null() {
        object["status"].as_object_mut().map(|status| status.remove("conditions"));
    }
    for member in ["status", "endpoints", "subsets"] {
        if object[member].is_null() {
            object.as_object_mut().map(|object| object.remove(member));
        }
    }
}

/// An event of a control loop as one line, and how often it was recorded. Those of kubelets come from the same program.
fn event(event: &Value) -> Option<(String, u64)> {
    let source = [&event["source"]["component"], &event["reportingComponent"]];
    let source = source.into_iter().filter_map(Value::as_str).find(|it| !it.is_empty()).unwrap_or_default();
    if source == "kubelet" {
        return None;
    }
    let object = &event["involvedObject"];
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = [
        part(&object["kind"]),
        part(&object["name"]),
        source.to_owned(),
        part(&event["type"]),
        part(&event["reason"]),
        part(&event["message"]),
    ];
    let count = event["series"]["count"].as_u64().or(event["count"].as_u64()).unwrap_or(1).max(1);
    Some((line.join("|"), count))
}

fn text(text: &str, namespace: &str, hashes: &[(String, String)]) -> String {
    let mut text = text.replace(namespace, "{ns}");
    for (hash, number) in hashes {
        text = text.replace(hash.as_str(), number);
    }
    let varying = |found: &Captures<'_>| {
        if found.name("hash").is_some() {
            return "\"hash\":\"{hash}\"".to_owned();
        }
        let name =
            ["uid", "time", "address", "volume", "node"].into_iter().find(|name| found.name(name).is_some());
        format!("{{{}}}", name.unwrap_or_default())
    };
    let text = VARYING.replace_all(&text, varying);
    let text = GENERATED.replace_all(&text, "$owner-*");
    let text = HASH.replace_all(&text, "$owner-#");
    GENERATED.replace_all(&text, "$owner-*").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_generated_names_are_the_same_on_both_sides() {
        let set = |hash: &str| {
            json!({"metadata": {"name": format!("web-0-{hash}"), "uid": "x", "labels": {"pod-template-hash": hash},
                "annotations": {"deployment.kubernetes.io/revision": "2"}}})
        };
        let pod = |hash: &str, letters: &str| {
            json!({"metadata": {"name": format!("web-0-{hash}-{letters}")}, "spec": {"nodeName": letters},
                "status": {"phase": "Running"}})
        };
        let gone = |hash: &str| {
            json!({"involvedObject": {"kind": "Deployment", "name": "web-0"}, "reason": "ScalingReplicaSet",
                "source": {"component": "deployment-controller"}, "type": "Normal",
                "message": format!("Scaled down replica set web-0-{hash} from 1 to 0")})
        };
        let side = |hash: &str, letters: &str, other: &str| {
            level(
                "ns-1",
                vec![("ReplicaSet", set(hash)), ("Pod", pod(hash, letters)), ("Event", gone(other))],
            )
        };
        let one = side("5bb77bb9bc", "xxxxx", "6c8dd9f7b4");
        assert_eq!(one, side("77f9cc8d", "zzzzz", "84b6f5d6b"));
        let names: Vec<&str> = one.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "Event Deployment|web-0|deployment-controller|Normal|ScalingReplicaSet|Scaled down replica set \
                 web-0-# from 1 to 0",
                "Pod web-0-#r2-*",
                "ReplicaSet web-0-#r2"
            ]
        );
    }
}
