//! Normalizes values that differ between two servers: uids, versions, times, addresses, tokens, generated
//! names.
//!
//! Values are numbered by their first occurrence in the story, so that two fields that must hold the same uid
//! or resourceVersion are still compared.

mod order;
mod quoted;
#[cfg(test)]
mod tests;
mod yaml;

use crate::{
    answer::{Answer, Content},
    json::Json,
    story::Request,
};
use order::{sort_by_name, sort_causes, sort_generated, sort_managers, sort_quoted};
use regex::{Captures, Regex};
use std::{collections::BTreeMap, sync::LazyLock};

/// Normalizes the responses of one server to one story.
#[derive(Debug)]
pub struct Normalizer {
    namespace: String,
    id: String,
    /// Yesterday, today and tomorrow: other times were sent by the story, and must come back unchanged.
    days: [String; 3],
    seen: BTreeMap<&'static str, Vec<String>>,
    in_bookmark: bool,
}

/// Uids, times, tokens, service addresses and generated names, anywhere in a text.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<uid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
        r"|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<part>\.\d+)?(?P<zone>Z|[+-]\d\d:\d\d)",
        r"|(?P<token>eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)",
        r"|(?P<address>\b10\.96\.\d+\.\d+)",
        r"|(?P<generated>\b(gen-|Gen_|kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5})\b",
        r#"|(?P<before>resourceVersion\\*":\\*"|precondition\s+\(|record \()(?P<rv>\d+)(?P<after>\\*"|\))"#,
        // The source file of kube-apiserver, as its build names it.
        r#"|(?P<scheme>in scheme \\*"[\w./-]+:\d+)"#,
        r"|(?P<old>resource version: \d+ \(\d+\))",
        r"|(?P<held>ResourceVersion in precondition: \d+, ResourceVersion in object meta: \d+)",
        r"|(?P<future>large resource version: \d+, current: \d+)",
    ))
    .expect("the pattern is a constant")
});
static EMPTY_VALUE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"value: (null|\[\]|\{\}):").expect("the pattern is a constant"));
/// An empty field of a Go struct in a message.
static EMPTY_FIELD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?P<name>\\"[A-Z]\w+\\":)(\[\]|\{\})"#).expect("the pattern is a constant")
});
/// Stories bind the same user to missing roles, one after the other.
static ROLE_OF_OTHERS: LazyLock<Regex> = LazyLock::new(|| {
    const ROLE: &str = r#"clusterrole\.rbac\.authorization\.k8s\.io \\*"nothing-q\d+q\\*" not found"#;
    Regex::new(&format!(r": RBAC: \[?{ROLE}(, {ROLE})*\]?")).expect("the pattern is a constant")
});
static AGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d+[smhdy])+( \(x\d+ over .*\))?$").expect("the pattern is a constant"));
/// Ports of services, as tables show them.
static NODE_PORT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r":3[0-2]\d{3}/").expect("the pattern is a constant"));
static YAML_VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^(?P<indent>[ -]*)resourceVersion: "(?P<version>\d+)"$"#)
        .expect("the pattern is a constant")
});

static YAML_FIELD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?P<field>nodePort: |healthCheckNodePort: |continue: )[\w+/=-]+")
        .expect("the pattern is a constant")
});

/// Objects that Setpoint creates in a namespace; on the real server the story creates them.
const MADE_BY_SERVER: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];

impl Normalizer {
    pub fn new(namespace: &str, id: &str, now: jiff::Timestamp) -> Normalizer {
        let day = |hours: i64| {
            let at = now + jiff::SignedDuration::from_hours(hours);
            at.strftime("%Y-%m-%d").to_string()
        };
        let days = [day(-24), day(0), day(24)];
        Normalizer {
            namespace: namespace.to_owned(),
            id: id.to_owned(),
            days,
            seen: BTreeMap::new(),
            in_bookmark: false,
        }
    }

    pub fn level(&mut self, request: &Request, answer: &mut Answer) {
        let is_list = matches!(request.method, "GET" | "DELETE") && !names_an_object(&request.path);
        for (_, value) in &mut answer.headers {
            *value = self.text(value);
        }
        // Warnings about unknown fields are in the order of the patch, or sorted.
        answer.headers.sort();
        match &mut answer.content {
            Content::Json(json) => self.json(json, is_list),
            Content::Events(events) => events.iter_mut().for_each(|event| {
                // The version of a bookmark depends on the writes of other stories.
                self.in_bookmark = event.get("type") == Some(&Json::text("BOOKMARK"));
                if self.in_bookmark {
                    strip_bookmark(event);
                }
                self.json(event, false);
                self.in_bookmark = false;
            }),
            Content::Text(text) => *text = self.yaml(text, is_list),
            Content::Empty | Content::Failed(_) => {}
        }
    }

    fn json(&mut self, json: &mut Json, is_list: bool) {
        self.value(json, is_list);
        sort_quoted(json);
        json.each_text(&mut |text| *text = self.text(text));
        sort_causes(json);
        sort_generated(json);
    }

    /// Normalizes values that are recognized by their field: versions, ports, ages.
    fn value(&mut self, value: &mut Json, is_list: bool) {
        if is_made_by_server(value) {
            *value = Json::text("an object that the server makes");
            return;
        }
        match value {
            Json::Object(members) => {
                let is_table = members.iter().any(|(name, _)| name == "columnDefinitions");
                // By name: the order in which a server writes members must not change the numbers.
                let mut by_name: Vec<_> = members.iter_mut().collect();
                by_name.sort_by(|one, other| one.0.cmp(&other.0));
                for (name, member) in by_name {
                    match name.as_str() {
                        "resourceVersion" => self.version(member, is_list),
                        "continue" => *member = Json::text("{continue}"),
                        "nodePort" | "healthCheckNodePort" => self.port(member),
                        "managedFields" => sort_managers(member),
                        "cells" => ages(member),
                        // kube-apiserver lists custom resources in hash map order.
                        "resources" => sort_by_name(member),
                        "groups" => drop_groups_of_stories(member),
                        "paths" => keep_paths_of_resources(member),
                        "metadata" if is_list || is_table => self.value(member, is_list),
                        _ => self.value(member, is_list && (name == "object" || name == "message")),
                    }
                    if name == "managedFields" {
                        self.value(member, false);
                    }
                }
            }
            Json::List(items) => items.iter_mut().for_each(|item| self.value(item, false)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
        }
    }

    fn version(&mut self, value: &mut Json, is_list: bool) {
        let Json::Text(digits) = value else { return };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        *digits = if is_list || self.in_bookmark { "{list}".to_owned() } else { self.number("rv", digits) };
    }

    fn port(&mut self, value: &mut Json) {
        if let Json::Number(digits) = value
            && digits != "0"
        {
            *value = Json::Text(self.number("port", &digits.clone()));
        }
    }

    fn number(&mut self, what: &'static str, text: &str) -> String {
        let seen = self.seen.entry(what).or_default();
        let at = seen.iter().position(|known| known == text).unwrap_or_else(|| {
            seen.push(text.to_owned());
            seen.len() - 1
        });
        format!("{{{what} {at}}}")
    }

    fn text(&mut self, text: &str) -> String {
        let text = first_typed_error(text);
        let text = text.replace(&self.namespace, "{ns}").replace(&self.id, "{id}");
        // Setpoint treats empty lists and maps as absent; causes are sorted by their texts.
        let text = EMPTY_VALUE.replace_all(&text, "value: {nothing}:");
        let text = EMPTY_FIELD.replace_all(&text, "${name}null");
        let text = ROLE_OF_OTHERS.replace_all(&text, "");
        let replaced = VARYING.replace_all(&text, |found: &Captures<'_>| self.replacement(found));
        replaced.into_owned()
    }

    fn replacement(&mut self, found: &Captures<'_>) -> String {
        for what in ["uid", "address", "generated"] {
            if let Some(text) = found.name(what) {
                return self.number(what, text.as_str());
            }
        }
        if let Some(version) = found.name("rv") {
            return format!("{}{}{}", &found["before"], self.number("rv", version.as_str()), &found["after"]);
        }
        if let Some(time) = found.name("time") {
            let is_now = self.days.iter().any(|day| time.as_str().starts_with(day.as_str()));
            return match found.name("part") {
                _ if !is_now => found[0].to_owned(),
                Some(_) => "{time with fractions}".to_owned(),
                None => "{time}".to_owned(),
            };
        }
        match (found.name("token"), found.name("scheme")) {
            (Some(_), _) => "{token}".to_owned(),
            (None, Some(_)) => "in scheme {scheme}".to_owned(),
            (None, None) => "{resource versions}".to_owned(),
        }
    }

    fn yaml(&mut self, text: &str, is_list: bool) -> String {
        let text = yaml::sort_managers(text);
        let levelled = YAML_VERSION.replace_all(&text, |found: &Captures<'_>| {
            let indent = &found["indent"];
            let version = if is_list && indent == "  " {
                "{list}".to_owned()
            } else {
                self.number("rv", &found["version"])
            };
            format!("{indent}resourceVersion: {version}")
        });
        let text = YAML_FIELD.replace_all(&levelled, "${field}{levelled}");
        let text = yaml::without_made_items(&text);
        self.text(&text)
    }
}

/// The object of a bookmark is empty. Go's encoding of an empty object of a kind is not compared.
fn strip_bookmark(value: &mut Json) {
    let zero_values = ["spec", "status", "cells", "deprecated.daemonset.template.generation"];
    match value {
        Json::Object(members) => {
            members.retain(|(name, _)| !zero_values.contains(&name.as_str()));
            members.iter_mut().for_each(|(_, member)| strip_bookmark(member));
        }
        Json::List(items) => items.iter_mut().for_each(strip_bookmark),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

/// Whether a path names an object or goes below one, as opposed to a collection.
pub fn names_an_object(path: &str) -> bool {
    let words: Vec<_> = path.trim_matches('/').split('/').collect();
    let below = match words.first() {
        Some(&"api") => &words[2.min(words.len())..],
        Some(&"apis") => &words[3.min(words.len())..],
        _ => return false,
    };
    match below {
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => true,
        ["namespaces", _, rest @ ..] => rest.len() >= 2,
        rest => rest.len() >= 2,
    }
}

/// An apply with several type errors gets some of them, in hash map order.
fn first_typed_error(text: &str) -> &str {
    let is_of_several = text.contains("errors:") || text.contains("field not declared in schema");
    match text.find("typed patch object (") {
        Some(at) if is_of_several => text[at..].find("): ").map_or(text, |end| &text[..at + end + 1]),
        _ => text,
    }
}

fn is_made_by_server(value: &Json) -> bool {
    let Some(name) = value.text_at(&["metadata", "name"]) else { return false };
    if !MADE_BY_SERVER.iter().any(|(_, made)| *made == name) {
        return false;
    }
    // Items of lists have no kind; a service account has only metadata.
    match value.text_at(&["kind"]) {
        Some(kind) => MADE_BY_SERVER.contains(&(&kind, &name)) || kind == "PartialObjectMetadata",
        None => true,
    }
}

/// Groups that stories define come and go.
fn drop_groups_of_stories(groups: &mut Json) {
    if let Json::List(groups) = groups {
        let is_of_story = |name: String| name.starts_with('q') && name.ends_with("q.example.com");
        groups.retain(|group| !group.text_at(&["name"]).is_some_and(is_of_story));
    }
}

/// The index of paths contains probes and profiles of each server, and groups that stories define.
fn keep_paths_of_resources(paths: &mut Json) {
    if let Json::List(paths) = paths {
        paths.retain(|path| {
            let path = path.as_text().unwrap_or_default();
            path.starts_with("/api") && !path.contains("q.example.com")
        });
    }
}

fn ages(cells: &mut Json) {
    let Json::List(cells) = cells else { return };
    for cell in cells {
        if let Json::Text(text) = cell
            && AGE.is_match(text)
        {
            *text = "{age}".to_owned();
        }
        if let Json::Text(text) = cell
            && text.contains("/TCP")
        {
            *text = NODE_PORT.replace_all(text, ":{port}/").into_owned();
        }
    }
}
