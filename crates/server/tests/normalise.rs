//! Removes from a response what differs between runs: times, UIDs, versions, addresses.

use crate::golden::webhook;
use regex::Regex;
use serde_json::{Map, Value, json};

pub(crate) struct Normaliser {
    namespace: String,
    word: String,
    rules: Vec<(Regex, &'static str)>,
    age: Regex,
}

impl Normaliser {
    /// `namespace` and `word` replace `$(ns)` and `$(x)`; a namespace has ten letters.
    pub(crate) fn new(namespace: &str, word: &str) -> Normaliser {
        let rules = [
            (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
            (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
            (r"\b10\.96\.\d+\.\d+\b", "<ip>"),
            (r"(?i)(resource ?version:? ?|in the precondition \(|in record \()\d+( \(\d+\))?", "${1}<rv>"),
        ];
        let rules = rules.map(|(pattern, with)| (Regex::new(pattern).unwrap(), with));
        Normaliser {
            namespace: namespace.to_owned(),
            word: word.to_owned(),
            rules: rules.into(),
            age: Regex::new(r"^(\d+[dhms])+$").unwrap(),
        }
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        let text = text.replace("$(ns)", &self.namespace).replace("$(x)", &self.word);
        text.replace("$(webhook)", webhook::URL).replace("$(webhook_ca)", webhook::AUTHORITY)
    }

    /// Recorded bytes hold a namespace of the same length.
    pub(crate) fn with_namespace(&self, bytes: &[u8]) -> Vec<u8> {
        let recorded = b"g-nnnnnnnn";
        let mut out = bytes.to_vec();
        let mut at = 0;
        while at + recorded.len() <= out.len() {
            if out[at..].starts_with(recorded) {
                out[at..at + recorded.len()].copy_from_slice(self.namespace.as_bytes());
            }
            at += 1;
        }
        out
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let (first, rest) = self.word.split_at(1);
        let capital = first.to_uppercase() + rest;
        let mut text = text.replace(&self.namespace, "$(ns)").replace(&self.word, "$(x)");
        text = text.replace(&capital, "$(X)");
        text = text.replace(webhook::URL, "$(webhook)").replace(webhook::AUTHORITY, "<ca>");
        for (pattern, with) in &self.rules {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }

    pub(crate) fn value(&self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(members) => self.object(members),
            Value::Array(items) => items.iter().map(|item| self.value(item, key)).collect(),
            Value::Number(number) if key == "nodePort" && number.as_i64() != Some(0) => json!("<nodeport>"),
            Value::String(text) => match key {
                "resourceVersion" if text == "0" => json!("0"),
                "resourceVersion" if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
                    json!("<rv>")
                }
                "cells" if self.age.is_match(text) => json!("<age>"),
                "continue" if !text.is_empty() => json!("<continue>"),
                _ => self.text(text).into(),
            },
            other => other.clone(),
        }
    }

    fn object(&self, members: &Map<String, Value>) -> Value {
        let normal = members.iter().map(|(key, value)| (self.text(key), self.value(value, key)));
        let mut out: Map<String, Value> = normal.collect();
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let prefix = text("generateName");
        if !prefix.is_empty() && text("name").starts_with(prefix) {
            out.insert("name".to_owned(), format!("{}<random>", self.text(prefix)).into());
        }
        for column in out.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
            column.as_object_mut().into_iter().for_each(|column| drop(column.remove("description")));
        }
        if let Some(hash) = out.get_mut("storageVersionHash") {
            *hash = json!("<hash>");
        }
        if text("kind") == "Status" {
            self.sort_causes(&mut out);
        }
        out.into()
    }

    /// Several errors come in no fixed order.
    fn sort_causes(&self, status: &mut Map<String, Value>) {
        let causes = status.get_mut("details").and_then(|details| details.get_mut("causes"));
        let Some(causes) = causes.and_then(Value::as_array_mut).filter(|causes| causes.len() > 1) else {
            return;
        };
        causes.sort_by_key(|cause| cause.to_string());
        let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
        let start = message.split(": [").next().unwrap_or_default().to_owned();
        status.insert("message".to_owned(), start.into());
    }
}
