//! Rules on objects, with results recorded from kube-apiserver's own code.

use serde_json::{Value, json};

use crate::structural::Structural;

/// The first line is a schema and an object; each other line is a rule, its place and its error.
#[test]
fn rules_have_the_recorded_errors() {
    let mut lines =
        include_str!("recorded.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let first = lines.next().unwrap();
    let object =
        |spec: &Value| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec});
    for case in lines {
        let mut schema = first["schema"].clone();
        let rule = match &case["rule"] {
            Value::String(rule) => json!({"rule": rule}),
            rule => rule.clone(),
        };
        schema.pointer_mut(case["at"].as_str().unwrap()).unwrap()["x-kubernetes-validations"] = json!([rule]);
        let old = match &case["old"] {
            Value::Null => None,
            Value::Object(changes) => {
                let mut spec = first["spec"].clone();
                spec.as_object_mut().unwrap().extend(changes.clone());
                Some(object(&spec))
            }
            _ => Some(object(&first["spec"])),
        };
        let mut errors: Vec<_> = Structural::compile(&schema)
            .validate(&object(&first["spec"]), old.as_ref())
            .iter()
            .map(ToString::to_string)
            .collect();
        errors.sort();
        assert_eq!(json!(errors), case["errors"], "{} {} {}", case["at"], case["rule"], case["old"]);
    }
}

#[test]
fn rules_run_only_on_objects_that_pass_the_schema() {
    let schema = Structural::compile(
        &json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a == 'x'"}],
        "properties": {"a": {"type": "string", "enum": ["x", "y"], "minLength": 3}}}),
    );
    for (object, expected) in [
        (json!({"a": "x"}), &[r#"a: Invalid value: "x": a in body should be at least 3 chars long"#][..]),
        (
            json!({"a": "y"}),
            &[
                r#"a: Invalid value: "y": a in body should be at least 3 chars long"#,
                "<nil>: Invalid value: failed rule: self.a == 'x'",
            ],
        ),
        (
            json!({"a": 1}),
            &[
                r#"a: Invalid value: "integer": a in body must be of type string: "integer""#,
                r#"a: Unsupported value: 1: supported values: "x", "y""#,
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
                 correct the existing errors to complete validation",
            ],
        ),
    ] {
        let messages: Vec<_> = schema.validate(&object, None).iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected, "{object}");
    }
}

#[test]
fn all_rules_of_an_object_share_a_budget() {
    let rule = "self.all(x, self.all(y, x == y))";
    let list =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [{"rule": rule}]});
    let schema = Structural::compile(&json!({"type": "object", "additionalProperties": list}));
    let words = |count: usize| Value::from(vec!["x".repeat(100); count]);
    let one = schema.validate(&json!({"a": words(2000)}), None);
    let message = format!(
        "[a]: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation \
         rules will be run due to call cost exceeds limit for rule: {rule}"
    );
    assert_eq!(one.to_string(), message);
    let many: serde_json::Map<_, _> = (0..30).map(|n| (format!("k{n:02}"), words(150))).collect();
    let errors = schema.validate(&Value::Object(many), None);
    assert_eq!(errors.len(), 1);
    let message =
        "validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(errors.iter().next().unwrap().detail, message);
}

#[test]
fn rules_of_a_definition_must_compile_and_stay_within_cost_limits() {
    let with = |rule: Value| {
        json!({"type": "object", "properties": {
            "s": {"type": "string"},
            "l": {"type": "array", "items": {"type": "object", "x-kubernetes-validations": [rule],
                "properties": {"k": {"type": "string"}}}},
        }})
    };
    let at = "p.properties[l].items.x-kubernetes-validations[0]";
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                strings are declared)";
    for (rule, expected) in [
        (json!({"rule": "has(self.k)"}), vec![]),
        (
            json!({"rule": "has(oldSelf.k)"}),
            vec![format!(
                "{at}.rule: Invalid value: \"has(oldSelf.k)\": oldSelf cannot be used on the uncorrelatable portion \
                 of the schema within p.properties[l]"
            )],
        ),
        (
            json!({"rule": "has(self.k)", "optionalOldSelf": true}),
            vec![format!(
                "{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
            )],
        ),
        (
            json!({"rule": "self.k"}),
            vec![format!(
                "{at}.rule: Invalid value: {{\"Rule\":\"self.k\",\"Message\":\"\",\"MessageExpression\":\"\",\
                 \"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}: cel expression must evaluate to a \
                 bool"
            )],
        ),
        (
            json!({"rule": "self.k.matches('a+b')"}),
            vec![
                format!(
                    "{at}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {hint}"
                ),
                format!(
                    "{at}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire \
                     OpenAPIv3 schema"
                ),
                format!(
                    "p: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema \
                     exceeds budget by factor of more than 100x {hint}"
                ),
            ],
        ),
    ] {
        let errors = Structural::compile(&with(rule.clone())).check_rules("p", true, &|_| true);
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected, "{rule}");
    }
}
