//! The language against Kubernetes: messages, types, estimates, values and costs.
//!
//! The tables in `language/` hold an expression, then the results of Kubernetes 1.36 indented below it.

use expression::{Env, NoSizes, Type, Value, time::parse_timestamp, value::view};
use serde_json::json;

/// Kubernetes: the most that one expression may cost.
const BUDGET: u64 = 1_000_000;

fn env() -> Env {
    [
        ("x", Type::Dyn),
        ("i", Type::Int),
        ("u", Type::Uint),
        ("d", Type::Double),
        ("s", Type::String),
        ("b", Type::Bool),
        ("y", Type::Bytes),
        ("ls", Type::list(Type::String)),
        ("li", Type::list(Type::Int)),
        ("ms", Type::map(Type::String, Type::String)),
        ("md", Type::map(Type::String, Type::Dyn)),
        ("t", Type::Timestamp),
        ("r", Type::Duration),
        ("oi", Type::optional(Type::Int)),
    ]
    .into_iter()
    .fold(Env::kubernetes(), |env, (name, ty)| env.with_variable(name, ty))
}

fn answer(env: &Env, source: &str) -> String {
    let checked = match env.compile(source) {
        Ok(checked) => checked,
        Err(issues) => return issues.to_string(),
    };
    let estimate = checked.estimate(&NoSizes);
    let types = format!("{}, estimated at {}..{}", checked.output_type(), estimate.min, estimate.max);
    let program = match checked.program() {
        Ok(program) => program,
        Err(error) => return format!("{types}\nno program: {error}"),
    };
    let object = json!({"a": {"b": 1}, "n": null, "l": [1, 2]});
    let (mixed, strings) = (json!({"k": 1, "l": [1, "two"]}), json!({"k": "v"}));
    let (letters, numbers) = (json!(["a", "b", "c"]), json!([3, 1, 2]));
    let bindings = [
        ("x", view(&object, None)),
        ("i", Value::Int(7)),
        ("u", Value::Uint(8)),
        ("d", Value::Double(2.5)),
        ("s", Value::string("hello")),
        ("b", Value::Bool(true)),
        ("y", Value::bytes(*b"abc")),
        ("ls", view(&letters, None)),
        ("li", view(&numbers, None)),
        ("ms", view(&strings, None)),
        ("md", view(&mixed, None)),
        ("t", Value::Timestamp(parse_timestamp("0001-01-01T00:00:00Z").unwrap())),
        ("r", Value::Duration(0)),
        ("oi", Value::some(Value::Int(5))),
    ];
    let run = program.run(&bindings, BUDGET);
    match run.outcome {
        Ok(value) => format!("{types}\n{}, at a cost of {}", expression::text::describe(&value), run.cost),
        Err(error) => format!("{types}\nfails at a cost of {}: {error}", run.cost),
    }
}

#[test]
fn the_language_has_the_results_of_kubernetes() {
    let env = env();
    let mut wrong = Vec::new();
    for table in [
        include_str!("language/syntax.txt"),
        include_str!("language/cost.txt"),
        include_str!("language/meaning.txt"),
        include_str!("language/random.txt"),
    ] {
        let mut lines = table.lines().peekable();
        while let Some(source) = lines.next() {
            let mut expected = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("    ")) {
                expected.push(&line[4..]);
            }
            let found = answer(&env, source);
            if found != expected.join("\n") {
                wrong.push(format!("{source}\n{found}\n  but should be\n{}\n", expected.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
