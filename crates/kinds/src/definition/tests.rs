//! Definitions as they are read and served, names that conflict, and definitions of the field.

mod real;

use api::time::Time;
use serde_json::{Value, json};

use super::*;

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 3},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["wd"], "categories": ["all"],
            },
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"service": {"namespace": "ns", "name": "s", "path": "/convert"}},
                "conversionReviewVersions": ["v1"],
            }},
            "versions": [
                {"name": "v1beta1", "served": true, "deprecated": true},
                {"name": "v1alpha1", "served": true, "deprecated": true, "deprecationWarning": "go away"},
                {"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "description": "a \"widget\""}},
                    "subresources": {"status": {}, "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    }},
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "string", "jsonPath": ".spec.size", "priority": 1},
                    ],
                    "selectableFields": [{"jsonPath": ".spec.size"}],
                },
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    })
}

#[test]
fn a_later_state_is_read_as_if_it_were_the_first() {
    let states = [
        ("/status/conditions/0/status", json!("False")),
        ("/status/acceptedNames", json!({"plural": "widgets", "kind": "Widget"})),
        ("/metadata/labels", json!({"a": "]}"})),
        ("/metadata/generation", json!(4)),
        ("/spec/names/kind", json!("Gadget")),
        ("/spec/versions/2/schema/openAPIV3Schema/description", json!("another")),
        ("/spec/versions", json!([])),
    ];
    for (path, value) in states {
        let mut next = widgets();
        let (parent, field) = path.rsplit_once('/').unwrap();
        match next.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
            object => object[field] = value,
        }
        // A change of the spec is a new generation.
        if path.starts_with("/spec") {
            next["metadata"]["generation"] = json!(4);
        }
        let json = Bytes::from(serde_json::to_vec(&next).unwrap());
        let (read, known) = (Definition::parse(&json).unwrap(), Definition::read(&widgets()).unwrap());
        let next = known.parse_next(&json).unwrap();
        assert_eq!(format!("{next:?}"), format!("{read:?}"), "{path}");
        let schemas = next.versions.iter().filter_map(Version::schema_text);
        assert!(schemas.into_iter().all(|it| json.as_ptr_range().contains(&it.as_ptr())), "{path}");
    }
}

#[test]
fn a_definition_says_how_it_is_served() {
    let definition = Definition::read(&widgets()).unwrap();
    assert_eq!((definition.generation, definition.names.kind.as_str()), (3, "Widget"));
    assert!(definition.is_served() && definition.is_namespaced() && !definition.state.names_accepted);
    let deprecations: Vec<_> = definition.versions.iter().map(|it| it.deprecation.as_deref()).collect();
    let expected = "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget";
    assert_eq!(deprecations, [Some(expected), Some("go away"), None]);
    let v1 = definition.storage_version().unwrap();
    assert_eq!(v1.schema(), Some(json!({"type": "object", "description": "a \"widget\""})));
    assert_eq!(definition.version("v1beta1").unwrap().schema(), None);
    let Conversion::Webhook(webhook) = &definition.conversion else { panic!("it has a webhook") };
    let service = WebhookAddress::Service {
        namespace: "ns".into(),
        name: "s".into(),
        path: "/convert".into(),
        port: 443,
    };
    assert_eq!((&webhook.address, &*webhook.review_versions), (&service, &["v1".to_owned()][..]));
    let resource = definition.resource(v1);
    assert_eq!(
        resource.verbs,
        ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    );
    let subresources: Vec<_> =
        resource.subresources.iter().map(|it| (&*it.name, &*it.kind, &*it.group)).collect();
    assert_eq!(subresources, [("status", "Widget", "example.com"), ("scale", "Scale", "autoscaling")]);
    assert_eq!(resource.storage.unwrap().prefix, "example.com/widgets");
    assert_eq!((&*resource.columns[0].name, resource.columns[0].priority), ("Size", 1));
}

#[test]
fn a_definition_that_goes_takes_nothing_new() {
    let mut object = widgets();
    condition::set(&mut object["status"], &condition::Condition::deletion_pending(), Time::ZERO);
    let definition = Definition::read(&object).unwrap();
    let resource = definition.resource(&definition.versions[0]);
    assert_eq!(resource.verbs, ["delete", "deletecollection", "get", "list", "watch"]);
}

#[test]
fn what_is_no_definition_is_no_definition() {
    for object in [json!({}), json!({"spec": {"versions": [{}]}}), json!({"metadata": {}})] {
        assert!(Definition::read(&object).unwrap().versions.iter().all(|it| !it.served), "{object}");
    }
    for object in [json!({"metadata": 1}), json!({"spec": {"versions": {}}}), json!({"spec": 5})] {
        assert!(Definition::read(&object).is_err(), "{object}");
    }
}

fn named(plural: &str, kind: &str, short: &[&str]) -> Value {
    let names = json!({
        "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
        "shortNames": short,
    });
    json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": {"group": "example.com", "names": names}})
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// What definitions of one group have got.
fn in_use(definitions: &[&Value]) -> InUse {
    let mut in_use = InUse::default();
    for definition in definitions {
        in_use.add(&Definition::read(definition).unwrap().accepted);
    }
    in_use
}

/// The conditions as `type=status reason`, and the names that it got.
fn told(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    let mut told: Vec<_> = conditions
        .map(|it| format!("{}={} {}", text(it, "type"), text(it, "status"), text(it, "message")))
        .collect();
    let names = &status["acceptedNames"];
    told.push(["plural", "singular", "kind", "listKind"].map(|field| text(names, field)).join(" "));
    told.join("; ")
}

#[test]
fn the_first_definition_gets_the_name() {
    let now = time("2026-11-15T09:30:00Z");
    let mut first = named("widgets", "Widget", &["wd"]);
    first["status"] = accept(&first, &InUse::default(), now);
    let expected = json!({
        "acceptedNames": first["spec"]["names"],
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2026-11-15T09:30:00Z",
                "reason": "NoConflicts", "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": "2026-11-15T09:30:00Z",
                "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
        ],
    });
    assert_eq!(first["status"], expected);
    assert_eq!(
        accept(&first, &InUse::default(), time("2026-11-15T10:00:00Z")),
        expected,
        "nothing is left to do"
    );
    let other_group = {
        let mut other = named("widgets", "Widget", &["wd"]);
        other["spec"]["group"] = "example.org".into();
        other
    };
    for (definition, expected) in [
        (
            named("gadgets", "Gadget", &["gd"]),
            "NamesAccepted=True no conflicts found; Established=True the initial names have been accepted; \
             gadgets gadget Gadget GadgetList",
        ),
        (
            named("gadgets", "Widget", &[]),
            "NamesAccepted=False \"WidgetList\" is already in use; Established=False not all names are accepted; \
             gadgets   ",
        ),
        (
            named("gadgets", "Gadget", &["wd", "gd", "widget"]),
            "NamesAccepted=False [\"wd\" is already in use, \"widget\" is already in use]; Established=False not all \
             names are accepted; gadgets gadget Gadget GadgetList",
        ),
        (
            other_group,
            "NamesAccepted=True no conflicts found; Established=True the initial names have been accepted; \
             widgets widget Widget WidgetList",
        ),
    ] {
        let in_use = match definition["spec"]["group"] == first["spec"]["group"] {
            true => in_use(&[&first]),
            false => InUse::default(),
        };
        assert_eq!(told(&accept(&definition, &in_use, now)), expected);
    }
}

#[test]
fn a_name_that_becomes_free_is_taken() {
    let mut late = named("gadgets", "Widget", &[]);
    let mut first = named("widgets", "Widget", &[]);
    first["status"] = accept(&first, &InUse::default(), time("2026-11-15T09:30:00Z"));
    late["status"] = accept(&late, &in_use(&[&first]), time("2026-11-15T09:31:00Z"));
    assert!(!condition::is_true(&late["status"], condition::NAMES_ACCEPTED));
    let status = accept(&late, &InUse::default(), time("2026-11-15T09:32:00Z"));
    assert!(condition::is_true(&status, condition::ESTABLISHED));
    let since = &condition::find(&status, condition::ESTABLISHED).unwrap()["lastTransitionTime"];
    assert_eq!(since, "2026-11-15T09:32:00Z");
}

#[test]
fn names_are_free_once_no_definition_has_them() {
    let mut first = named("widgets", "Widget", &["widgets"]);
    first["status"] = accept(&first, &InUse::default(), Time::ZERO);
    let accepted = Definition::read(&first).unwrap().accepted;
    let mut names = in_use(&[&first, &first]);
    for is_free in [false, true] {
        names.remove(&accepted);
        assert_eq!(names.is_empty(), is_free);
        assert_eq!(names.has_resource("widgets"), !is_free);
        assert_eq!(names.has_kind("WidgetList"), !is_free);
    }
}

#[test]
fn a_definition_is_settled_when_nothing_is_left_to_do() {
    let settled = |change: &dyn Fn(&mut Value)| {
        let mut definition = named("widgets", "Widget", &["wd"]);
        definition["status"] = accept(&definition, &InUse::default(), Time::ZERO);
        change(&mut definition);
        let is_settled = Definition::read(&definition).unwrap().state.settled;
        let is_done = accept(&definition, &InUse::default(), Time::ZERO) == definition["status"];
        assert!(is_done || !is_settled, "{definition}");
        is_settled
    };
    assert!(settled(&|_| {}));
    assert!(!settled(&|it| it["status"] = json!({})));
    assert!(!settled(&|it| it["spec"]["names"]["shortNames"] = json!(["w"])));
    assert!(!settled(&|it| it["spec"]["preserveUnknownFields"] = true.into()));
    assert!(!settled(&|it| it["spec"]["group"] = "example.k8s.io".into()));
    assert!(!settled(&|it| condition::set(
        &mut it["status"],
        &condition::Condition::deletion_pending(),
        Time::ZERO
    )));
    assert!(!settled(&|it| condition::set(
        &mut it["status"],
        &condition::Condition::new(condition::NON_STRUCTURAL, "True", "Violations", ""),
        Time::ZERO
    )));
}

#[test]
fn groups_of_the_community_tell_who_approved() {
    for (annotation, expected) in [
        (
            "",
            "KubernetesAPIApprovalPolicyConformant=False protected groups must have approval annotation \
              \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ),
        (
            "https://github.com/x/y/pull/1",
            "KubernetesAPIApprovalPolicyConformant=True approved in \
              https://github.com/x/y/pull/1",
        ),
        (
            "unapproved, why not",
            "KubernetesAPIApprovalPolicyConformant=False not approved: \"unapproved, why not\"",
        ),
        (
            "sure",
            "KubernetesAPIApprovalPolicyConformant=False protected groups must have approval annotation \
              \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see \
              https://github.com/kubernetes/enhancements/pull/1111",
        ),
    ] {
        let mut definition = named("widgets", "Widget", &[]);
        definition["spec"]["group"] = "example.k8s.io".into();
        definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": annotation});
        let told = told(&accept(&definition, &InUse::default(), Time::ZERO));
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn schemas_from_before_are_told_of() {
    let mut definition = named("widgets", "Widget", &[]);
    definition["spec"]["preserveUnknownFields"] = true.into();
    definition["spec"]["versions"] = json!([{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {}}}}}]);
    let status = accept(&definition, &InUse::default(), Time::ZERO);
    let message = &condition::find(&status, condition::NON_STRUCTURAL).unwrap()["message"];
    assert_eq!(
        message,
        "[spec.preserveUnknownFields: Invalid value: true: must be false, \
         spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for \
         specified object fields]"
    );
    definition["status"] = status;
    definition["spec"]["preserveUnknownFields"] = false.into();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "string"});
    let status = accept(&definition, &InUse::default(), Time::ZERO);
    assert_eq!(condition::find(&status, condition::NON_STRUCTURAL), None);
}
