//! What kube-apiserver's own code did to objects of random schemas, one case per line.

use serde_json::Value;

use super::Structural;

#[test]
fn random_objects_have_the_recorded_results() {
    for line in include_str!("../recorded.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let schema = Structural::compile(&case["schema"]);
        let mut object = case["new"].clone();
        let pruned: Vec<_> = schema.coerce(&mut object).unwrap();
        let expected = case["pruned"].as_array().unwrap().iter();
        let expected: Vec<_> = expected.map(|path| format!("unknown field {path}")).collect();
        assert_eq!(pruned, expected, "{line}");
        schema.default(&mut object);
        assert_eq!(api::go::json(&object).unwrap(), api::go::json(&case["object"]).unwrap());
        let mut errors: Vec<_> =
            schema.validate(&object, case.get("old")).iter().map(ToString::to_string).collect();
        errors.sort();
        let mut expected: Vec<_> = case["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error.as_str().unwrap().to_owned())
            .collect();
        expected.sort();
        assert_eq!(errors, expected, "{line}");
    }
}
