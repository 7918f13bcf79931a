//! Rules on an object with a schema: types, estimated and real costs, and results of kube-apiserver.

use expression::{Checked, Declared, Env, Type, cost::Range, value};
use node::Node;
use serde_json::{Value as Json, json};

mod node;

/// Kubernetes: the most that one expression may cost.
const BUDGET: u64 = 1_000_000;

/// The results of a rule, in the notation of `schema/rules.txt`.
fn outcome(node: &Node, is_root: bool, object: &Json, rule: &str) -> String {
    let Some(declared) = Declared::new(node, "selfType", is_root) else { return "no type".into() };
    let (checked, most) = match compile(&declared, rule) {
        Ok(compiled) => compiled,
        Err(text) => return text,
    };
    let program = match checked.program() {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let value = match is_root {
        true => value::view_resource(object, node),
        false => value::view(object, Some(node)),
    };
    let run = program.run(&[("self", value)], BUDGET);
    let text = run.outcome.map_or_else(|error| error.to_string(), |value| expression::text::describe(&value));
    format!("at most {}; {text} for {}", most.max, run.cost)
}

fn compile(declared: &Declared, rule: &str) -> Result<(Checked, Range), String> {
    let env = Env::kubernetes().with_variable("self", declared.ty().clone());
    let checked = env.compile(rule).map_err(|issues| format!("compilation failed: {issues}"))?;
    if *checked.output_type() != Type::Bool {
        return Err("cel expression must evaluate to a bool".into());
    }
    let most = checked.estimate(declared);
    Ok((checked, most))
}

#[test]
fn rules_have_the_results_of_kubernetes() {
    let schema: Json = serde_json::from_str(include_str!("schema/schema.json")).unwrap();
    let object: Json = serde_json::from_str(include_str!("schema/object.json")).unwrap();
    let node = Node::new(&schema);
    let mut wrong = Vec::new();
    let mut lines = include_str!("schema/rules.txt").lines().peekable();
    while let Some(rule) = lines.next() {
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("    ")) {
            expected.push(&line[4..]);
        }
        let found = outcome(&node, false, &object, rule);
        if found != expected.join("\n") {
            wrong.push(format!("{rule}\n  {found}\n  but should be\n  {}", expected.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_sort_of_root_has_a_type() {
    let integers = json!({"type": "array", "items": {"type": "integer"}});
    let strings =
        json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}});
    let resource = json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
    }});
    let thing = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "labels": {"a": "b"}}});
    for (schema, is_root, rule, object, expected) in [
        (json!({"type": "string"}), false, "self == 'a'", json!("a"), "at most 2; true for 2"),
        (json!({"type": "integer"}), false, "self > 1", json!(2), "at most 2; true for 2"),
        (json!({"type": "boolean"}), false, "self", json!(false), "at most 1; false for 1"),
        (integers, false, "self.all(x, x > 0)", json!([1, 2]), "at most 7864317; true for 12"),
        (strings, false, "self.all(k, self[k].all(x, x == 'a'))", json!({"a": ["a"]}), ""),
        (json!({"x-kubernetes-int-or-string": true}), false, "self == 1", json!(1), "at most 2; true for 2"),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), false, "self == 1", json!(1), "no type"),
        (resource.clone(), true, "self.metadata.name == 'n'", thing.clone(), "at most 4; true for 4"),
        (resource.clone(), true, "self.kind == 'X'", thing.clone(), "at most 3; true for 3"),
        (resource.clone(), true, "has(self.metadata.generateName)", thing.clone(), "at most 2; false for 2"),
        (
            resource,
            true,
            "self.metadata.labels == 'n'",
            thing,
            "compilation failed: ERROR: <input>:1:14: undefined field 'labels'\n | self.metadata.labels == 'n'\n | .............^",
        ),
    ] {
        let found = outcome(&Node::new(&schema), is_root, &object, rule);
        assert!(found == expected || (expected.is_empty() && found.contains("true for")), "{rule}: {found}");
    }
}

#[test]
fn large_sets_compare_without_comparing_everything() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "b": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }});
    let names: Vec<String> = (0..20_000).map(|number| format!("n{number}")).collect();
    let reversed: Vec<&String> = names.iter().rev().collect();
    let object = json!({"a": names, "b": reversed});
    let node = Node::new(&schema);
    for rule in ["self.a == self.b", "(self.a + self.b).size() == 20000", "self.a + self.b == self.b"] {
        assert!(outcome(&node, false, &object, rule).contains("; true for"), "{rule}");
    }
}
