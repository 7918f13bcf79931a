//! Each keyword of a schema by itself, wherever it stands.

use std::collections::BTreeSet;

use api::field::{Error, ErrorList};
use serde_json::Value;

use super::leniency::Leniency;
use super::{list_type, rule, walk};
use crate::validate::at::At;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META: [(&str, &str); 3] = [
    ("metadata", "in top-level metadata"),
    ("kind", "in top-level kind"),
    ("apiVersion", "in top-level apiVersion"),
];
const IN_METADATA: &str = "inside additionalProperties applying to object metadata";
/// Keywords that are not supported, and how Kubernetes tells so.
const UNSUPPORTED: [(&str, &str); 6] = [
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
];

/// What the place of a schema asks of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    is_root: bool,
    /// Why there may be no default.
    no_default: Option<&'static str>,
    /// It describes the metadata or kind of an object.
    in_metadata: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) errors: ErrorList,
    /// Parts with an error in them or below, by their paths: rules there cannot be understood.
    pub(super) unsound: BTreeSet<String>,
}

impl Standing {
    pub(super) const ROOT: Standing = Standing { is_root: true, no_default: None, in_metadata: false };

    fn inner(self) -> Self {
        Standing { is_root: false, ..self }
    }
}

pub(super) fn check(schema: &At<'_, '_>, standing: Standing, leniency: &Leniency<'_>, found: &mut Found) {
    if walk::is_plain_scalar(schema.value()) {
        return;
    }
    let before = found.errors.len();
    match walk::plain_holder(schema.value()).filter(|_| !standing.is_root && !standing.in_metadata) {
        Some(holder) => walk::each_behind(holder, schema, |part| check(part, standing, leniency, found)),
        None => check_each(schema, standing, leniency, found),
    }
    if found.errors.len() > before {
        found.unsound.insert(schema.path().to_string());
    }
}

fn check_each(schema: &At<'_, '_>, standing: Standing, leniency: &Leniency<'_>, found: &mut Found) {
    check_supported(schema, standing, leniency, &mut found.errors);
    if schema.flag_of("uniqueItems") {
        let problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        schema.field("uniqueItems").forbidden(&mut found.errors, problem);
    }
    check_members(schema, standing, leniency, found);
    check_junctors(schema, standing, leniency, found);
    check_items(schema, standing, leniency, found);
    let preserves = schema.field("x-kubernetes-preserve-unknown-fields");
    if *preserves.value() == false {
        preserves.invalid(&mut found.errors, "must be true or undefined");
    }
    list_type::check(schema, leniency, &mut found.errors);
    rule::check_texts(schema, &mut found.errors);
}

fn check_supported(schema: &At<'_, '_>, standing: Standing, leniency: &Leniency<'_>, errors: &mut ErrorList) {
    let kind = schema.field("type");
    if !leniency.any_type && !kind.text().is_empty() {
        kind.one_of(errors, &TYPES);
    }
    let default = schema.field("default");
    if let Some(reason) = standing.no_default.filter(|_| default.is_set()) {
        default.forbidden(errors, format!("must not be set {reason}"));
    }
    for (keyword, problem) in UNSUPPORTED {
        let at = schema.field(keyword);
        let is_empty = match at.value() {
            Value::Null => true,
            Value::String(text) => keyword == "id" && text.is_empty(),
            Value::Object(members) => {
                keyword != "dependencies" && keyword != "additionalItems" && members.is_empty()
            }
            _ => false,
        };
        if !is_empty {
            at.forbidden(errors, problem);
        }
    }
    if kind.text() == "null" {
        kind.forbidden(errors, "type cannot be set to null, use nullable as an alternative");
    }
    let items = schema.field("items");
    if !items.list().is_empty() {
        items.forbidden(errors, "items must be a schema object and not an array");
    }
    let embedded = schema.field("x-kubernetes-embedded-resource");
    if standing.in_metadata && *embedded.value() == true {
        embedded.forbidden(errors, "must not be used inside of resource meta");
    }
}

/// Fixed members, or any of one kind, but not both.
fn check_members(schema: &At<'_, '_>, standing: Standing, leniency: &Leniency<'_>, found: &mut Found) {
    let (additional, properties) = (schema.field("additionalProperties"), schema.field("properties"));
    if additional.is_set() {
        if !properties.is_empty() && *additional.value() != true {
            let problem = "additionalProperties and properties are mutual exclusive";
            found.errors.push(Error::forbidden(additional.path(), problem));
        }
        if additional.value().is_object() {
            let mut inner = standing.inner();
            if standing.in_metadata {
                inner.no_default = Some(IN_METADATA);
            }
            check(&additional, inner, leniency, found);
        }
    }
    let is_object = standing.is_root || schema.flag_of("x-kubernetes-embedded-resource");
    for (name, property) in properties.entries() {
        let mut inner = standing.inner();
        if let Some((_, reason)) = META.iter().find(|(it, _)| *it == name && is_object) {
            inner.in_metadata = true;
            if standing.is_root {
                inner.no_default = Some(reason);
            }
        }
        check(&property, inner, leniency, found);
    }
}

fn check_junctors(schema: &At<'_, '_>, standing: Standing, leniency: &Leniency<'_>, found: &mut Found) {
    let standing = standing.inner();
    let not = schema.field("not");
    if not.is_set() {
        check(&not, standing, leniency, found);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        for part in schema.field(junctor).items() {
            check(&part, standing, leniency, found);
        }
    }
    for (_, part) in schema.field("definitions").entries() {
        check(&part, standing, leniency, found);
    }
}

fn check_items(schema: &At<'_, '_>, standing: Standing, leniency: &Leniency<'_>, found: &mut Found) {
    let standing = standing.inner();
    let items = schema.field("items");
    if items.value().is_object() {
        check(&items, standing, leniency, found);
    }
    for item in items.items() {
        check(&item, standing, leniency, found);
    }
    for (_, part) in schema.field("dependencies").entries() {
        if part.value().is_object() {
            check(&part, standing, leniency, found);
        }
    }
}
