//! CEL rules: any text is rejected or runs within its budget, with the same result each time.

use crate::{
    Target,
    recorded::{divide, seed},
};
use schema::structural::Structural;
use serde_json::{Value, json};

pub(super) const TARGET: Target = Target { name: "cel", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "self",
    "oldSelf",
    ".size()",
    ".all(x, ",
    ".exists(x, ",
    ".map(x, ",
    ".filter(x, ",
    "has(self.s)",
    " in ",
    " ? ",
    " : ",
    "&&",
    "||",
    "!",
    "==",
    "<=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "[0]",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "r'",
    "b'",
    "1u",
    "0x",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "null",
    "true",
    "duration('1s')",
    "timestamp('2024-01-01T00:00:00Z')",
    ".matches('a+')",
    "optional.of(1)",
    "quantity('1Gi')",
    "int(",
    "string(",
    "type(",
    ".?s",
    ".orValue(",
    "cel.bind(x, ",
];

const RULES: [&str; 10] = [
    "self.n < 5 && self.s.startsWith('a')",
    "self.l.all(x, x.size() > 1) || self.m.exists(k, self.m[k] == 'v')",
    "has(self.s) ? self.s.matches('^[a-z]+$') : false",
    "self.l.map(x, x + 'y').filter(x, x != 'ay').size() == 2",
    "self == oldSelf || self.n >= oldSelf.n",
    "duration('1h') > duration('59m') && timestamp('2024-01-01T00:00:00Z') < timestamp('2025-01-01T00:00:00Z')",
    "quantity('1Gi').isGreaterThan(quantity('1G')) && url('https://x.y/z').getHost() == 'x.y'",
    "self.?s.orValue('d') != '' && [1, 2, 3].sum() == 6 && {'a': 1}['a'] == 1",
    "self.n / 0 == 1 || self.n % 3 == 0 || -self.n == 9223372036854775807 + 1",
    "'%s has %d'.format([self.s, self.n]) == 'a has 1' && self.l.join(',').split(',').size() > 0",
];

fn seeds() -> Vec<Vec<u8>> {
    let objects =
        [r#"{"n":1,"s":"abc","l":["a","bc"],"m":{"k":"v"}}"#, r#"{"n":-9223372036854775808,"l":[]}"#];
    let all = RULES.iter().flat_map(|rule| objects.iter().map(move |object| (rule, object)));
    all.map(|(rule, object)| seed(b'!', &[rule.as_bytes(), object.as_bytes()])).collect()
}

fn check(input: &[u8]) {
    let Some((rule, object)) = input.get(1..).and_then(divide) else { return };
    let (Ok(rule), Ok(object)) = (std::str::from_utf8(rule), serde_json::from_slice::<Value>(object)) else {
        return;
    };
    let schema = Structural::compile(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "n": {"type": "integer"}, "s": {"type": "string"},
            "l": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    }}}));
    let object = json!({"apiVersion": "e.x/v1", "kind": "W", "metadata": {"name": "a"}, "spec": object});
    let result_of = |old: Option<&Value>| schema.validate(&object, old).to_string();
    assert_eq!(result_of(None), result_of(None), "evaluation is deterministic");
    assert_eq!(result_of(Some(&object)), result_of(Some(&object)), "evaluation is deterministic");
}
