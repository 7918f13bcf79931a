//! The paths of a resource, each with its operations.

use std::collections::BTreeSet;

use api::path::VersionPath;
use schema::types::Types;
use serde_json::{Value, json};

use super::custom::custom_name;
use super::operation::{self, Action, OperationTarget};
use super::parameters::describe;
use crate::discovery::Listed;

/// Kubernetes: a delete of these answers with the object, that of others with a Status.
const ANSWERS_WITH_OBJECT: [(&str, &str); 16] = [
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

/// `/api/v1` or `/apis/GROUP/VERSION`.
pub(super) fn prefix(group: &str, version: &str) -> String {
    VersionPath { group, version }.to_string()
}

/// The path that lists the resources of a version.
pub(super) fn of_version(group: &str, version: &str) -> (String, Value) {
    let item = json!({ "get": operation::list_resources(group, version) });
    (format!("{}/", prefix(group, version)), item)
}

/// The paths of a resource and its subresources.
pub(super) fn of_resource(it: &Listed<'_>, types: &Types) -> Vec<(String, Value)> {
    let prefix = prefix(it.group, it.version);
    let name = it.name;
    let subject = resource(it, types);
    let has = |verb: &str| it.verbs.contains(&verb);
    let keep = |actions: &[(&str, Action)]| -> Vec<Action> {
        actions.iter().filter(|(verb, _)| has(verb)).map(|(_, action)| *action).collect()
    };
    let many = keep(&[
        ("list", Action::List),
        ("create", Action::Create),
        ("deletecollection", Action::DeleteCollection),
    ]);
    let one = keep(&[
        ("get", Action::Read),
        ("update", Action::Replace),
        ("patch", Action::Patch),
        ("delete", Action::Delete),
    ]);
    let collection = if it.is_namespaced {
        format!("{prefix}/namespaces/{{namespace}}/{name}")
    } else {
        format!("{prefix}/{name}")
    };
    let mut paths = Vec::new();
    if it.is_namespaced && has("list") {
        paths.push((format!("{prefix}/{name}"), item(&subject, &[Action::ListEverywhere], &[])));
    }
    let namespace: &[&str] = if it.is_namespaced { &["namespace"] } else { &[] };
    let place: &[&str] = if it.is_namespaced { &["name", "namespace"] } else { &["name"] };
    paths.push((collection.clone(), item(&subject, &many, namespace)));
    paths.push((format!("{collection}/{{name}}"), item(&subject, &one, place)));
    for (index, sub) in it.subresources.iter().enumerate() {
        let (subject, actions) = subresource(it, types, index);
        paths.push((format!("{collection}/{{name}}/{}", sub.name), item(&subject, &actions, place)));
    }
    paths.retain(|(_, item)| !item.is_null());
    paths
}

fn resource<'a>(it: &'a Listed<'a>, types: &Types) -> OperationTarget<'a> {
    let schema = schema_name(it, types, (it.group, it.version, it.kind));
    let answers_with_object = ANSWERS_WITH_OBJECT.contains(&(it.group, it.name));
    OperationTarget {
        group: it.group,
        version: it.version,
        kind: it.kind,
        subresource: "",
        content: (it.group, it.version, it.kind),
        list_schema: schema_name(it, types, (it.group, it.version, &it.list_kind)),
        deleted_schema: answers_with_object.then(|| schema.clone()),
        schema,
        is_namespaced: it.is_namespaced,
        is_custom: it.is_custom,
        can_watch: it.verbs.contains(&"watch"),
    }
}

fn subresource<'a>(it: &'a Listed<'a>, types: &Types, index: usize) -> (OperationTarget<'a>, Vec<Action>) {
    let sub = &it.subresources[index];
    let (group, version) = sub.foreign.unwrap_or((it.group, it.version));
    let content = (group, version, sub.kind);
    let is_stream = sub.kind.ends_with("Options");
    let actions = sub.verbs.iter().filter_map(|verb| match (*verb, is_stream) {
        ("get", true) => Some(Action::Connect("get")),
        ("create", true) => Some(Action::Connect("post")),
        ("update", true) => Some(Action::Connect("put")),
        ("patch", true) => Some(Action::Connect("patch")),
        ("delete", true) => Some(Action::Connect("delete")),
        ("get", false) => Some(Action::Read),
        ("create", false) => Some(Action::Create),
        ("update", false) => Some(Action::Replace),
        ("patch", false) => Some(Action::Patch),
        ("delete", false) => Some(Action::Delete),
        _ => None,
    });
    let subject = OperationTarget {
        subresource: sub.name,
        // Kubernetes: the scale of a custom resource is described as of its kind.
        content: if it.is_custom { (it.group, it.version, it.kind) } else { content },
        schema: schema_name(it, types, content),
        ..resource(it, types)
    };
    (subject, actions.collect())
}

/// Kubernetes: parameters of all operations of a path are listed once, at the path.
fn item(subject: &OperationTarget<'_>, actions: &[Action], place: &[&'static str]) -> Value {
    let Some(first) = actions.first() else { return Value::Null };
    let mut common = subject.parameters(*first);
    for action in actions {
        common.retain(|name| subject.parameters(*action).contains(name));
    }
    let describe_all = |names: BTreeSet<&str>| -> Vec<Value> {
        names.into_iter().map(|name| describe(name, subject.content.2)).collect()
    };
    let mut item = json!({});
    for action in actions {
        let mut operation = subject.operation(*action);
        let own: BTreeSet<_> = subject.parameters(*action).difference(&common).copied().collect();
        if !own.is_empty() {
            operation["parameters"] = Value::from(describe_all(own));
        }
        item[action.method()] = operation;
    }
    common.extend(place);
    if !common.is_empty() {
        item["parameters"] = Value::from(describe_all(common));
    }
    item
}

fn schema_name(it: &Listed<'_>, types: &Types, (group, version, kind): (&str, &str, &str)) -> String {
    let is_own = (group, version) == (it.group, it.version);
    match types.kind(group, version, kind) {
        _ if it.is_custom && is_own => custom_name(group, version, kind),
        Some((_, of)) => of.name.to_string(),
        None => custom_name(group, version, kind),
    }
}
