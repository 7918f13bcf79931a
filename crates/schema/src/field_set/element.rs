//! One step of a field path, its order among others, and how it reads in messages.

use std::cmp::Ordering;
use std::fmt;

use api::go;
use serde_json::{Number, Value};

/// One step from a container to something in it.
///
/// The order is that of kube-apiserver's sets: fields, then keys, then values, then indexes.
#[derive(Clone, Debug)]
pub enum Element {
    /// A field of an object or an entry of a map: `f:spec`.
    Field(Box<str>),
    /// The item of a list map whose keys have these values: `k:{"name":"main"}`.
    Key(Key),
    /// The item of a list set: `v:"example.com/a"`.
    Value(Value),
    /// The item at an index, for lists without keys: `i:0`.
    Index(i64),
}

/// The keys of an item in a list map, by name.
#[derive(Clone, Debug)]
pub struct Key(Box<[(Box<str>, Value)]>);

/// The way from the root of an object to a field: `.spec.containers[name="main"].image`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Element>);

impl Element {
    #[must_use]
    pub fn field(name: &str) -> Self {
        Element::Field(name.into())
    }
}

impl Key {
    /// Sorts the parts by name; parts of the same name keep their order.
    #[must_use]
    pub fn new(mut parts: Vec<(Box<str>, Value)>) -> Self {
        parts.sort_by(|(left, _), (right, _)| left.cmp(right));
        Key(parts.into())
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl Path {
    #[must_use]
    pub fn of_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Path(names.into_iter().map(Element::field).collect())
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Field(left), Element::Field(right)) => left.cmp(right),
            (Element::Key(left), Element::Key(right)) => left.cmp(right),
            (Element::Value(left), Element::Value(right)) => compare_values(left, right),
            (Element::Index(left), Element::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = self.iter().zip(other.iter());
        let differing = parts
            .map(|(left, right)| left.0.cmp(right.0).then_with(|| compare_values(left.1, right.1)))
            .find(|order| order.is_ne());
        differing.unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

macro_rules! equal_by_order {
    ($($ordered:ty)*) => {
        $(
            impl PartialOrd for $ordered {
                fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                    Some(self.cmp(other))
                }
            }
            impl PartialEq for $ordered {
                fn eq(&self, other: &Self) -> bool {
                    self.cmp(other).is_eq()
                }
            }
            impl Eq for $ordered {}
        )*
    };
}
equal_by_order!(Element Key);

/// kube-apiserver's order of values: numbers by size, whole or not, then strings, booleans, lists, objects
/// and null. Values that are equal in this order count as the same: 1 and 1.0 are.
pub(crate) fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| compare_values(left, right));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = left.iter().zip(right);
            let differing = pairs
                .map(|(left, right)| left.0.cmp(right.0).then_with(|| compare_values(left.1, right.1)))
                .find(|order| order.is_ne());
            differing.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => value_rank(left).cmp(&value_rank(right)),
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => {
            let (left, right) = (left.as_f64().unwrap_or_default(), right.as_f64().unwrap_or_default());
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(key) => {
                let parts: Vec<_> =
                    key.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
                write!(f, "[{}]", parts.join(","))
            }
            Element::Value(value) => write!(f, "[={}]", text(value)),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.to_string(),
            None => go::float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => go::quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        // Kubernetes: the entries of an object have nothing between them.
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(parts: &Value) -> Element {
        let parts = parts.as_object().unwrap().iter();
        Element::Key(Key::new(parts.map(|(name, value)| (name.as_str().into(), value.clone())).collect()))
    }

    #[test]
    fn elements_are_in_the_order_of_kube_apiserver() {
        let ascending = [
            Element::field("a"),
            Element::field("b"),
            key(&json!({"containerPort": 53, "protocol": "UDP"})),
            key(&json!({"containerPort": 443})),
            key(&json!({"containerPort": 443, "protocol": "TCP"})),
            key(&json!({"name": 1})),
            key(&json!({"name": "a"})),
            Element::Value(json!(-1)),
            Element::Value(json!(0.5)),
            Element::Value(json!(1)),
            Element::Value(json!(u64::MAX)),
            Element::Value(json!("1")),
            Element::Value(json!(false)),
            Element::Value(json!(true)),
            Element::Value(json!([1])),
            Element::Value(json!([1, 2])),
            Element::Value(json!({"a": 1})),
            Element::Value(json!({"a": 2})),
            Element::Value(json!({"a": 2, "b": 0})),
            Element::Value(json!(null)),
            Element::Index(-1),
            Element::Index(10),
        ];
        for (at, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(left.cmp(right), at.cmp(&other), "{left} and {right}");
            }
        }
    }

    #[test]
    fn integers_and_floats_of_one_value_are_equal() {
        assert_eq!(Element::Value(json!(1)), Element::Value(json!(1.0)));
        assert_eq!(key(&json!({"port": 80})), key(&json!({"port": 80.0})));
        assert_ne!(Element::Value(json!(1)), Element::Value(json!("1")));
    }

    #[test]
    fn paths_print_as_in_conflict_messages() {
        for (path, expected) in [
            (vec![], ""),
            (vec![Element::field("spec"), Element::field("a.b")], ".spec.a.b"),
            (vec![key(&json!({"port": 80, "name": "x\"y"}))], r#"[name="x\"y",port=80]"#),
            (vec![Element::Value(json!("v")), Element::Index(3)], r#"[="v"][3]"#),
            (
                vec![Element::Value(json!([1.5, true, null])), Element::Value(json!({"a": 1, "b": 2}))],
                "[=[1.5,true,null]][=a=1b=2]",
            ),
        ] {
            assert_eq!(Path(path).to_string(), expected);
        }
    }
}
