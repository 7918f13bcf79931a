//! A type in, what it and its fields are for in plain words out: the prose of `kubectl explain`.
//!
//! The texts lie in `data/descriptions/`, one file per API group; the core group has several. A line is one of these:
//!
//! ```text
//! # A comment.
//! @PodSpec: What the type is, for every version of the group.
//! @v1.HorizontalPodAutoscalerSpec: The same for one version; its lines win over those for every version.
//! containers: What this field of the type above is for.
//! ```
//!
//! `common.txt` holds what many types share, as sections named for the shape of a type: see [`shape`].
//! Nothing is read at start: the first OpenAPI document that is built makes an index of the sections, and the texts
//! stay where they are in the binary.

use schema::types::Type;
use std::sync::LazyLock;

/// The group of the sections that describe a shape.
const COMMON: &str = "common";

/// The texts and the group that each is for, as the names of types have it: `core` in `io.k8s.api.core.v1.Pod`.
static FILES: [(&str, &str); 33] = [
    ("admission", include_str!("../data/descriptions/admission.txt")),
    ("admissionregistration", include_str!("../data/descriptions/admissionregistration.txt")),
    ("apidiscovery", include_str!("../data/descriptions/apidiscovery.txt")),
    ("apiextensions", include_str!("../data/descriptions/apiextensions.txt")),
    ("apiregistration", include_str!("../data/descriptions/apiregistration.txt")),
    ("apiserverinternal", include_str!("../data/descriptions/apiserverinternal.txt")),
    ("apps", include_str!("../data/descriptions/apps.txt")),
    ("audit", include_str!("../data/descriptions/audit.txt")),
    ("authentication", include_str!("../data/descriptions/authentication.txt")),
    ("authorization", include_str!("../data/descriptions/authorization.txt")),
    ("autoscaling", include_str!("../data/descriptions/autoscaling.txt")),
    ("batch", include_str!("../data/descriptions/batch.txt")),
    ("certificates", include_str!("../data/descriptions/certificates.txt")),
    (COMMON, include_str!("../data/descriptions/common.txt")),
    ("coordination", include_str!("../data/descriptions/coordination.txt")),
    ("core", include_str!("../data/descriptions/core-cluster.txt")),
    ("core", include_str!("../data/descriptions/core-containers.txt")),
    ("core", include_str!("../data/descriptions/core-pods.txt")),
    ("core", include_str!("../data/descriptions/core-services.txt")),
    ("core", include_str!("../data/descriptions/core-volumes.txt")),
    ("discovery", include_str!("../data/descriptions/discovery.txt")),
    ("events", include_str!("../data/descriptions/events.txt")),
    ("flowcontrol", include_str!("../data/descriptions/flowcontrol.txt")),
    ("meta", include_str!("../data/descriptions/meta.txt")),
    ("networking", include_str!("../data/descriptions/networking.txt")),
    ("node", include_str!("../data/descriptions/node.txt")),
    ("policy", include_str!("../data/descriptions/policy.txt")),
    ("rbac", include_str!("../data/descriptions/rbac.txt")),
    ("resource", include_str!("../data/descriptions/resource.txt")),
    ("scheduling", include_str!("../data/descriptions/scheduling.txt")),
    ("storage", include_str!("../data/descriptions/storage.txt")),
    ("storagemigration", include_str!("../data/descriptions/storagemigration.txt")),
    ("version", include_str!("../data/descriptions/version.txt")),
];

/// What is said of a type. Empty where nothing is.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Those that come first win.
    sections: [Option<&'static Section>; 3],
}

/// All lines between one `@` and the next.
#[derive(Debug)]
struct Section {
    group: &'static str,
    /// `PodSpec`, or `v1.PodSpec` for one version.
    name: &'static str,
    /// What the type is; empty where only fields are described.
    text: &'static str,
    fields: &'static str,
}

/// Finds what is said of a built-in type.
#[must_use]
pub fn describe(of: &Type) -> Description {
    let (group, version, short_name) = parts(&of.name);
    let of_version = version.and_then(|version| find(group, &[version, ".", short_name].concat()));
    let of_shape = shape(of).and_then(|shape| find(COMMON, shape));
    Description { sections: [of_version, find(group, short_name), of_shape] }
}

impl Description {
    /// What the type is.
    #[must_use]
    pub fn text(&self) -> Option<&'static str> {
        self.sections.iter().flatten().map(|section| section.text).find(|text| !text.is_empty())
    }

    /// What a field of it is for.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static str> {
        let mut lines = self.sections.iter().flatten().flat_map(|section| entries(section.fields));
        lines.find(|(field, _)| *field == name).map(|(_, text)| text)
    }
}

/// The group, the version and the name of a type: `core`, `v1` and `Pod` of `io.k8s.api.core.v1.Pod`.
fn parts(name: &str) -> (&str, Option<&str>, &str) {
    let mut from_the_end = name.rsplit('.');
    let short_name = from_the_end.next().unwrap_or_default();
    let package = from_the_end.next().unwrap_or_default();
    let is_version =
        package.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match is_version {
        true => (from_the_end.next().unwrap_or_default(), Some(package), short_name),
        false => (package, None, short_name),
    }
}

/// What many types have in common: lists of objects, objects, and conditions.
fn shape(of: &Type) -> Option<&'static str> {
    let is_kind = of.kind.is_some();
    if is_kind && of.short_name().ends_with("List") && of.field("items").is_some() {
        return Some("List");
    }
    if is_kind {
        return Some("Object");
    }
    of.short_name().ends_with("Condition").then_some("Condition")
}

fn find(group: &str, name: &str) -> Option<&'static Section> {
    static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
        let mut all: Vec<_> = FILES.iter().flat_map(|(group, text)| sections(group, text)).collect();
        all.sort_unstable_by_key(|section| (section.group, section.name));
        all
    });
    let at = SECTIONS.binary_search_by_key(&(group, name), |section| (section.group, section.name)).ok()?;
    SECTIONS.get(at)
}

fn sections(group: &'static str, text: &'static str) -> impl Iterator<Item = Section> {
    // A file may open with comments, which belong to no section.
    text.split("\n@").skip(1).map(move |section| {
        let (head, fields) = section.split_once('\n').unwrap_or((section, ""));
        let (name, text) = head.split_once(": ").unwrap_or((head, ""));
        Section { group, name, text, fields }
    })
}

/// Each field that a section names, with its text.
fn entries(fields: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    fields.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;
    use schema::types::Node;
    use std::collections::BTreeSet;

    fn all_sections() -> Vec<Section> {
        FILES.iter().flat_map(|(group, text)| sections(group, text)).collect()
    }

    /// The types that a section describes.
    fn types_of(section: &Section) -> Vec<&'static Type> {
        let is_described = |of: &Type| {
            let (group, version, short_name) = parts(&of.name);
            match (section.group, section.name.split_once('.')) {
                (COMMON, _) => shape(of) == Some(section.name),
                (_, Some(names)) => (section.group, Some(names.0), names.1) == (group, version, short_name),
                (_, None) => (section.group, section.name) == (group, short_name),
            }
        };
        types().iter().map(|(_, of)| of).filter(|of| is_described(of)).collect()
    }

    #[test]
    fn every_description_is_of_a_type_and_field_that_exist() {
        for section in all_sections() {
            let of = types_of(&section);
            let place = [section.group, section.name].join(".");
            assert!(!of.is_empty(), "no type {place}");
            for (field, _) in entries(section.fields) {
                assert!(of.iter().any(|of| of.field(field).is_some()), "no field {field} in {place}");
            }
        }
    }

    #[test]
    fn every_line_is_a_section_a_field_or_a_comment_and_stands_once() {
        for (_, text) in FILES {
            assert!(text.starts_with("# ") && text.ends_with(".\n"), "{text:.60}");
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '@'])) {
                assert!(line.contains(": "), "{line}");
            }
        }
        let mut seen = BTreeSet::new();
        for section in all_sections() {
            assert!(seen.insert([section.group, section.name].join(".")), "{} twice", section.name);
            for (field, _) in entries(section.fields) {
                let place = [section.group, section.name, field].join(".");
                assert!(seen.insert(place), "{field} of {} twice", section.name);
            }
        }
    }

    #[test]
    fn descriptions_are_short_sentences() {
        for section in all_sections() {
            let head = (!section.text.is_empty()).then_some(("the type", section.text));
            for (what, text) in entries(section.fields).chain(head) {
                let place = [section.group, section.name, what].join(".");
                assert!(text.ends_with('.') && text.trim() == text, "{place}: {text}");
                assert!((8..300).contains(&text.len()), "{place}: {} bytes", text.len());
                let first = text.chars().next().unwrap();
                let is_capital = first.is_uppercase() || first.is_ascii_digit();
                assert!(is_capital || starts_with_a_value(text), "{place}: {text}");
            }
        }
    }

    /// Some start with a value as it must be written: `linux or windows.`
    fn starts_with_a_value(text: &str) -> bool {
        ["linux ", "rbac."].iter().any(|start| text.starts_with(start))
    }

    /// kubectl prints both, one after the other.
    #[test]
    fn a_field_says_something_else_than_its_type() {
        for (_, of) in types().iter() {
            for field in of.fields() {
                let node = match &field.node {
                    Node::List(list) => &list.items,
                    Node::Map(map) => &map.values,
                    node => node,
                };
                let (Node::Object(id) | Node::AtomicObject(id)) = node else { continue };
                let type_text = describe(types().get(*id)).text();
                assert_ne!(describe(of).field(&field.name), type_text, "{}.{}", of.name, field.name);
            }
        }
    }

    #[test]
    fn every_type_and_field_is_described() {
        let mut missing = Vec::new();
        for (_, of) in types().iter() {
            let description = describe(of);
            let fields = of.fields().iter().filter(|field| description.field(&field.name).is_none());
            missing.extend(fields.map(|field| format!("{}.{}", of.name, field.name)));
            missing.extend(description.text().is_none().then(|| of.name.to_string()));
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn a_version_wins_over_its_group_and_both_over_the_shape() {
        for (name, field, starts) in [
            ("io.k8s.api.core.v1.Pod", "kind", "The kind of this object"),
            ("io.k8s.api.core.v1.PodList", "items", "The objects of the list"),
            ("io.k8s.api.core.v1.Container", "image", "The image to run"),
            ("io.k8s.api.core.v1.PodCondition", "type", "The aspect: PodScheduled"),
            ("io.k8s.api.core.v1.PodCondition", "status", "Whether the condition holds"),
            ("io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec", "maxReplicas", "The most replicas"),
            ("io.k8s.api.resource.v1.DeviceRequest", "firstAvailable", "Several ways"),
            ("io.k8s.api.resource.v1beta1.DeviceRequest", "count", "How many devices"),
            ("io.k8s.apimachinery.pkg.version.Info", "major", "The major version"),
        ] {
            let (_, of) = types().named(name).unwrap();
            let text = describe(of).field(field).unwrap_or_default();
            assert!(text.starts_with(starts), "{name}.{field}: {text}");
        }
    }
}
