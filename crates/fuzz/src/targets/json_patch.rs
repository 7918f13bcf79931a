//! JSON patches: their results can be tested for, and undone.

use crate::{
    Target,
    recorded::{divide, recorded, seed},
};
use schema::{
    decode::{FieldValidation, decode_any},
    patch::json::{JsonPatch, Reading},
};
use serde_json::{Value, json};

pub(super) const TARGET: Target = Target { name: "json_patch", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "\"op\":\"add\"",
    "\"op\":\"remove\"",
    "\"op\":\"replace\"",
    "\"op\":\"move\"",
    "\"op\":\"copy\"",
    "\"op\":\"test\"",
    "\"path\":\"",
    "\"from\":\"",
    "\"value\":",
    "/",
    "~0",
    "~1",
    "/-",
    "/0",
    "/metadata/labels",
    "/spec",
    "/01",
    "\"\"",
];

fn seeds() -> Vec<Vec<u8>> {
    let patches = [
        r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"test","path":"/metadata/labels/a","value":"b"}]"#,
        r#"[{"op":"copy","from":"/metadata","path":"/spec/~0~1"},{"op":"move","from":"/spec","path":"/status"}]"#,
        r#"[{"op":"remove","path":"/metadata/name"},{"op":"replace","path":"","value":{"a":[1,2]}},{"op":"add","path":"/a/-","value":3},{"op":"remove","path":"/a/0"}]"#,
    ];
    let some = recorded().iter().step_by(7).zip(patches.iter().cycle());
    some.map(|(recorded, patch)| seed(b'!', &[recorded.json.as_bytes(), patch.as_bytes()])).collect()
}

fn check(input: &[u8]) {
    let Some((document, patch)) = input.get(1..).and_then(divide) else { return };
    let read = |json: &[u8]| decode_any(json, FieldValidation::Ignore).ok().map(|read| read.value);
    let (Some(document), Ok(patch)) = (read(document), serde_json::from_slice::<Value>(patch)) else {
        return;
    };
    let lenient = JsonPatch::decode(&patch, Reading::Lenient);
    let Ok(decoded) = JsonPatch::decode(&patch, Reading::Checked) else { return };
    assert!(lenient.is_ok(), "a patch accepted by checked reading is accepted by lenient reading");
    let Ok(patched) = decoded.apply(document.clone()) else { return };

    let run = |operations: Value, on: &Value| {
        JsonPatch::decode(&operations, Reading::Checked).and_then(|patch| patch.apply(on.clone()))
    };
    // Kubernetes: only an object or a list can replace the whole document.
    if document.is_object() || document.is_array() {
        let whole = json!([{"op": "replace", "path": "", "value": document}]);
        assert_eq!(run(whole, &patched), Ok(document.clone()), "undone as a whole");
    }
    if let Value::Object(members) = &patched {
        for (name, member) in members.iter().take(10) {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let test = json!([{"op": "test", "path": pointer, "value": member}]);
            assert_eq!(run(test, &patched), Ok(patched.clone()), "{pointer}");
            let there_and_back = json!([
                {"op": "add", "path": "/fuzz~1", "value": 1},
                {"op": "copy", "from": pointer, "path": "/fuzz~1"},
                {"op": "remove", "path": "/fuzz~1"},
            ]);
            assert_eq!(run(there_and_back, &patched), Ok(patched.clone()), "{pointer}");
        }
    }
}
