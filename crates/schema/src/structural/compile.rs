//! Compiles an `openAPIV3Schema` to a compact [`Structural`]: equal parts are shared, descriptions are
//! dropped.

use std::collections::HashMap;
use std::sync::OnceLock;

use expression::pattern;
use serde_json::{Map, Value};

use super::shape::{
    Additional, Bound, ListType, More, NameId, Pattern, PatternId, Real, Rule, Shape, ShapeId, Structural,
    ValueType,
};
use super::validate::format;

/// The deepest nesting of schemas: what lies below is ignored. Validation of the definition rejects such
/// schemas.
const MAX_DEPTH: usize = 200;

pub(super) fn compile(schema: &Value) -> Structural {
    let mut tables = Tables::default();
    let root = tables.shape(schema, 0);
    Structural {
        root,
        shapes: tables.shapes.into_boxed_slice(),
        names: tables.names.in_order(),
        patterns: patterns(tables.patterns.in_order()),
        rules: OnceLock::new(),
    }
}

#[derive(Default)]
struct Tables<'v> {
    shapes: Vec<Shape>,
    by_shape: HashMap<Shape, ShapeId>,
    names: Texts<'v>,
    patterns: Texts<'v>,
}

/// Distinct texts.
#[derive(Default)]
struct Texts<'v>(HashMap<&'v str, u32>);

impl<'v> Texts<'v> {
    fn id(&mut self, text: &'v str) -> u32 {
        let next =
            u32::try_from(self.0.len()).expect("a schema has fewer names than bytes, and those fit u32");
        *self.0.entry(text).or_insert(next)
    }

    fn in_order(self) -> Box<[Box<str>]> {
        let mut texts: Vec<_> = self.0.into_iter().collect();
        texts.sort_unstable_by_key(|(_, id)| *id);
        texts.into_iter().map(|(text, _)| Box::from(text)).collect()
    }
}

/// Patterns are compiled when they first run. Those beyond the limit of a schema never are: validation
/// rejects such schemas, so only an older server can have stored one.
fn patterns(texts: Box<[Box<str>]>) -> Box<[Pattern]> {
    let mut bytes = 0_usize;
    let pattern = |text: Box<str>| {
        bytes = bytes.saturating_add(pattern::measure(&text).unwrap_or_default());
        let compiled = OnceLock::new();
        if bytes > pattern::MAX_TOGETHER_BYTES {
            drop(compiled.set(Err(expression::Error::new("expression too large"))));
        }
        Pattern { text, compiled }
    };
    texts.into_iter().map(pattern).collect()
}

impl<'v> Tables<'v> {
    fn shape(&mut self, schema: &'v Value, depth: usize) -> ShapeId {
        let keywords = Keywords(schema.as_object().filter(|_| depth < MAX_DEPTH));
        let shape = self.read(keywords, depth + 1);
        if let Some(known) = self.by_shape.get(&shape) {
            return *known;
        }
        let next =
            u32::try_from(self.shapes.len()).expect("a schema has fewer shapes than bytes, and bytes fit");
        self.shapes.push(shape.clone());
        self.by_shape.insert(shape, ShapeId(next));
        ShapeId(next)
    }

    fn read(&mut self, keywords: Keywords<'v>, depth: usize) -> Shape {
        let int_or_string = keywords.flag("x-kubernetes-int-or-string");
        let kind = if int_or_string {
            ValueType::IntOrString
        } else {
            ValueType::named(keywords.text("type").unwrap_or_default())
        };
        let properties = keywords.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties = properties
            .map(|(name, schema)| (NameId(self.names.id(name)), self.shape(schema, depth)))
            .collect();
        let more = self.more(keywords, kind, depth);
        Shape {
            kind,
            nullable: keywords.flag("nullable"),
            preserve: keywords.flag("x-kubernetes-preserve-unknown-fields"),
            embedded: keywords.flag("x-kubernetes-embedded-resource"),
            atomic_map: keywords.text("x-kubernetes-map-type") == Some("atomic"),
            list: match keywords.text("x-kubernetes-list-type") {
                Some("atomic") => ListType::Atomic,
                Some("set") => ListType::Set,
                Some("map") => ListType::Map,
                _ => ListType::Unsaid,
            },
            properties,
            items: self.schema(keywords.get("items"), depth),
            additional: match keywords.get("additionalProperties") {
                Some(Value::Bool(true)) => Additional::Allowed,
                Some(Value::Bool(false)) => Additional::Forbidden,
                schema => self.schema(schema, depth).map_or(Additional::Unsaid, Additional::Shape),
            },
            required: self.name_list(keywords.get("required")),
            more: (more != More::default()).then(|| Box::new(more)),
        }
    }

    fn more(&mut self, keywords: Keywords<'v>, kind: ValueType, depth: usize) -> More {
        More {
            default: keywords.get("default").filter(|value| !value.is_null()).cloned(),
            list_keys: keywords.list("x-kubernetes-list-map-keys").iter().filter_map(text).collect(),
            format: keywords.text("format").filter(|name| format::applies(kind, name)).map(Box::from),
            one_of_these: keywords.list("enum").into(),
            pattern: keywords.text("pattern").map(|text| PatternId(self.patterns.id(text))),
            min_length: keywords.count("minLength"),
            max_length: keywords.count("maxLength"),
            min_items: keywords.count("minItems"),
            max_items: keywords.count("maxItems"),
            min_properties: keywords.count("minProperties"),
            max_properties: keywords.count("maxProperties"),
            unique_items: keywords.flag("uniqueItems"),
            minimum: keywords.bound("minimum", "exclusiveMinimum"),
            maximum: keywords.bound("maximum", "exclusiveMaximum"),
            multiple_of: keywords.number("multipleOf"),
            all_of: self.schemas(keywords.list("allOf"), depth),
            any_of: self.schemas(keywords.list("anyOf"), depth),
            one_of: self.schemas(keywords.list("oneOf"), depth),
            not: self.schema(keywords.get("not"), depth),
            rules: keywords.list("x-kubernetes-validations").iter().map(rule).collect(),
        }
    }

    fn schema(&mut self, schema: Option<&'v Value>, depth: usize) -> Option<ShapeId> {
        schema.filter(|schema| schema.is_object()).map(|schema| self.shape(schema, depth))
    }

    fn schemas(&mut self, schemas: &'v [Value], depth: usize) -> Box<[ShapeId]> {
        schemas.iter().map(|schema| self.shape(schema, depth)).collect()
    }

    fn name_list(&mut self, names: Option<&'v Value>) -> Box<[NameId]> {
        let names = names.and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(|name| NameId(self.names.id(name))).collect()
    }
}

/// The keywords of one schema.
#[derive(Clone, Copy)]
struct Keywords<'v>(Option<&'v Map<String, Value>>);

impl<'v> Keywords<'v> {
    fn get(self, name: &str) -> Option<&'v Value> {
        self.0?.get(name)
    }

    fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn text(self, name: &str) -> Option<&'v str> {
        self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn list(self, name: &str) -> &'v [Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn count(self, name: &str) -> Option<i64> {
        self.get(name)?.as_i64()
    }

    fn number(self, name: &str) -> Option<Real> {
        self.get(name)?.as_f64().map(Real::new)
    }

    fn bound(self, name: &str, exclusive: &str) -> Option<Bound> {
        Some(Bound { at: self.number(name)?, exclusive: self.flag(exclusive) })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn rule(rule: &Value) -> Rule {
    let text = |name: &str| Box::from(rule[name].as_str().unwrap_or_default());
    Rule {
        rule: text("rule"),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: rule["reason"].as_str().map(Box::from),
        field_path: text("fieldPath"),
        optional_old_self: rule["optionalOldSelf"].as_bool(),
    }
}
