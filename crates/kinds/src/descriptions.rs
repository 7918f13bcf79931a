//! A type in, what it and its fields are for in plain words out: the prose of `kubectl explain`.
//!
//! The texts lie in `data/descriptions/`, one file per API group. A line is one of these:
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

/// The group of the sections that stand for a shape.
const COMMON: &str = "common";

static GROUPS: [(&str, &str); 1] = [
    (COMMON, include_str!("../data/descriptions/common.txt")),
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
    let is_version = package.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
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
        let mut all: Vec<_> = GROUPS.iter().flat_map(|(group, text)| sections(group, text)).collect();
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
