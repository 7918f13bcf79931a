//! Changes an object slightly: mostly labels and finalizers, sometimes any field, sometimes to an invalid
//! value.

use super::{
    subject::{Shape, Subject},
    value,
};
use crate::{draw::Draw, json::Json};
use schema::types::{Node, TypeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wildness {
    /// Changes that any controller could make: both servers must accept nearly all of them.
    Tame,
    /// Any field, any value.
    Wild,
}

/// Changes `object` in one place.
pub(super) fn mutate(object: &mut Json, subject: &Subject, wildness: Wildness, draw: &mut Draw) {
    if wildness == Wildness::Tame || !subject.changeable || draw.one_in(4) {
        metadata(object, wildness, draw);
        if wildness == Wildness::Wild || !subject.changeable {
            return;
        }
    }
    match &subject.shape {
        Shape::BuiltIn(of) if wildness == Wildness::Wild => field(object, *of, draw, 0),
        Shape::BuiltIn(_) => known_good(object, subject, draw),
        Shape::Custom(schema) => custom(object, schema, wildness, draw),
    }
}

fn metadata(object: &mut Json, wildness: Wildness, draw: &mut Draw) {
    let wild = wildness == Wildness::Wild;
    match draw.below(if wild { 14 } else { 8 }) {
        0 | 1 => object.set_at(
            &["metadata", "labels", draw.pick(&["a", "b", "c"])],
            Json::text(draw.pick(&["1", "2", ""])),
        ),
        2 => object
            .set_at(&["metadata", "annotations", draw.pick(&["x", "y.example.com/z"])], value::text(draw)),
        3 => object.set_at(&["metadata", "finalizers"], Json::literal(draw.pick(&FINALIZERS))),
        4 => object.set_at(&["metadata", "ownerReferences"], Json::literal(OWNERS)),
        5 => remove_at(
            object,
            &["metadata", draw.pick(&["labels", "annotations", "finalizers", "ownerReferences"])],
        ),
        6 => remove_at(object, &["metadata", "labels", draw.pick(&["a", "b"])]),
        7 => object.set_at(&["metadata", "generateName"], Json::text("gen-")),
        8 => object.set_at(
            &["metadata", draw.pick(&["uid", "resourceVersion", "namespace", "name"])],
            value::text(draw),
        ),
        9 => object
            .set_at(&["metadata", draw.pick(&["generation", "deletionGracePeriodSeconds"])], Json::number(7)),
        10 => object.set_at(
            &["metadata", draw.pick(&["creationTimestamp", "deletionTimestamp"])],
            Json::literal(draw.pick(&["null", r#""2001-01-01T00:00:00Z""#, r#""x""#])),
        ),
        11 => object
            .set_at(&["metadata", draw.pick(&["labels", "annotations", "finalizers"])], value::any(draw, 1)),
        12 => object
            .set_at(&["metadata", "labels", draw.pick(&["A/b", "-x", "a/b/c", "é"])], value::any(draw, 2)),
        _ => object.set_at(&["metadata", "managedFields"], Json::literal(draw.pick(&MANAGED_FIELDS))),
    }
}

const FINALIZERS: [&str; 5] = [
    r#"["example.com/one"]"#,
    r#"["example.com/one","example.com/two"]"#,
    "[]",
    r#"["example.com/one","example.com/one"]"#,
    r#"["short"]"#,
];
const OWNERS: &str = r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"11111111-2222-3333-4444-555555555555","controller":true}]"#;
const MANAGED_FIELDS: [&str; 4] = [
    "[]",
    "[{}]",
    r#"[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}},"time":"2001-01-01T00:00:00Z"}]"#,
    r#"[{"manager":"m","operation":"Wrong"}]"#,
];

/// Changes fields that are mutable in every object of a kind.
fn known_good(object: &mut Json, subject: &Subject, draw: &mut Draw) {
    let (path, values): (&[&str], &[&str]) = match subject.kind.as_str() {
        "ConfigMap" => (&["data", "k"], &[r#""v""#, r#""w\n""#, r#""""#]),
        "Secret" => (&["data", "k"], &[r#""dg==""#, r#""""#]),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => {
            (&["spec", "replicas"], &["0", "1", "3", "null"])
        }
        "DaemonSet" => (&["spec", "revisionHistoryLimit"], &["1", "3"]),
        "Service" => (&["spec", "sessionAffinity"], &[r#""None""#, r#""ClientIP""#]),
        "Pod" => (&["spec", "activeDeadlineSeconds"], &["10", "20"]),
        "Job" => (&["spec", "suspend"], &["true", "false"]),
        "CronJob" => (&["spec", "suspend"], &["true", "false"]),
        "HorizontalPodAutoscaler" => (&["spec", "maxReplicas"], &["5", "7"]),
        "Lease" => (&["spec", "holderIdentity"], &[r#""x""#, r#""y""#]),
        "Node" => (&["spec", "unschedulable"], &["true", "false", "null"]),
        "Role" | "ClusterRole" => (&["rules"], &["[]", "null"]),
        "PodDisruptionBudget" => (&["spec", "minAvailable"], &["1", r#""20%""#]),
        _ => return,
    };
    object.set_at(path, Json::literal(draw.pick(values)));
}

/// Follows a random path and changes the field at its end.
fn field(object: &mut Json, of: TypeId, draw: &mut Draw, depth: usize) {
    let fields = kinds::types().get(of).fields();
    let usable: Vec<_> = fields
        .iter()
        .filter(|it| depth > 0 || !matches!(&*it.name, "apiVersion" | "kind" | "metadata"))
        .collect();
    if usable.is_empty() || draw.one_in(25) {
        return damage(object, draw);
    }
    // Prefers existing fields: they lead deeper.
    let present: Vec<_> = usable.iter().copied().filter(|it| object.get(&it.name).is_some()).collect();
    let is_new = present.is_empty() || draw.one_in(3);
    let chosen = draw.pick(if is_new { &usable } else { &present });
    let Some(inner) = object.get_mut(&chosen.name) else {
        return object.set(&chosen.name, value::of_node(&chosen.node, draw, depth));
    };
    if draw.one_in(4) {
        return match draw.below(8) {
            0 => *inner = Json::Null,
            1 => *inner = value::any(draw, 1),
            2 => object.remove(&chosen.name),
            _ => *inner = value::of_node(&chosen.node, draw, depth),
        };
    }
    into_node(inner, &chosen.node, draw, depth);
}

fn into_node(inner: &mut Json, node: &Node, draw: &mut Draw, depth: usize) {
    match (node, inner) {
        (Node::Object(of) | Node::AtomicObject(of), inner @ Json::Object(_)) => {
            field(inner, *of, draw, depth + 1)
        }
        (Node::List(list), Json::List(items)) if !items.is_empty() => {
            let at = draw.below(items.len());
            match draw.below(6) {
                0 => drop(items.remove(at)),
                1 => {
                    let twice = items[at].clone();
                    items.push(twice);
                }
                _ => into_node(&mut items[at], &list.items, draw, depth + 1),
            }
        }
        (node, inner) => *inner = value::of_node(node, draw, depth),
    }
}

/// Adds unknown members.
fn damage(object: &mut Json, draw: &mut Draw) {
    match draw.below(4) {
        0 => object.set("unknownField", value::any(draw, 1)),
        1 => object.set("Spec", value::any(draw, 1)),
        2 => object.set("", Json::Null),
        _ => {
            if let Json::Object(members) = object
                && let Some(first) = members.first().cloned()
            {
                members.push(first);
            }
        }
    }
}

fn custom(object: &mut Json, schema: &Json, wildness: Wildness, draw: &mut Draw) {
    let fresh = value::of_schema(schema, draw, 0);
    for (name, value) in fresh.members() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") && draw.one_in(2) {
            object.set(name, value.clone());
        }
    }
    if wildness == Wildness::Wild {
        match draw.below(6) {
            0 => damage(object, draw),
            1 => object.set(draw.pick(&["spec", "status", "data", "a", "item", "zzz"]), value::any(draw, 0)),
            2 => object.remove("spec"),
            _ => {}
        }
    }
}

fn remove_at(object: &mut Json, path: &[&str]) {
    match path {
        [] => {}
        [name] => object.remove(name),
        [name, rest @ ..] => {
            if let Some(inner) = object.get_mut(name) {
                remove_at(inner, rest);
            }
        }
    }
}
