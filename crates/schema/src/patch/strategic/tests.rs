//! Objects and patches: one table for results and one for errors.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::patch::samples;
use crate::types::{Field, List, Map as MapNode, PatchStrategy, Type};

/// A type with every kind of list, and with a field of its own type.
fn items() -> (Types, TypeId) {
    let mut types = Types::default();
    let id = types.next_id();
    let list = |items| Node::List(Box::new(List::atomic(items)));
    let strategy = |field, patch| Field { patch, ..field };
    let keyed = |field| Field { merge_key: Some("name".into()), patch: PatchStrategy::Merge, ..field };
    let strings = Node::Map(Box::new(MapNode { values: Node::String, atomic: false }));
    let lists = Node::Map(Box::new(MapNode { values: list(Node::String), atomic: false }));
    types.add(Type::new(
        "example.Item",
        vec![
            Field::new("name", Node::String),
            Field::new("value", Node::String),
            keyed(Field::new("merged", list(Node::Object(id)))),
            Field::new("replaced", list(Node::Object(id))),
            strategy(Field::new("unkeyed", list(Node::Object(id))), PatchStrategy::Merge),
            strategy(Field::new("set", list(Node::Int64)), PatchStrategy::Merge),
            Field::new("numbers", list(Node::Int64)),
            strategy(Field::new("union", Node::Object(id)), PatchStrategy::RetainKeys),
            strategy(Field::new("whole", Node::Object(id)), PatchStrategy::ReplaceWhole),
            Field::new("map", strings),
            Field::new("lists", lists),
            Field::new("raw", Node::Raw),
        ],
    ));
    (types, id)
}

fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let (types, of) = items();
    apply(&types, of, document.clone(), patch.clone())
}

#[test]
fn objects_merge_as_on_kube_apiserver() {
    for (document, patch, expected) in [
        (json!({"value": "x"}), json!(null), json!({"value": "x"})),
        (json!({"value": "x"}), json!({"value": null, "name": null}), json!({})),
        (
            json!({"map": {"a": "1", "b": "2"}}),
            json!({"map": {"a": null, "c": "3"}}),
            json!({"map": {"b": "2", "c": "3"}}),
        ),
        (json!({}), json!({"map": {"a": null}}), json!({"map": {}})),
        (
            json!({"whole": {"name": "a", "value": "1"}}),
            json!({"whole": {"value": "2"}}),
            json!({"whole": {"value": "2"}}),
        ),
        (
            json!({"map": {"a": "1"}}),
            json!({"map": {"$patch": "replace", "b": "2"}}),
            json!({"map": {"b": "2"}}),
        ),
        (json!({"map": {"a": "1"}}), json!({"map": {"$patch": "delete"}}), json!({"map": {}})),
        (json!({}), json!({"map": {"$patch": "delete"}}), json!({})),
        (json!({"value": "x"}), json!({"$patch": "replace", "name": "y"}), json!({"name": "y"})),
        (
            json!({"replaced": [{"name": "a"}]}),
            json!({"replaced": [{"name": "b"}]}),
            json!({"replaced": [{"name": "b"}]}),
        ),
        (json!({"numbers": [1, 2]}), json!({"numbers": [3]}), json!({"numbers": [3]})),
    ] {
        assert_eq!(patched(&document, &patch), Ok(expected), "{document} and {patch}");
    }
}

#[test]
fn lists_merge_in_the_order_of_kube_apiserver() {
    let abc = json!({"merged": [{"name": "a"}, {"name": "b", "value": "1"}, {"name": "c"}]});
    for (document, patch, expected) in [
        // New items come before the existing ones, in the order of the patch.
        (
            abc.clone(),
            json!({"merged": [{"name": "d"}, {"name": "b", "value": "2"}]}),
            json!({"merged": [{"name": "d"}, {"name": "a"}, {"name": "b", "value": "2"}, {"name": "c"}]}),
        ),
        (
            abc.clone(),
            json!({"merged": [{"name": "c"}, {"name": "a"}]}),
            json!({"merged": [{"name": "b", "value": "1"}, {"name": "c"}, {"name": "a"}]}),
        ),
        (
            abc.clone(),
            json!({"merged": [{"name": "b", "$patch": "delete"}, {"name": "d"}]}),
            json!({"merged": [{"name": "d"}, {"name": "a"}, {"name": "c"}]}),
        ),
        (
            abc.clone(),
            json!({"merged": [{"$patch": "replace"}, {"name": "d"}]}),
            json!({"merged": [{"name": "d"}]}),
        ),
        (abc.clone(), json!({"merged": []}), abc.clone()),
        (json!({"merged": []}), json!({"merged": []}), json!({"merged": []})),
        (
            json!({}),
            json!({"merged": [{"name": "a", "value": null}, {"name": "b", "$patch": "delete"}]}),
            json!({"merged": [{"name": "a"}]}),
        ),
        (
            abc.clone(),
            json!({"$setElementOrder/merged": [{"name": "c"}, {"name": "a"}]}),
            json!({"merged": [{"name": "b", "value": "1"}, {"name": "c"}, {"name": "a"}]}),
        ),
        (
            abc.clone(),
            json!({"$setElementOrder/merged": [{"name": "d"}, {"name": "a"}], "merged": [{"name": "d"}]}),
            json!({"merged": [{"name": "d"}, {"name": "a"}, {"name": "b", "value": "1"}, {"name": "c"}]}),
        ),
        (
            abc.clone(),
            json!({
                "$setElementOrder/merged": [{"name": "d"}, {"name": "a"}],
                "merged": [{"name": "d"}, {"name": "c", "$patch": "delete"}],
            }),
            json!({"merged": [{"name": "b", "value": "1"}, {"name": "d"}, {"name": "a"}]}),
        ),
        (json!({}), json!({"$setElementOrder/merged": []}), json!({})),
    ] {
        assert_eq!(patched(&document, &patch), Ok(expected), "{document} and {patch}");
    }
}

#[test]
fn sets_merge_in_the_order_of_kube_apiserver_and_unions_keep_what_is_listed() {
    for (document, patch, expected) in [
        (json!({"set": [1, 2, 3]}), json!({"set": [4, 2]}), json!({"set": [4, 1, 2, 3]})),
        (json!({"set": [1, 2, 3]}), json!({"$deleteFromPrimitiveList/set": [1, 3]}), json!({"set": [2]})),
        (
            json!({"numbers": [1, 2, 3]}),
            json!({"$deleteFromPrimitiveList/numbers": [1]}),
            json!({"numbers": [2, 3]}),
        ),
        (json!({}), json!({"$deleteFromPrimitiveList/set": [1]}), json!({})),
        (
            json!({"set": [1, 2, 3]}),
            json!({"$setElementOrder/set": [3, 4, 1], "set": [4]}),
            json!({"set": [2, 3, 4, 1]}),
        ),
        (
            json!({"union": {"name": "a", "value": "b"}}),
            json!({"union": {"$retainKeys": ["value"], "value": "c"}}),
            json!({"union": {"value": "c"}}),
        ),
        (
            json!({"union": {"name": "a", "value": "b"}}),
            json!({"union": {"$retainKeys": ["value"], "name": null}}),
            json!({"union": {"value": "b"}}),
        ),
        (
            json!({"raw": {"a": 1}}),
            json!({"raw": {"a": 2, "b": {"c": null}}}),
            json!({"raw": {"a": 2, "b": {}}}),
        ),
        (json!({"MAP": {"a": "1"}}), json!({"MAP": {"a": "2"}}), json!({"MAP": {"a": "2"}})),
    ] {
        assert_eq!(patched(&document, &patch), Ok(expected), "{document} and {patch}");
    }
}

#[test]
fn malformed_patches_are_rejected() {
    for (patch, expected) in [
        (json!([1]), "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (json!({"$retainKeys": "x"}), "invalid patch format of retainKeys"),
        (json!({"$retainKeys": ["name"], "value": "x"}), "invalid patch format of retainKeys"),
        (json!({"$setElementOrder": []}), "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveListset": [1]}), "invalid patch format of primitive list"),
    ] {
        assert_eq!(patched(&json!({}), &patch), Err(PatchError::Malformed(expected.into())), "{patch}");
    }
}

#[test]
fn patches_that_do_not_fit_the_type_are_rejected() {
    let document = json!({
        "merged": [{"name": "a"}], "unkeyed": [{}], "set": [1], "map": {"a": "1"}, "lists": {"a": ["x"]},
        "raw": {"a": {"b": 1}}, "other": {},
    });
    let unexpected = |text: &str| PatchError::Unexpected(text.into());
    for (patch, expected) in [
        (
            json!({"set": [[1]], "$patch": "zap"}),
            unexpected("unknown patch type: zap in map: map[$patch:zap set:[[1]]]"),
        ),
        (json!({"map": {"$patch": 1}}), unexpected("unknown patch type: %!s(int64=1) in map: map[$patch:1]")),
        (
            json!({"merged": [{"name": "a", "$patch": "zap"}]}),
            unexpected("unknown patch type: zap in map: map[$patch:zap name:a]"),
        ),
        (
            json!({"merged": [{"$patch": "merge"}]}),
            unexpected("merging lists cannot yet be specified in the patch"),
        ),
        (
            json!({"merged": [{"value": "x"}]}),
            unexpected("map: map[value:x] does not contain declared merge key: name"),
        ),
        (
            json!({"merged": [{"$patch": "delete"}]}),
            unexpected("map: map[$patch:delete] does not contain declared merge key: name"),
        ),
        (json!({"merged": ["a"]}), unexpected("list element types are not identical: [[map[name:a]] [a]]")),
        (json!({"unkeyed": [{"name": "a"}]}), unexpected("cannot merge lists without merge key for struct")),
        (
            json!({"$setElementOrder/merged": "x"}),
            unexpected("expected a []interface {}, but received a string"),
        ),
        (
            json!({"$setElementOrder/merged": [{"name": "b"}], "merged": null}),
            unexpected("expected a []interface {}, but received a %!s(<nil>)"),
        ),
        (
            json!({"$setElementOrder/merged": [{"name": "b"}], "merged": [{"name": "c"}]}),
            unexpected(
                "The order in patch list:\n[map[name:c]]\n \
                 doesn't match $setElementOrder list:\n[map[name:b]]\n",
            ),
        ),
        (
            json!({"lists": {"a": ["y"]}}),
            unexpected("merging an object in json but data type is not struct, instead is: map"),
        ),
        (
            json!({"raw": {"a": {"c": 1}}}),
            unexpected("unable to find api field in struct RawExtension for the json field \"a\""),
        ),
        (
            json!({"other": {"a": 1}}),
            unexpected("unable to find api field in struct Item for the json field \"other\""),
        ),
        (
            json!({"$setElementOrder/map": [1]}),
            unexpected("expected a []interface {}, but received a map[string]interface {}"),
        ),
    ] {
        assert_eq!(patched(&document, &patch), Err(expected), "{patch}");
    }
    let lists = json!({"set": [[1]]});
    assert_eq!(patched(&lists, &lists), Err(PatchError::Unfit("lists of lists are not supported".into())));
}

proptest! {
    #[test]
    fn an_empty_patch_changes_nothing(document in samples::object()) {
        prop_assert_eq!(patched(&document, &json!({})), Ok(document));
    }

    #[test]
    fn no_patch_panics(document in samples::object(), patch in samples::object()) {
        let rename = |value: &Value| -> Value {
            let names = [("a", "merged"), ("b", "set"), ("c", "$setElementOrder/merged"), ("x/y", "$patch")];
            let quoted = |name: &str| format!("\"{name}\"");
            let renamed = names
                .iter()
                .fold(value.to_string(), |text, (from, to)| text.replace(&quoted(from), &quoted(to)));
            serde_json::from_str(&renamed).unwrap()
        };
        let _ = patched(&rename(&document), &rename(&patch));
    }
}

#[test]
fn deep_patches_fit_on_a_small_stack_and_deeper_ones_are_refused() {
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"union": inner}));
    let fits = nested(crate::depth::MAX_DEPTH - 1);
    assert_eq!(patched(&fits, &fits), Ok(fits));
    let deeper = nested(crate::depth::MAX_DEPTH);
    assert_eq!(patched(&json!({}), &deeper), Err(PatchError::Malformed("exceeded max depth".into())));
}
