//! Parameters that many operations share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

static TEXT: &str = include_str!("parameters.txt");

pub(super) static LIST: [&str; 12] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "pretty",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];

pub(super) static WRITE: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "pretty"];

pub(super) static PATCH: [&str; 5] = ["dryRun", "fieldManager:patch", "fieldValidation", "force", "pretty"];

pub(super) static DELETE: [&str; 6] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "pretty",
    "propagationPolicy",
];

static KNOWN: LazyLock<BTreeMap<&str, (&str, String)>> =
    LazyLock::new(|| TEXT.lines().filter_map(read).collect());

/// Parameters of one subresource only: `command` of `exec`.
pub(super) fn of_subresource(subresource: &str) -> BTreeSet<&'static str> {
    let is_its_own = |key: &&str| key.split_once(':').is_some_and(|(_, of)| of == subresource);
    KNOWN.keys().copied().filter(is_its_own).collect()
}

/// The description of a parameter; that of `name` names the kind. A key is a name, with a suffix where its
/// description differs.
pub(super) fn describe(key: &str, kind: &str) -> Value {
    let name = key.split(':').next().unwrap_or(key);
    let text = json!({ "type": "string", "uniqueItems": true });
    match (name, KNOWN.get(key)) {
        ("name", _) => json!({
            "description": format!("name of the {kind}"),
            "in": "path", "name": name, "required": true, "schema": text,
        }),
        ("namespace", Some((_, description))) => json!({
            "description": description, "in": "path", "name": name, "required": true, "schema": text,
        }),
        (_, Some((type_name, description))) => json!({
            "description": description,
            "in": "query", "name": name, "schema": { "type": type_name, "uniqueItems": true },
        }),
        (_, None) => json!({ "in": "query", "name": name, "schema": text }),
    }
}

/// `key type "description"`.
fn read(line: &'static str) -> Option<(&'static str, (&'static str, String))> {
    if line.starts_with('#') {
        return None;
    }
    let mut words = line.splitn(3, ' ');
    let (key, type_name) = (words.next()?, words.next()?);
    Some((key, (type_name, serde_json::from_str(words.next()?).ok()?)))
}
