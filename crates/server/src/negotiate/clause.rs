//! The clauses of an `Accept` header in order of preference.
//!
//! Kubernetes: as goautoneg parses them, which is not always as in the RFC.

use super::Shape;
use crate::input::Encoding;

#[derive(Debug)]
pub(super) struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    weight: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// By weight, then the most specific first.
pub(super) fn parse(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<_> = accept.split(',').filter_map(clause).collect();
    // An insertion sort, as Go's for so few: the order between clauses is not transitive.
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && goes_before(&clauses[at], &clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn goes_before(one: &Clause<'_>, other: &Clause<'_>) -> bool {
    one.weight > other.weight
        || (one.main != "*" && other.main == "*")
        || (one.sub != "*" && other.sub == "*")
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let text = text.trim_matches(' ');
    let mut parts = text.split(';');
    let name = parts.next()?.trim_matches(' ');
    let (main, sub) = match name.split_once('/') {
        Some((main, sub)) if !sub.is_empty() && !sub.contains('/') => {
            (main.trim_matches(' '), sub.trim_matches(' '))
        }
        None if name == "*" => ("*", "*"),
        _ => return None,
    };
    let mut found = Clause { main, sub, weight: 1.0, parameters: Vec::new() };
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match (key.trim_matches(' '), value) {
            (_, value) if value.is_empty() || value.contains('=') => {}
            ("q", value) => found.weight = value.parse().unwrap_or(0.0),
            (key, value) => found.parameters.push((key, value.trim_matches(' '))),
        }
    }
    Some(found)
}

impl Clause<'_> {
    pub(super) fn allows(&self, encoding: Encoding) -> bool {
        let (main, sub) = encoding.media_type().split_once('/').unwrap_or_default();
        (self.main == main || self.main == "*" && self.sub == "*") && (self.sub == sub || self.sub == "*")
    }

    fn value(&self, key: &str) -> &str {
        self.parameters.iter().rev().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    }

    fn is_shaped(&self) -> bool {
        self.parameters.iter().any(|(key, _)| matches!(*key, "as" | "g" | "v"))
    }

    /// Whether the encoding supports its `stream` parameter.
    fn is_streamable(&self, encoding: Encoding) -> bool {
        match self.value("stream") {
            "" => true,
            "watch" => encoding != Encoding::Yaml,
            _ => false,
        }
    }

    /// The shape that it asks for, if available.
    pub(super) fn shape(&self, encoding: Encoding) -> Option<Shape> {
        if !self.is_streamable(encoding) || !matches!(self.value("sv"), "" | "v1") {
            return None;
        }
        if !self.is_shaped() {
            return Some(Shape::AsIs);
        }
        let version = match (self.value("g"), self.value("v")) {
            ("meta.k8s.io", "v1") => "v1",
            ("meta.k8s.io", "v1beta1") => "v1beta1",
            _ => return None,
        };
        match self.value("as") {
            // Kubernetes: a Table has no protobuf.
            "Table" => Some(Shape::Table(version)).filter(|_| encoding != Encoding::Protobuf),
            "PartialObjectMetadata" => Some(Shape::Metadata(version)),
            "PartialObjectMetadataList" => Some(Shape::MetadataList(version)),
            _ => None,
        }
    }

    /// The only shape of values without metadata.
    pub(super) fn no_shape(&self, encoding: Encoding) -> Option<Shape> {
        let is_plain = self.is_streamable(encoding) && !self.is_shaped() && self.value("sv").is_empty();
        is_plain.then_some(Shape::AsIs)
    }
}
