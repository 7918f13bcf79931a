//! No expression may exhaust the stack, the budget or the time.

use expression::{Bindings, Env, Error, NoSizes, Type, Value};
use proptest::prelude::*;

const BUDGET: u64 = 100_000;

fn env() -> Env {
    Env::kubernetes()
        .with_variable("x", Type::Dyn)
        .with_variable("i", Type::Int)
        .with_variable("s", Type::String)
        .with_variable("li", Type::list(Type::Int))
}

/// Compiles, estimates and runs a source; returns the text of the result.
fn try_out(source: &str) -> String {
    let checked = match env().compile(source) {
        Ok(checked) => checked,
        Err(issues) => return issues.to_string(),
    };
    let estimate = checked.estimate(&NoSizes);
    assert!(estimate.min <= estimate.max, "{source}");
    let program = match checked.program() {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let numbers: Vec<Value<'_>> = (0..50).map(Value::Int).collect();
    let json = serde_json::json!({"a": {"b": 1}, "l": [1, 2], "n": null});
    let bindings = [
        ("x", expression::value::view(&json, None)),
        ("i", Value::Int(7)),
        ("s", Value::string("hello")),
        ("li", Value::list(numbers)),
    ];
    let run = program.run(&bindings, BUDGET);
    match run.outcome {
        Ok(value) => expression::text::describe(&value),
        Err(error) => error.to_string(),
    }
}

/// Half of what a thread of the server has.
fn on_a_small_stack(source: &str) -> String {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        thread.spawn_scoped(scope, || try_out(source)).unwrap().join().unwrap()
    })
}

#[test]
fn deep_nesting_is_rejected_before_the_stack_overflows() {
    let around = |open: &str, middle: &str, close: &str, times: usize| {
        format!("{}{middle}{}", open.repeat(times), close.repeat(times))
    };
    let shapes: [&(dyn Fn(usize) -> String + Sync); 17] = [
        &|times| around("(", "1", ")", times),
        &|times| around("[", "1", "]", times),
        &|times| around("{1: ", "1", "}", times),
        &|times| around("size([", "1", "])", times),
        &|times| around("!(", "true", ")", times),
        &|times| around("-(", "1", ")", times),
        &|times| around("true ? 1 : ", "1", "", times),
        &|times| around("x[", "0", "]", times),
        &|times| format!("x{}", ".a".repeat(times)),
        &|times| format!("1{}", " + 1".repeat(times)),
        &|times| format!("1{}", " == 1".repeat(times)),
        &|times| around("[1].all(y, ", "true", ")", times),
        &|times| around("[1].map(y, 1 + y + (", "1", ")[0])", times),
        &|times| around("optional.of(1).optMap(y, ", "1", ")", times),
        &|times| around("x.a[1 + 1 * x.b == 2 ? ", "0", " : {'a': [x.?c]}]", times),
        &|times| around("[true, !true || 1 + 1 == 2 ? x.a.b : x.map(e, x[", "0", "])[0]]", times),
        &|times| format!("{}1 + 1 == 1{}", "x[".repeat(times / 2), " + 1]".repeat(times / 2)),
    ];
    for shape in shapes {
        for times in [10, 20, 124, 260, 800] {
            let source = shape(times);
            let text = on_a_small_stack(&source);
            let refused = text.contains("expression recursion limit exceeded: 250");
            assert!(refused || times < 505, "{} × {times}: {text:.200}", shape(1));
            assert!(!refused || times > 20, "{} × {times}: {text:.200}", shape(1));
        }
    }
    assert!(try_out(&"a".repeat(100_001)).contains("expression code point size exceeds limit"));
    assert_eq!(try_out(&format!("true{}", " && true".repeat(9_000))), "true");
}

#[test]
fn loops_end_with_the_budget() {
    for source in [
        "li.all(a, li.all(b, li.all(c, li.all(d, a + b + c + d < 1000))))",
        "li.map(a, li.map(b, li.map(c, [a, b, c]))).size() > 0",
    ] {
        assert_eq!(try_out(source), "operation cancelled: actual cost limit exceeded", "{source}");
    }
}

#[test]
fn accumulators_grow_in_linear_time() {
    for source in ["li.map(a, a)", "li.filter(a, a >= 0)", "li.transformList(n, a, n + a)"] {
        let checked = env().compile(source).unwrap();
        let numbers: Vec<Value<'_>> = (0..30_000).map(Value::Int).collect();
        let run = checked.program().unwrap().run(&[("li", Value::list(numbers))], 10_000_000);
        let Ok(Value::List(list)) = run.outcome else { panic!("{source} gave no list") };
        assert_eq!(list.len(), 30_000, "{source}");
    }
}

#[test]
fn programs_go_to_any_thread() {
    fn anywhere<T: Send + Sync + Clone>(_: &T) {}
    anywhere(&env());
    anywhere(&env().compile("i > 1").unwrap().program().unwrap());
}

#[test]
fn a_variable_is_computed_only_when_it_is_used() {
    struct Policy;
    impl<'a> Bindings<'a> for Policy {
        fn find(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
            match name {
                "i" => Some(Ok(Value::Int(7))),
                "variables.limit" => Some(Ok(Value::Int(9))),
                other => Some(Err(Error::new(format!("{other} was asked for")))),
            }
        }
    }
    let env = env().with_variable("variables.limit", Type::Int).with_variable("variables.broken", Type::Int);
    for (source, expected, cost) in [
        ("i < variables.limit", "true", 4),
        ("i < 0 && variables.broken > 1", "false", 2),
        ("has(variables.limit) ? variables.limit : 0", "9", 1),
        ("variables.broken + 1", "variables.broken was asked for", 3),
    ] {
        let run = env.compile(source).unwrap().program().unwrap().run(&Policy, BUDGET);
        let text =
            run.outcome.map_or_else(|error| error.to_string(), |value| expression::text::describe(&value));
        assert_eq!((text.as_str(), run.cost), (expected, cost), "{source}");
    }
}

/// Pieces of expressions, more often valid than random text.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "1",
        "-",
        "+",
        "*",
        "/",
        "%",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        "?",
        ":",
        "!",
        "&&",
        "||",
        "==",
        "<",
        "in",
        "x",
        "i",
        "s",
        "li",
        "'a'",
        "\"b",
        "b'c'",
        "r'\\d'",
        "1u",
        "0x1F",
        "1.5",
        "true",
        "null",
        ".all(e, ",
        ".map(e, ",
        ".exists(a, b, ",
        ".transformMap(k, v, ",
        "has(x.a)",
        "has(",
        ".?a",
        "[?0]",
        "optional.of(",
        ".orValue(",
        "size(",
        "int(",
        "string(",
        "type(",
        "timestamp('2020-01-01T00:00:00Z')",
        "duration('1h')",
        ".matches('",
        ".format([",
        "é",
        "\n",
        "\t",
        "//",
        "`",
        "\\",
        "Foo{a: 1}",
        ".a",
        ".b",
        "e",
        "k",
        "v",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,60}") {
        try_out(&text);
    }

    #[test]
    fn any_pieces_are_answered(pieces in prop::collection::vec(piece(), 0..25)) {
        try_out(&pieces.concat());
    }
}
