//! Stories of definitions: dry runs of changed ones, and one that is created, changed and deleted.

use super::{
    mutate::{Wildness, mutate},
    reads,
    subject::{Shape, Subject, define, definitions},
};
use crate::{
    draw::Draw,
    json::Json,
    story::{Body, PROTOBUF, Request, Story, YAML},
};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SCHEMA_CHANGES: [(&str, &str); 16] = [
    ("type", r#""string""#),
    ("type", "null"),
    ("nullable", "true"),
    ("default", r#"{"spec":{"size":1}}"#),
    ("x-kubernetes-preserve-unknown-fields", "true"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-int-or-string", "true"),
    ("x-kubernetes-list-type", r#""map""#),
    ("x-kubernetes-map-type", r#""granular""#),
    ("additionalProperties", "true"),
    ("required", r#"["spec","missing"]"#),
    ("x-kubernetes-validations", r#"[{"rule":"self.spec.size > 1"}]"#),
    ("x-kubernetes-validations", r#"[{"rule":"self.nothing == 1","message":"m"},{"rule":"1 +"}]"#),
    ("allOf", r#"[{"required":["spec"]}]"#),
    ("pattern", r#""[""#),
    ("$ref", r##""#/definitions/x""##),
];

pub(super) fn story(draw: &mut Draw) -> Story {
    if draw.one_in(3) { made(draw) } else { dry_runs(draw) }
}

/// A definition of the pool, in a group of this run.
fn renamed(draw: &mut Draw) -> Json {
    let mut definition = definitions()[draw.below(definitions().len())].clone();
    let plural = definition.text_at(&["spec", "names", "plural"]).unwrap_or_default();
    definition.set_at(&["metadata", "name"], Json::text(&format!("{plural}.{{id}}.example.com")));
    definition.set_at(&["spec", "group"], Json::text("{id}.example.com"));
    definition.set_at(&["metadata", "labels", "story"], Json::text("{id}"));
    definition
}

fn dry_runs(draw: &mut Draw) -> Story {
    let mut steps = Vec::new();
    for _ in 0..6 {
        let definition = changed(renamed(draw), draw);
        let request = Request::new("POST", PATH).query("dryRun=All");
        let request = match draw.below(5) {
            0 => request.body(YAML, Body::Yaml(definition)),
            1 => request.body(PROTOBUF, Body::Protobuf(definition)),
            _ => request.json(definition),
        };
        steps.push(request.compared());
    }
    Story { theme: "definitions", setup: Vec::new(), steps, cleanup: Vec::new() }
}

fn changed(mut definition: Json, draw: &mut Draw) -> Json {
    if draw.one_in(2) {
        let (name, value) = draw.pick(&SCHEMA_CHANGES);
        let way: &[&str] = draw.pick(&[
            &["schema", "openAPIV3Schema"] as &[&str],
            &["schema", "openAPIV3Schema", "properties", "spec"],
            &["schema", "openAPIV3Schema", "properties", "metadata"],
        ]);
        if let Some(Json::List(versions)) =
            definition.get_mut("spec").and_then(|spec| spec.get_mut("versions"))
            && let Some(version) = versions.first_mut()
        {
            let mut path = way.to_vec();
            path.push(name);
            version.set_at(&path, Json::literal(value));
        }
        return definition;
    }
    let Some((of, _)) = kinds::types().kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition") else {
        return definition;
    };
    let subject = Subject {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespaced: false,
        content: Json::Null,
        changeable: true,
        subresources: Vec::new(),
        shape: Shape::BuiltIn(of),
    };
    mutate(&mut definition, &subject, Wildness::Wild, draw);
    definition
}

fn made(draw: &mut Draw) -> Story {
    let definition = renamed(draw);
    let name = definition.text_at(&["metadata", "name"]).unwrap_or_default();
    let path = format!("{PATH}/{name}");
    let setup = define(&definition);
    let mut steps = vec![
        Request::new("GET", path.clone()).accept(reads::object_form(draw)).compared(),
        Request::new("GET", PATH)
            .query("labelSelector=story%3D{id}")
            .accept(reads::object_form(draw))
            .compared(),
        Request::new("GET", "/apis/{id}.example.com").compared(),
    ];
    for _ in 0..3 {
        let patch = draw.pick(&[
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"spec":{"names":{"shortNames":["q{id}"]}}}"#,
            r#"{"spec":{"scope":"Cluster"}}"#,
            r#"{"spec":{"group":"other.example.com"}}"#,
            r#"{"spec":{"versions":[]}}"#,
            r#"{"spec":{"preserveUnknownFields":true}}"#,
        ]);
        let patch = Body::Json(Json::literal(patch));
        steps.push(
            Request::new("PATCH", path.clone())
                .query("dryRun=All")
                .body(super::writes::MERGE, patch)
                .compared(),
        );
    }
    let cleanup = vec![Request::new("DELETE", path).uncompared()];
    Story { theme: "definitions", setup, steps, cleanup }
}
