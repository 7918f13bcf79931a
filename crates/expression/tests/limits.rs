//! Nothing that an author writes may exhaust the stack, the budget or patience.

use expression::{Env, NoSizes, Type, Value};
use proptest::prelude::*;

const BUDGET: u64 = 100_000;

fn env() -> Env {
    Env::kubernetes()
        .with_variable("x", Type::Dyn)
        .with_variable("i", Type::Int)
        .with_variable("s", Type::String)
        .with_variable("li", Type::list(Type::Int))
}

/// Everything that can be done with a source; the text of what came out.
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
        let thread = std::thread::Builder::new().stack_size(3 << 19);
        thread.spawn_scoped(scope, || try_out(source)).unwrap().join().unwrap()
    })
}

#[test]
fn deep_nesting_is_refused_before_the_stack_ends() {
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
        for times in [10, 40, 62, 82, 124, 200, 249, 260, 1_000] {
            let source = shape(times);
            let text = on_a_small_stack(&source);
            let refused = text.contains("expression recursion limit exceeded: 250");
            assert!(refused || times < 505, "{} × {times}: {text:.200}", shape(1));
            assert!(!refused || times > 40, "{} × {times}: {text:.200}", shape(1));
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
    let source = "[0,1,2,3,4,5,6,7,8,9].map(a, li.map(b, li.map(c, a))).size()";
    let checked = env().compile(source).unwrap();
    let numbers: Vec<Value<'_>> = (0..100).map(Value::Int).collect();
    let run = checked.program().unwrap().run(&[("li", Value::list(numbers))], 10_000_000);
    assert_eq!(expression::text::describe(&run.outcome.unwrap()), "10");
}

/// Pieces of expressions, more often right than random text is.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "1", "-", "+", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",", ".", "?", ":", "!", "&&", "||", "==", "<", "in",
        "x", "i", "s", "li", "'a'", "\"b", "b'c'", "r'\\d'", "1u", "0x1F", "1.5", "true", "null", ".all(e, ", ".map(e, ",
        ".exists(a, b, ", ".transformMap(k, v, ", "has(x.a)", "has(", ".?a", "[?0]", "optional.of(", ".orValue(", "size(",
        "int(", "string(", "type(", "timestamp('2020-01-01T00:00:00Z')", "duration('1h')", ".matches('", ".format([", "é",
        "\n", "\t", "//", "`", "\\", "Foo{a: 1}", ".a", ".b", "e", "k", "v",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,60}") {
        try_out(&text);
    }

    #[test]
    fn any_pieces_are_answered(pieces in prop::collection::vec(piece(), 0..25)) {
        try_out(&pieces.concat());
    }
}
