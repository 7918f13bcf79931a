//! Expressions with Kubernetes' results: type, estimated cost, and value and cost, or error.
//!
//! The tables are in `conformance/`: an expression, then the results of Kubernetes 1.36 indented below it.

use std::{fmt::Write as _, fs, path::Path, sync::Arc};

use expression::{
    Env, Sizes, Type, Value,
    cost::Range,
    library::{
        authorizer::{self, Authorizer, Decision, Question, Subject, Target},
        json_patch,
    },
    number::format_double,
    time::{format_duration, format_timestamp},
    value::{Key, Map, Text},
};

/// Kubernetes: the most that one expression may cost.
const BUDGET: u64 = 1_000_000;

/// Allows everything, with the check as its reason.
#[derive(Debug)]
struct Agreeable;

impl Authorizer for Agreeable {
    fn authorize(&self, question: &Question<'_>) -> Decision {
        let who = match question.subject {
            Subject::Caller => "bob".to_owned(),
            Subject::ServiceAccount { namespace, name } => {
                format!("system:serviceaccount:{namespace}:{name}")
            }
        };
        let verb = question.verb;
        let reason = match question.target {
            Target::Path(path) => format!("{who}|{verb}|false|||||||[]|<nil>||<nil>|{path}"),
            Target::Resource(of) => format!(
                "{who}|{verb}|true|{}|*|{}|{}|{}|{}|[]|<nil>||<nil>|",
                of.group, of.resource, of.subresource, of.namespace, of.name
            ),
        };
        Decision { allowed: true, reason, error: None }
    }
}

/// The known sizes of the variables.
struct Known;

impl Sizes for Known {
    fn size(&self, path: &[Arc<str>]) -> Option<Range> {
        let max = match path.join(".").as_str() {
            "s" | "ls.@items" => 12,
            "li" | "ls" | "ld" => 100,
            _ => return None,
        };
        Some(Range { min: 0, max })
    }
}

fn environment() -> Env {
    Env::kubernetes()
        .with_libraries(vec![json_patch::library()])
        .with_variable("authorizer", authorizer::authorizer_type())
        .with_variable("d", Type::Dyn)
        .with_variable("s", Type::String)
        .with_variable("i", Type::Int)
        .with_variable("li", Type::list(Type::Int))
        .with_variable("ls", Type::list(Type::String))
        .with_variable("ld", Type::list(Type::Dyn))
}

fn variables() -> [(&'static str, Value<'static>); 7] {
    let texts =
        |texts: &[&str]| Value::list(texts.iter().map(|text| Value::string(*text)).collect::<Vec<_>>());
    let mixed = |text| vec![Value::Int(1), Value::string(text)];
    let entries = [
        ("a", Value::Int(1)),
        ("s", Value::string("x")),
        ("l", Value::list(mixed("b"))),
        ("f", Value::list(vec![Value::Double(1.5), Value::Double(2.5)])),
        ("e", Value::list(Vec::new())),
    ];
    let entries = entries.map(|(key, value)| (Key::String(Text::Borrowed(key)), value));
    [
        ("authorizer", authorizer::authorizer_value(Arc::new(Agreeable))),
        ("d", Value::Map(Map::new(entries.into_iter().collect()))),
        ("s", Value::string("hello world")),
        ("i", Value::Int(7)),
        ("li", Value::list([3, 1, 2].map(Value::Int).to_vec())),
        ("ls", texts(&["c", "a", "b"])),
        ("ld", Value::list(mixed("a"))),
    ]
}

/// The results of one expression, as the tables have them.
fn answer(environment: &Env, source: &str) -> String {
    let mut out = String::from(source);
    let checked = match environment.compile(source) {
        Ok(checked) => checked,
        Err(issues) => {
            for line in issues.to_string().lines() {
                write!(out, "\n    {line}").unwrap();
            }
            return out;
        }
    };
    let Range { min, max } = checked.estimate(&Known);
    write!(out, "\n    {}, estimated at {min}..{max}", checked.output_type()).unwrap();
    let program = match checked.program() {
        Ok(program) => program,
        Err(error) => {
            write!(out, "\n    cannot run: {error}").unwrap();
            return out;
        }
    };
    let run = program.run(&variables(), BUDGET);
    match run.outcome {
        Ok(value) => write!(out, "\n    {}, at a cost of {}", show(&value), run.cost).unwrap(),
        Err(error) => write!(out, "\n    fails: {}", error.to_string().replace('\n', "\\n")).unwrap(),
    }
    out
}

fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("uint({value})"),
        Value::Double(value) => format!("double({})", format_double(*value)),
        Value::String(text) => api::go::quote(text),
        Value::Bytes(bytes) => format!("bytes({bytes:?})"),
        Value::Type(ty) => format!("type({})", ty.name()),
        Value::Duration(length) => format!("duration(\"{}\")", format_duration(*length)),
        Value::Timestamp(moment) => format!("timestamp(\"{}\")", format_timestamp(*moment)),
        Value::Optional(None) => "optional.none".to_owned(),
        Value::Optional(Some(value)) => format!("optional.of({})", show(value)),
        Value::List(list) => {
            let items: Vec<_> = list.iter().map(|item| show(&item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entry = |key: &Value<'_>| format!("{}: {}", show(key), show(&map.find(key).unwrap()));
            let mut entries: Vec<_> = map.keys().iter().map(entry).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn expressions_have_the_results_of_kubernetes() {
    let environment = environment();
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut wrong = String::new();
    for table in fs::read_dir(tables).unwrap() {
        let text = fs::read_to_string(table.unwrap().path()).unwrap();
        for expected in text.trim_end().split("\n\n") {
            let source = expected.lines().next().unwrap();
            let found = answer(&environment, source);
            if found != expected {
                write!(wrong, "{found}\n  should be\n{expected}\n\n").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{wrong}", wrong.matches("\n  should be\n").count());
}
