//! `data/types.txt` in, the table of types out. The first lines of that file describe its form.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use schema::types::{
    Field, List, ListKind, Map, Name, Node, Other, PatchStrategy, Proto, Type, TypeId, Types,
};
use serde_json::Value;

static TEXT: &str = include_str!("../data/types.txt");
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Every built-in type: API kinds and all that they contain, and what the machinery itself speaks
/// (`Status`, `Table`, `AdmissionReview`, aggregated discovery, audit events).
pub fn types() -> &'static Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| read(TEXT).expect("carry.py writes what is read here"));
    &TYPES
}

fn read(text: &'static str) -> Option<Types> {
    let heads = lines(text).filter_map(|line| line.strip_prefix('@')).map(|head| word(head).0);
    let ids = heads.zip((0..).map(TypeId)).collect();
    let mut reader = Reader { ids, defaults: HashMap::new() };
    let mut types = Types::default();
    let mut fields = Vec::new();
    let mut head = None;
    for line in lines(text) {
        match line.strip_prefix('@') {
            None => fields.push(reader.field(line)?),
            Some(next) => add(&mut types, head.replace(next), &mut fields),
        }
    }
    add(&mut types, head, &mut fields);
    Some(types)
}

fn add(types: &mut Types, head: Option<&'static str>, fields: &mut Vec<Field>) {
    let Some((name, kind)) = head.map(word) else { return };
    let mut of = Type::new(name, fields.drain(..));
    if !kind.is_empty() {
        let (group, rest) = word(kind);
        let (version, kind) = word(rest);
        of = of.of_kind(crate::or_empty(group), version, kind);
    }
    types.add(of);
}

/// What lines refer to: other types by name, and defaults, of which there are few.
struct Reader {
    ids: HashMap<&'static str, TypeId>,
    defaults: HashMap<&'static str, Arc<Value>>,
}

impl Reader {
    fn field(&mut self, line: &'static str) -> Option<Field> {
        let (name, rest) = word(line);
        let (node, mut rest) = word(rest);
        let mut field = Field::new(name, self.node(node)?);
        while !rest.is_empty() {
            let (next, after) = word(rest);
            if next == "=" {
                field.default = Some(self.default(after)?);
                break;
            }
            describe(&mut field, next)?;
            rest = after;
        }
        Some(field)
    }

    fn node(&self, text: &'static str) -> Option<Node> {
        if let Some((kind, items)) = text.strip_prefix('[').and_then(|list| list.split_once(']')) {
            let wrapped = kind == "*";
            let kind = match kind {
                "" | "*" => ListKind::Atomic,
                "=" => ListKind::Set,
                keys => ListKind::Map(keys.split(',').map(Cow::Borrowed).collect()),
            };
            return Some(Node::List(Box::new(List { items: self.node(items)?, kind, wrapped })));
        }
        if let Some((kind, values)) = text.strip_prefix('{').and_then(|map| map.split_once('}')) {
            return Some(Node::Map(Box::new(Map { values: self.node(values)?, atomic: kind == "!" })));
        }
        Some(match text {
            "string" => Node::String,
            "bool" => Node::Bool,
            "int32" => Node::Int32,
            "int64" => Node::Int64,
            "double" => Node::Double,
            "bytes" => Node::Bytes,
            "time" => Node::Time,
            "micro-time" => Node::MicroTime,
            "quantity" => Node::Quantity,
            "int-or-string" => Node::IntOrString,
            "raw" => Node::Raw,
            "fields-v1" => Node::FieldsV1,
            "json" => Node::Json,
            "schema-or-list" => Node::Either(self.id(SCHEMA)?, Other::List),
            "schema-or-bool" => Node::Either(self.id(SCHEMA)?, Other::Bool),
            "schema-or-strings" => Node::Either(self.id(SCHEMA)?, Other::Strings),
            name => match name.strip_prefix('!') {
                Some(atomic) => Node::AtomicObject(self.id(atomic)?),
                None => Node::Object(self.id(name)?),
            },
        })
    }

    fn id(&self, name: &str) -> Option<TypeId> {
        self.ids.get(name).copied()
    }

    fn default(&mut self, json: &'static str) -> Option<Arc<Value>> {
        if let Some(known) = self.defaults.get(json) {
            return Some(Arc::clone(known));
        }
        let value = Arc::new(serde_json::from_str(json).ok()?);
        self.defaults.insert(json, Arc::clone(&value));
        Some(value)
    }
}

fn describe(field: &mut Field, word: &'static str) -> Option<()> {
    match word {
        "pointer" => field.pointer = true,
        "always" => field.always = true,
        "required" => field.required = true,
        "replace" => field.patch = PatchStrategy::ReplaceWhole,
        "merge" => field.patch = PatchStrategy::Merge,
        "retainKeys" if field.patch.merges() => field.patch = PatchStrategy::MergeRetainKeys,
        "retainKeys" => field.patch = PatchStrategy::RetainKeys,
        _ => match word.split_once('=') {
            Some(("key", name)) => field.merge_key = Some(Name::Borrowed(name)),
            Some(("go", name)) => field.go.get_or_insert_default().type_name = Some(Name::Borrowed(name)),
            Some(("in", name)) => field.go.get_or_insert_default().within = Some(Name::Borrowed(name)),
            _ => field.proto = Some(proto(word)?),
        },
    }
    Some(())
}

fn proto(path: &str) -> Option<Proto> {
    let (via, number) = path.rsplit_once('/').unwrap_or(("", path));
    let via =
        via.split('/').filter(|step| !step.is_empty()).map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Proto { number: number.parse().ok()?, via })
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let line;
        (line, rest) = cut(rest, b'\n')?;
        Some(line)
    })
    .filter(|line| !line.starts_with('#'))
}

/// The first word and what follows it.
fn word(text: &'static str) -> (&'static str, &'static str) {
    cut(text, b' ').unwrap_or_default()
}

/// What stands before a separator and what after it. Words are a few bytes long, so that looking at each byte
/// takes a third of the time of `split_once`.
fn cut(text: &'static str, separator: u8) -> Option<(&'static str, &'static str)> {
    match text.bytes().position(|byte| byte == separator) {
        Some(at) => Some((&text[..at], &text[at + 1..])),
        None => (!text.is_empty()).then_some((text, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(of: &str, name: &str) -> &'static Field {
        types().named(of).unwrap().1.field(name).unwrap()
    }

    #[test]
    fn every_fact_of_a_field_arrives() {
        let ports = field("io.k8s.api.core.v1.Container", "ports");
        let Node::List(list) = &ports.node else { panic!("{ports:?}") };
        assert_eq!(list.kind, ListKind::Map(["containerPort".into(), "protocol".into()].into()));
        assert_eq!((ports.patch, ports.merge_key.as_deref()), (PatchStrategy::Merge, Some("containerPort")));
        let protocol = field("io.k8s.api.core.v1.ContainerPort", "protocol");
        assert_eq!(protocol.default.as_deref(), Some(&Value::from("TCP")));
        assert_eq!(protocol.go.as_ref().unwrap().type_name.as_deref(), Some("v1.Protocol"));

        let selector = field("io.k8s.api.apps.v1.DeploymentSpec", "selector");
        assert!(selector.required && selector.always && selector.pointer);
        assert!(matches!(selector.node, Node::AtomicObject(_)));
        assert_eq!(field("io.k8s.api.apps.v1.DeploymentSpec", "strategy").patch, PatchStrategy::RetainKeys);
        assert_eq!(field("io.k8s.api.core.v1.PodSpec", "volumes").patch, PatchStrategy::MergeRetainKeys);
        let budget = "io.k8s.api.policy.v1.PodDisruptionBudgetSpec";
        assert_eq!(field(budget, "selector").patch, PatchStrategy::ReplaceWhole);

        let scope = field("io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", "scope");
        assert_eq!(scope.proto, Some(Proto { number: 4, via: [2, 2].into() }));
        assert_eq!(scope.go.as_ref().unwrap().within.as_deref(), Some("RuleWithOperations.Rule"));
        let verbs = field("io.k8s.apimachinery.pkg.apis.meta.v1.APIResource", "verbs");
        assert!(matches!(&verbs.node, Node::List(list) if list.wrapped));
    }

    #[test]
    fn a_field_may_say_otherwise_than_its_type() {
        let owner = field("io.k8s.api.core.v1.PodSpec", "nodeSelector");
        assert!(matches!(&owner.node, Node::Map(map) if map.atomic));
        // An ObjectReference is atomic, but not this one.
        let claim = field("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef");
        assert!(matches!(claim.node, Node::Object(_)));
        let involved = field("io.k8s.api.core.v1.Event", "involvedObject");
        assert!(matches!(involved.node, Node::AtomicObject(_)));
        // Structs are always written, but for this one.
        assert!(field("io.k8s.api.apps.v1.Deployment", "status").always);
        assert!(!field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "creationTimestamp").always);
    }

    #[test]
    fn kinds_say_first_what_they_are() {
        let mut kinds = 0;
        for (_, of) in types().iter().filter(|(_, of)| of.kind.is_some()) {
            kinds += 1;
            assert_eq!((&*of.fields()[0].name, &*of.fields()[1].name), ("kind", "apiVersion"), "{}", of.name);
        }
        assert_eq!((types().len(), kinds), (792, 208));
    }
}
