//! Selectors against what Kubernetes' own code makes of the same texts.

use serde_json::json;

use super::*;

const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

#[test]
fn selectors_parse_and_print_as_in_kubernetes() {
    for (text, printed) in [
        ("", ""),
        (" \t\n", ""),
        ("b=c , a==1,!d", "a==1,b=c,!d"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x in (b,a,b)", "x in (a,b)"),
        ("x in (,)", "x in ()"),
        ("x=,y", "x=,y"),
        ("x>5,y<1", "x>5,y<1"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin", "notin"),
        ("! x", "!x"),
        ("x!=a", "x!=a"),
        ("example.com/x", "example.com/x"),
        ("a\0,b", "a,b"),
    ] {
        assert_eq!(
            text.parse::<Selector>().map(|selector| selector.to_string()),
            Ok(printed.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn bad_selectors_get_the_real_errors() {
    for (text, expected) in [
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("!!x", "unable to parse requirement: found '!', expected: identifier".to_owned()),
        ("x in front", "unable to parse requirement: found 'front' expected: '('".to_owned()),
        ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned()),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("x in (a,", "unable to parse requirement: found '', expected: ',', or identifier".to_owned()),
        ("x==!y", "unable to parse requirement: found '!', expected: identifier".to_owned()),
        ("!x=a", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("x,", "found '', expected: identifier after ','".to_owned()),
        ("x=a>", "found '>', expected: ',' or 'end of string'".to_owned()),
        (",x", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("_", format!("unable to parse requirement: <nil>: Invalid value: \"_\": name part {KEY}")),
        ("x=_", format!("unable to parse requirement: values[0][x]: Invalid value: \"_\": {VALUE}")),
        (
            "x>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must \
             be an integer"
                .to_owned(),
        ),
    ] {
        assert_eq!(text.parse::<Selector>().map_err(|bad| bad.to_string()), Err(expected), "{text}");
    }
}

#[test]
fn selectors_match_labels() {
    let labels = json!({"app": "web", "tier": "", "n": "7"});
    let labels = labels.as_object().unwrap();
    for (text, expected) in [
        ("", true),
        ("app=web", true),
        ("app==web,n", true),
        ("app!=web", false),
        ("absent!=web", true),
        ("absent notin (web)", true),
        ("absent=", false),
        ("tier=", true),
        ("app in (api,web)", true),
        ("app notin (api,web)", false),
        ("!absent,!app", false),
        ("n>6,n<8", true),
        ("n>7", false),
        ("app>1", false),
        ("absent<1", false),
    ] {
        assert_eq!(text.parse::<Selector>().unwrap().matches(labels), expected, "{text}");
    }
    assert!(!Selector::nothing().matches(labels));
    assert!(Selector::everything().matches(&None::<&Map<String, Value>>));
    let same = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    assert!(Selector::from_labels([("app", "web")]).matches(&same));
}

#[test]
fn an_exact_match_can_be_looked_up() {
    for (text, expected) in
        [("a=b", Some("b")), ("a in (b)", Some("b")), ("a in (b,c)", None), ("a!=b", None), ("c=b", None)]
    {
        assert_eq!(text.parse::<Selector>().unwrap().required_value("a"), expected, "{text}");
    }
}

fn object(value: Value) -> LabelSelector {
    serde_json::from_value(value).unwrap()
}

#[test]
fn object_forms_become_selectors() {
    let expression = |operator: &str, values: &[&str]| {
        object(json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}))
    };
    for (form, printed, expected) in [
        (object(json!({})), "<none>", Ok("".to_owned())),
        (
            object(json!({
                "matchLabels": {"b": "1", "a": "2"},
                "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["z", "y"]}]
            })),
            "a=2,a notin (y,z),b=1",
            Ok("a=2,a notin (y,z),b=1".to_owned()),
        ),
        (expression("Exists", &[]), "k", Ok("k".to_owned())),
        (expression("DoesNotExist", &[]), "!k", Ok("!k".to_owned())),
        (
            expression("Like", &[]),
            "<error>",
            Err("\"Like\" is not a valid label selector operator".to_owned()),
        ),
        (
            expression("In", &[]),
            "<error>",
            Err("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
                .to_owned()),
        ),
        (
            expression("Exists", &["a"]),
            "<error>",
            Err("values: Invalid value: [\"a\"]: values set must be empty for exists and does not exist"
                .to_owned()),
        ),
        (
            object(json!({"matchLabels": {"_": "b"}})),
            "<error>",
            Err(format!("key: Invalid value: \"_\": name part {KEY}")),
        ),
    ] {
        let parsed = form.to_selector().map(|selector| selector.to_string()).map_err(|bad| bad.to_string());
        assert_eq!((form.to_string().as_str(), parsed), (printed, expected));
    }
    assert!(LabelSelector::selector_of(None).unwrap().is_nothing());
    assert!(LabelSelector::selector_of(Some(&object(json!({})))).unwrap().is_everything());
}

#[test]
fn object_forms_are_checked_field_by_field() {
    let form = object(json!({
        "matchLabels": {"a": "_"},
        "matchExpressions": [
            {"key": "k", "operator": "In"},
            {"key": "k", "operator": "Exists", "values": ["v"]},
            {"key": "k", "operator": "Like", "values": ["_"]},
        ]
    }));
    let expected = [
        (Tolerance::None, vec!["labels", "required", "forbidden", "operator", "value"]),
        (Tolerance::InvalidValues, vec!["labels", "required", "forbidden", "operator"]),
        (Tolerance::UnknownOperators, vec!["labels", "required", "forbidden", "value"]),
    ];
    for (tolerance, names) in expected {
        let texts = names.into_iter().map(|name| match name {
            "labels" => format!("f.matchLabels: Invalid value: \"_\": {VALUE}"),
            "required" => {
                "f.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned()
            }
            "forbidden" => "f.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or \
                            'DoesNotExist'"
                .to_owned(),
            "operator" => "f.matchExpressions[2].operator: Invalid value: \"Like\": not a valid selector operator".to_owned(),
            _ => format!("f.matchExpressions[2].values[0]: Invalid value: \"_\": {VALUE}"),
        });
        let found = form.check(&Path::new("f"), tolerance);
        assert_eq!(found.iter().map(Error::to_string).collect::<Vec<_>>(), texts.collect::<Vec<_>>());
    }
    assert!(form.has_invalid_value());
}
