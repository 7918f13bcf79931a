//! Custom objects with any schema: decoding, pruning and defaulting are idempotent.

use crate::{
    Target,
    recorded::{divide, seed},
};
use schema::{
    decode::FieldValidation,
    encode::encode_any,
    structural::{Encoding, Structural},
};
use serde_json::Value;

pub(super) const TARGET: Target = Target { name: "structural", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "\"type\":\"object\"",
    "\"type\":\"array\"",
    "\"type\":\"string\"",
    "\"type\":\"integer\"",
    "\"properties\":",
    "\"additionalProperties\":",
    "\"items\":",
    "\"default\":",
    "\"nullable\":true",
    "\"required\":[\"a\"]",
    "\"enum\":[1]",
    "\"format\":\"date-time\"",
    "\"pattern\":\"^a+$\"",
    "\"minimum\":1",
    "\"multipleOf\":0.1",
    "\"maxLength\":3",
    "\"allOf\":",
    "\"oneOf\":",
    "\"not\":",
    "\"x-kubernetes-preserve-unknown-fields\":true",
    "\"x-kubernetes-embedded-resource\":true",
    "\"x-kubernetes-int-or-string\":true",
    "\"x-kubernetes-list-type\":\"map\"",
    "\"x-kubernetes-list-map-keys\":[\"a\"]",
    "\"x-kubernetes-validations\":[{\"rule\":\"self.a == 1\"}]",
    "null",
    "{}",
    "[]",
];

const SCHEMAS: [&str; 4] = [
    r#"{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":1,"maximum":9,"default":3},"b":{"type":"string","enum":["x","y"],"default":"x"},"c":{"type":"array","maxItems":3,"items":{"type":"string","pattern":"^[a-z]+$"},"x-kubernetes-list-type":"set"}}}}}"#,
    r#"{"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"object","properties":{"k":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},"n":{"type":"number","nullable":true,"multipleOf":0.5}}}},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}"#,
    r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string","default":"d"},"v":{"type":"boolean"}}}}}}"#,
    r#"{"type":"object","properties":{"spec":{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]},"properties":{"a":{"type":"string","format":"date-time"},"b":{"type":"string","maxLength":4},"c":{"type":"integer","format":"int32"}},"x-kubernetes-validations":[{"rule":"!has(self.b) || self.b.startsWith('x')","message":"m"}]}}}"#,
];

const OBJECTS: [&str; 4] = [
    r#"{"apiVersion":"e.x/v1","kind":"W","metadata":{"name":"a","labels":{"l":"m"},"odd":1},"spec":{"a":12,"b":"z","c":["q","q","R"],"d":1}}"#,
    r#"{"apiVersion":"e.x/v1","kind":"W","metadata":{},"spec":{"x":{"k":"s","n":null},"y":{"k":1,"n":1.25}},"free":{"any":[1,null]}}"#,
    r#"{"apiVersion":"e.x/v1","kind":"W","spec":{"apiVersion":"v1","kind":"Pod","metadata":{"name":1,"creationTimestamp":null},"spec":{}},"list":[{"name":"a","v":true},{"name":"a"},{}]}"#,
    r#"{"apiVersion":"e.x/v1","kind":"W","spec":{"a":"2024-01-01T00:00:00Z","b":"xylophone","c":3000000000}}"#,
];

fn seeds() -> Vec<Vec<u8>> {
    let all = SCHEMAS.iter().flat_map(|schema| OBJECTS.iter().map(move |object| (schema, object)));
    all.map(|(schema, object)| seed(b'!', &[schema.as_bytes(), object.as_bytes()])).collect()
}

fn check(input: &[u8]) {
    let Some((schema, body)) = input.get(1..).and_then(divide) else { return };
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return };
    let schema = Structural::compile(&schema);
    let read = |body: &[u8], validation| schema.decode(body, Encoding::Json, validation);
    let Ok(object) = read(body, FieldValidation::Ignore).map(|read| read.value) else { return };
    let json = encode_any(&object);
    let again = read(&json, FieldValidation::Strict);
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&json)));
    // Compared as text: Kubernetes reads `4.0` as a float and writes `4`, which is read as an integer.
    assert_eq!(encode_any(&again.value), json, "through JSON");

    let changed = |act: &dyn Fn(&mut Value), object: &Value| {
        let mut object = object.clone();
        act(&mut object);
        object
    };
    let pruned = changed(&|object| assert_eq!(schema.prune(object), Vec::<String>::new()), &object);
    assert_eq!(pruned, object, "pruned twice");
    let coerced = changed(&|object| assert_eq!(schema.coerce(object), Ok(Vec::new())), &object);
    assert_eq!(coerced, object, "as from a patch");
    let full = changed(&|object| schema.default(object), &object);
    assert_eq!(changed(&|object| schema.default(object), &full), full, "defaults, twice");
    let adopted = changed(&|object| schema.adopt(object), &object);
    // Validation rejects definitions with defaults that their own schema would prune.
    if schema.prune(&mut full.clone()).is_empty() {
        assert_eq!(changed(&|object| schema.adopt(object), &adopted), adopted, "adopted, twice");
    }

    let errors_of = |new: &Value, old: Option<&Value>| schema.validate(new, old).to_string();
    assert_eq!(errors_of(&full, None), errors_of(&full, None), "validation is deterministic");
    errors_of(&full, Some(&object));
}
