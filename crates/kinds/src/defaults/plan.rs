//! A type in, what to fill in out: worked out once for every type, so that a walk visits only what has defaults.

use std::sync::LazyLock;

use api::quantity::Quantity;
use schema::types::{Field, Node, Type, TypeId};
use serde_json::Value;

use super::member::{self, Members};
use super::type_defaults::Rule;
use crate::built_in::BUILT_INS;
use crate::types;

/// The names of types in [`TypeDefaults`](super::type_defaults::TypeDefaults) leave this out.
const PACKAGE: &str = "io.k8s.api.";
/// Kubernetes: amounts of resources are kept in thousandths at the finest.
const RESOURCE_SCALE: i32 = -3;

/// What to do with an object of one type.
#[derive(Default)]
struct Plan {
    rule: Option<Rule>,
    values: Vec<Fill>,
    /// The positions of the fields below which there is something to do.
    below: Vec<usize>,
}

/// A value and where it goes: a path of objects that Go holds by value, then the field.
struct Fill {
    path: Vec<&'static str>,
    field: &'static Field,
    value: Value,
}

static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(plans);

/// Completes an object of a type and all that lies in it.
pub(super) fn fill(id: TypeId, members: &mut Members) {
    let Some(plan) = PLANS.get(id.0 as usize) else { return };
    if let Some(rule) = plan.rule {
        rule(members);
    }
    for fill in &plan.values {
        let holder = fill.path.iter().fold(&mut *members, |holder, name| member::made(holder, name));
        let stands = holder.get(&*fill.field.name).is_some_and(|value| fill.field.keeps(value));
        if !stands {
            holder.insert(fill.field.name.to_string(), fill.value.clone());
        }
    }
    let fields = types().get(id).fields();
    for field in plan.below.iter().map(|at| &fields[*at]) {
        fill_field(field, members);
    }
}

fn fill_field(field: &Field, members: &mut Members) {
    let by_value = !field.pointer && field.node.object().is_some();
    if !by_value {
        if let Some(value) = members.get_mut(&*field.name) {
            fill_node(&field.node, value);
        }
        return;
    }
    let Some(id) = field.node.object() else { return };
    fill(id, member::made(members, &field.name));
    if !member::is_set(members, &field.name) {
        members.remove(&*field.name);
    }
}

fn fill_node(node: &Node, value: &mut Value) {
    match (node, value) {
        (Node::Object(id) | Node::AtomicObject(id), Value::Object(members)) => fill(*id, members),
        (Node::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| fill_node(&list.items, item));
        }
        (Node::Map(map), Value::Object(members)) => {
            members.values_mut().for_each(|value| fill_node(&map.values, value));
        }
        (Node::Quantity, amount) => round(amount),
        _ => {}
    }
}

fn round(amount: &mut Value) {
    let parsed = amount.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let rounded = parsed.map(|quantity| quantity.round_up(RESOURCE_SCALE).to_string());
    if let Some(text) = rounded.filter(|text| amount.as_str() != Some(text)) {
        *amount = text.into();
    }
}

fn plans() -> Vec<Plan> {
    let mut plans: Vec<Plan> = types().iter().map(|(_, of)| own(of)).collect();
    for defaults in BUILT_INS.iter().flat_map(|it| it.defaults) {
        let (id, of) = named(defaults.type_name).expect("defaults are those of known types");
        let plan = &mut plans[id.0 as usize];
        plan.rule = defaults.rule;
        for (path, value) in defaults.values {
            plan.values.push(fill_at(of, path, (*value).into()).expect("defaults are those of known fields"));
        }
    }
    let mut active: Vec<bool> =
        plans.iter().map(|plan| plan.rule.is_some() || !plan.values.is_empty()).collect();
    // Types contain each other, so what is below is found by asking until no answer changes.
    loop {
        let before = active.clone();
        for (id, of) in types().iter() {
            let leads = of.fields().iter().any(|field| leads(field, &active));
            active[id.0 as usize] |= leads;
        }
        if before == active {
            break;
        }
    }
    for (id, of) in types().iter() {
        let fields = of.fields().iter().enumerate();
        plans[id.0 as usize].below =
            fields.filter(|(_, field)| leads(field, &active)).map(|(at, _)| at).collect();
    }
    plans
}

/// What the schema says of a type, without what lies below it.
fn own(of: &'static Type) -> Plan {
    let declared = of.fields().iter().filter_map(|field| {
        let value = field.default.as_deref().filter(|value| field.keeps(value))?;
        Some(Fill { path: Vec::new(), field, value: value.clone() })
    });
    Plan { rule: None, values: declared.collect(), below: Vec::new() }
}

fn leads(field: &Field, active: &[bool]) -> bool {
    let is_resources = field
        .go
        .as_ref()
        .and_then(|go| go.type_name.as_deref())
        .is_some_and(|name| name == "v1.ResourceList");
    is_resources || node_leads(&field.node, active)
}

fn node_leads(node: &Node, active: &[bool]) -> bool {
    match node {
        Node::Object(id) | Node::AtomicObject(id) => active[id.0 as usize],
        Node::List(list) => node_leads(&list.items, active),
        Node::Map(map) => node_leads(&map.values, active),
        _ => false,
    }
}

fn named(name: &str) -> Option<(TypeId, &'static Type)> {
    types().named(&format!("{PACKAGE}{name}")).or_else(|| types().named(name))
}

fn fill_at(mut of: &'static Type, path: &'static str, value: Value) -> Option<Fill> {
    let mut path: Vec<&str> = path.split('.').collect();
    let last = path.pop()?;
    for name in &path {
        let by_value = of.field(name).filter(|field| !field.pointer)?;
        of = types().get(by_value.node.object()?);
    }
    Some(Fill { path, field: of.field(last)?, value })
}
