//! Writes to one object: creates, updates, all four patch types, applies, subresources, deletes.

use super::{
    mutate::{Wildness, mutate},
    reads,
    subject::Subject,
    value,
};
use crate::{
    draw::Draw,
    json::Json,
    story::{Body, JSON, PROTOBUF, Request, Step, YAML},
};

pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

const OPTIONS: [&str; 9] = [
    "dryRun=All",
    "fieldManager=me",
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "fieldValidation=Ignore",
    "pretty=false",
    "dryRun=Some",
    "fieldValidation=Wrong",
    "fieldManager=",
];
const MANAGERS: [&str; 3] = ["fieldManager=one", "fieldManager=two", "fieldManager=three"];

/// An object as the story last sent it.
#[derive(Clone, Debug)]
pub(super) struct Writer<'s> {
    pub(super) subject: &'s Subject,
    pub(super) letter: &'static str,
    pub(super) wildness: Wildness,
    object: Json,
}

impl<'s> Writer<'s> {
    pub(super) fn new(
        subject: &'s Subject,
        letter: &'static str,
        wildness: Wildness,
        draw: &mut Draw,
    ) -> Writer<'s> {
        let mut object = subject.object(letter);
        for _ in 0..draw.below(3) {
            mutate(&mut object, subject, wildness, draw);
        }
        object.remove("generateName");
        Writer { subject, letter, wildness, object }
    }

    fn changed(&mut self, draw: &mut Draw) -> Json {
        let mut object = self.object.clone();
        for _ in 0..=draw.below(2) {
            mutate(&mut object, self.subject, self.wildness, draw);
        }
        if self.wildness == Wildness::Tame || draw.one_in(2) {
            self.object = object.clone();
        }
        object
    }

    /// The next write, of any type.
    pub(super) fn next(&mut self, draw: &mut Draw) -> Step {
        let request = match draw.below(24) {
            0..2 => self.create(draw),
            2..6 => self.update(draw),
            6..9 => self.merge_patch(draw),
            9..11 => self.json_patch(draw),
            11..13 => self.strategic_patch(draw),
            13..17 => self.apply(draw),
            17..20 => self.subresource(draw),
            20..22 => self.finalizers(draw),
            _ => self.delete(draw),
        };
        self.finish(request, draw).compared()
    }

    fn finish(&self, mut request: Request, draw: &mut Draw) -> Request {
        // For a delete with a body, kube-apiserver reads the dry run from the body alone, and deletes.
        let is_delete_with_body = request.method == "DELETE" && request.body.json().is_some();
        if draw.one_in(5) && !is_delete_with_body {
            request = request.query(draw.pick(&OPTIONS));
        }
        if draw.one_in(4) {
            request = request.accept(reads::object_form(draw));
        }
        request.http2 = draw.one_in(3);
        request
    }

    /// JSON, YAML or protobuf.
    fn with_body(&self, request: Request, object: Json, draw: &mut Draw) -> Request {
        match draw.below(8) {
            0 | 1 => request.body(YAML, Body::Yaml(object)),
            2 | 3 if !self.subject.is_custom() => request.body(PROTOBUF, Body::Protobuf(object)),
            _ => request.body(JSON, Body::Json(object)),
        }
    }

    pub(super) fn create(&mut self, draw: &mut Draw) -> Request {
        let object = if draw.one_in(3) { self.changed(draw) } else { self.object.clone() };
        self.with_body(Request::new("POST", self.subject.collection()), object, draw)
    }

    /// The first write: in about half of the cases the object exists afterwards.
    pub(super) fn first(&mut self, draw: &mut Draw) -> Step {
        if draw.one_in(4) {
            return self.apply(draw).compared();
        }
        let object = self.object.clone();
        let request = self.with_body(Request::new("POST", self.subject.collection()), object, draw);
        self.finish(request, draw).compared()
    }

    fn update(&mut self, draw: &mut Draw) -> Request {
        let mut object = self.changed(draw);
        self.set_version(&mut object, draw);
        self.with_body(Request::new("PUT", self.subject.path(self.letter)), object, draw)
    }

    fn set_version(&self, object: &mut Json, draw: &mut Draw) {
        let key = self.subject.key(self.letter);
        match draw.below(8) {
            0 => {}
            1 => object.set_at(&["metadata", "resourceVersion"], Json::text(&format!("{{firstrv:{key}}}"))),
            2 => object.set_at(&["metadata", "uid"], Json::text(&format!("{{uid:{key}}}"))),
            _ => object.set_at(&["metadata", "resourceVersion"], Json::text(&format!("{{rv:{key}}}"))),
        }
    }

    fn merge_patch(&mut self, draw: &mut Draw) -> Request {
        let mut object = self.changed(draw);
        let patch = match draw.below(6) {
            0 => Json::literal(r#"{"metadata":{"labels":null}}"#),
            1 => {
                let mut patch = Json::Object(Vec::new());
                let name =
                    object.members().get(draw.below(object.members().len())).map(|(name, _)| name.clone());
                patch.set(&name.unwrap_or_default(), Json::Null);
                patch
            }
            2 => value::any(draw, 0),
            _ => {
                object.remove("apiVersion");
                object.remove("kind");
                object
            }
        };
        self.patch(MERGE, patch)
    }

    fn strategic_patch(&mut self, draw: &mut Draw) -> Request {
        let patch = match draw.below(6) {
            0 => Json::literal(r#"{"metadata":{"finalizers":["example.com/three"]}}"#),
            1 => Json::literal(r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/one"]}}"#),
            2 => Json::literal(r#"{"metadata":{"labels":{"$patch":"replace","n":"1"}}}"#),
            3 => Json::literal(
                r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"n","image":"x"}]}}}}"#,
            ),
            _ => {
                let mut object = self.changed(draw);
                object.remove("apiVersion");
                object.remove("kind");
                object
            }
        };
        self.patch(STRATEGIC, patch)
    }

    fn json_patch(&mut self, draw: &mut Draw) -> Request {
        let paths = [
            "/metadata/labels/a",
            "/metadata/labels",
            "/data/k",
            "/spec",
            "/spec/x",
            "/metadata/finalizers/-",
            "/metadata/finalizers/0",
            "/metadata/annotations/x~1y",
            "",
            "/kind",
            "/spec/replicas",
            "spec",
        ];
        let mut operations = Vec::new();
        for _ in 0..=draw.below(3) {
            let mut operation = Json::Object(Vec::new());
            let op = draw.pick(&["add", "replace", "remove", "test", "copy", "move", "add", "wrong"]);
            operation.set("op", Json::text(op));
            operation.set("path", Json::text(draw.pick(&paths)));
            match op {
                "copy" | "move" => operation.set("from", Json::text(draw.pick(&paths))),
                "remove" => {}
                _ => operation.set("value", value::any(draw, 1)),
            }
            operations.push(operation);
        }
        self.patch(JSON_PATCH, Json::List(operations))
    }

    fn patch(&self, content_type: &str, patch: Json) -> Request {
        Request::new("PATCH", self.subject.path(self.letter)).body(content_type, Body::Json(patch))
    }

    pub(super) fn apply(&mut self, draw: &mut Draw) -> Request {
        let mut object = self.changed(draw);
        if draw.one_in(3) {
            // Members that this manager no longer lists are removed.
            let names: Vec<_> = object.members().iter().map(|(name, _)| name.clone()).collect();
            let name = names[draw.below(names.len())].clone();
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                object.remove(&name);
            }
        }
        let request = self.patch(APPLY, object).query(draw.pick(&MANAGERS));
        if draw.one_in(2) { request.query("force=true") } else { request }
    }

    fn finalizers(&mut self, draw: &mut Draw) -> Request {
        let list = draw.pick(&["[]", "null", r#"["example.com/one"]"#, r#"["example.com/two"]"#]);
        if draw.one_in(3) {
            let mut object = self.subject.object(self.letter);
            object.set_at(&["metadata", "finalizers"], Json::literal(list));
            return self.patch(APPLY, object).query(draw.pick(&MANAGERS)).query("force=true");
        }
        self.patch(MERGE, Json::literal(&format!(r#"{{"metadata":{{"finalizers":{list}}}}}"#)))
    }

    fn subresource(&mut self, draw: &mut Draw) -> Request {
        let usable: Vec<_> = self
            .subject
            .subresources
            .iter()
            .filter(|name| {
                matches!(
                    name.as_str(),
                    "status" | "scale" | "finalize" | "ephemeralcontainers" | "resize" | "approval"
                )
            })
            .collect();
        if usable.is_empty() {
            return self.update(draw);
        }
        let name = usable[draw.below(usable.len())].clone();
        let name = name.as_str();
        let path = format!("{}/{name}", self.subject.path(self.letter));
        if draw.one_in(4) {
            return Request::new("GET", path).accept(reads::object_form(draw));
        }
        if name == "scale" {
            return scale(path, &self.subject.name(self.letter), draw);
        }
        let mut object = self.changed(draw);
        if name == "status" && draw.one_in(2) {
            object.set("status", Json::literal(draw.pick(&STATUSES)));
        }
        match draw.below(4) {
            0 => Request::new("PATCH", path).body(MERGE, Body::Json(object)),
            1 => Request::new("PATCH", path)
                .body(APPLY, Body::Json(object))
                .query(draw.pick(&MANAGERS))
                .query("force=true"),
            _ => {
                self.set_version(&mut object, draw);
                self.with_body(Request::new("PUT", path), object, draw)
            }
        }
    }

    pub(super) fn delete(&mut self, draw: &mut Draw) -> Request {
        let key = self.subject.key(self.letter);
        let request = Request::new("DELETE", self.subject.path(self.letter));
        let preconditions =
            format!(r#"{{"preconditions":{{"uid":"{{uid:{key}}}","resourceVersion":"{{rv:{key}}}"}}}}"#);
        let stale = format!(r#"{{"preconditions":{{"resourceVersion":"{{firstrv:{key}}}"}}}}"#);
        let mut options = match draw.below(12) {
            0 => return request.query("propagationPolicy=Foreground"),
            1 => return request.query("gracePeriodSeconds=0"),
            2 => return request.query("dryRun=All"),
            3 => Json::literal(&preconditions),
            4 => Json::literal(&stale),
            5 => Json::literal(r#"{"propagationPolicy":"Orphan"}"#),
            6 => Json::literal(r#"{"gracePeriodSeconds":0,"propagationPolicy":"Background"}"#),
            7 => Json::literal(r#"{"dryRun":["All"]}"#),
            8 => Json::literal(draw.pick(&[
                r#"{"gracePeriodSeconds":-1}"#,
                r#"{"propagationPolicy":"Wrong"}"#,
                r#"{"unknown":1}"#,
                r#"{"orphanDependents":true}"#,
                r#"{"preconditions":{"uid":"x"}}"#,
            ])),
            _ => return request,
        };
        let named = draw.pick(&["", "v1", "meta.k8s.io/v1", "same"]);
        if !named.is_empty() {
            let api_version = if named == "same" { self.subject.api_version() } else { named.to_owned() };
            options.set("apiVersion", Json::text(&api_version));
            options.set("kind", Json::text("DeleteOptions"));
        }
        match draw.below(6) {
            0 => request.body(YAML, Body::Yaml(options)),
            1 if !named.is_empty() => request.body(PROTOBUF, Body::Protobuf(options)),
            _ => request.body(JSON, Body::Json(options)),
        }
    }

    /// The objects whose events end a watch with any of the selectors.
    pub(super) fn last(subject: &Subject) -> [Step; 2] {
        let mut labelled = subject.object("zz-last");
        labelled.set_at(&["metadata", "labels", "a"], Json::text("1"));
        [labelled, subject.object("zz-last-too")]
            .map(|object| Request::new("POST", subject.collection()).json(object).uncompared())
    }
}

const STATUSES: [&str; 6] = [
    r#"{"replicas":2}"#,
    r#"{"phase":"Running"}"#,
    r#"{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m","lastTransitionTime":"2001-01-01T00:00:00Z"}]}"#,
    r#"{"observedGeneration":1}"#,
    "{}",
    "null",
];

fn scale(path: String, name: &str, draw: &mut Draw) -> Request {
    let replicas = draw.pick(&["0", "1", "4", "-1", "null"]);
    let body = format!(
        r#"{{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{{"name":"{name}"}},"spec":{{"replicas":{replicas}}}}}"#
    );
    let body = Json::literal(&body);
    match draw.below(3) {
        0 => Request::new("PUT", path).json(body),
        1 => Request::new("PATCH", path).body(MERGE, Body::Json(body)),
        _ => {
            Request::new("PATCH", path).body(APPLY, Body::Json(body)).query("fieldManager=scaler&force=true")
        }
    }
}
