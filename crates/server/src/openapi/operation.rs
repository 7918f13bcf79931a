//! One operation of a path: its id, parameters, bodies and responses.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::parameters::{self, DELETE, LIST, WRITE};
use super::schema_of::SCHEMAS;

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// A resource or subresource.
pub(super) struct OperationTarget<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// The kind of the resource.
    pub(super) kind: &'a str,
    /// Empty for the resource itself.
    pub(super) subresource: &'a str,
    /// Group, version and kind of the body.
    pub(super) content: (&'a str, &'a str, &'a str),
    /// Names of the schemas of the body, of its list, and of the response to a delete.
    pub(super) schema: String,
    pub(super) list_schema: String,
    pub(super) deleted_schema: Option<String>,
    pub(super) is_namespaced: bool,
    pub(super) is_custom: bool,
    pub(super) can_watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    List,
    ListEverywhere,
    Create,
    DeleteCollection,
    Read,
    Replace,
    Patch,
    Delete,
    /// A stream through the server, with this method.
    Connect(&'static str),
}

impl Action {
    pub(super) fn method(self) -> &'static str {
        match self {
            Action::List | Action::ListEverywhere | Action::Read => "get",
            Action::Create => "post",
            Action::Replace => "put",
            Action::Patch => "patch",
            Action::Delete | Action::DeleteCollection => "delete",
            Action::Connect(method) => method,
        }
    }

    /// `x-kubernetes-action`.
    fn name(self) -> &'static str {
        match self {
            Action::List | Action::ListEverywhere => "list",
            Action::DeleteCollection => "deletecollection",
            Action::Connect(_) => "connect",
            other => other.method(),
        }
    }

    fn parameters(self) -> BTreeSet<&'static str> {
        match self {
            Action::List | Action::ListEverywhere => LIST.into(),
            Action::Read => ["pretty"].into(),
            Action::Create | Action::Replace => WRITE.into(),
            Action::Patch => parameters::PATCH.into(),
            Action::Delete => DELETE.into(),
            Action::DeleteCollection => {
                let watching = ["allowWatchBookmarks", "watch"];
                LIST.into_iter().filter(|name| !watching.contains(name)).chain(DELETE).collect()
            }
            Action::Connect(_) => BTreeSet::new(),
        }
    }
}

impl OperationTarget<'_> {
    /// The keys of an operation's query parameters.
    pub(super) fn parameters(&self, action: Action) -> BTreeSet<&'static str> {
        match action {
            // Kubernetes: for custom resources these two have all options of the verb.
            Action::Read if self.is_custom => ["pretty", "resourceVersion"].into(),
            Action::DeleteCollection if self.is_custom => LIST.into(),
            Action::Read | Action::Connect(_) => {
                let own = parameters::of_subresource(self.subresource);
                action.parameters().into_iter().chain(own).collect()
            }
            _ => action.parameters(),
        }
    }

    /// The operation without its parameters.
    pub(super) fn operation(&self, action: Action) -> Value {
        let (group, version, kind) = self.content;
        let mut operation = json!({
            "description": self.description(action),
            "operationId": self.operation_id(action),
            "responses": self.responses(action),
            "tags": [format!("{}_{}", lower_first(&camel(self.group, self.is_custom)), self.version)],
            "x-kubernetes-action": action.name(),
            "x-kubernetes-group-version-kind": { "group": group, "kind": kind, "version": version },
        });
        if let Some(body) = self.request_body(action) {
            operation["requestBody"] = body;
        }
        operation
    }

    fn operation_id(&self, action: Action) -> String {
        let at = camel(self.group, self.is_custom) + &upper_first(self.version);
        let namespaced = if self.is_namespaced { "Namespaced" } else { "" };
        let what = format!("{namespaced}{}{}", self.kind, upper_first(self.subresource));
        match action {
            Action::ListEverywhere => format!("list{at}{}ForAllNamespaces", self.kind),
            Action::List => format!("list{at}{what}"),
            Action::Create => format!("create{at}{what}"),
            Action::DeleteCollection => format!("delete{at}Collection{what}"),
            Action::Read => format!("read{at}{what}"),
            Action::Replace => format!("replace{at}{what}"),
            Action::Patch => format!("patch{at}{what}"),
            Action::Delete => format!("delete{at}{what}"),
            Action::Connect(method) => format!("connect{at}{}{what}", upper_first(method)),
        }
    }

    fn description(&self, action: Action) -> String {
        let (kind, subresource) = (self.kind, self.subresource);
        let article = match kind {
            // Kubernetes: kinds that are plurals, such as Endpoints.
            _ if kind.ends_with('s') && !kind.ends_with("ss") => "",
            _ if kind.starts_with(['A', 'E', 'I', 'O', 'U']) => "an ",
            _ => "a ",
        };
        let specified = match subresource {
            "" => format!("the specified {kind}"),
            subresource => format!("{subresource} of the specified {kind}"),
        };
        let one = match subresource {
            "" => format!("{article}{kind}"),
            subresource => format!("{subresource} of {article}{kind}"),
        };
        match action {
            Action::List | Action::ListEverywhere if self.can_watch && !self.is_custom => {
                format!("list or watch objects of kind {kind}")
            }
            Action::List | Action::ListEverywhere => format!("list objects of kind {kind}"),
            Action::Create => format!("create {one}"),
            Action::DeleteCollection => format!("delete collection of {kind}"),
            Action::Read => format!("read {specified}"),
            Action::Replace => format!("replace {specified}"),
            Action::Patch => format!("partially update {specified}"),
            Action::Delete => format!("delete {one}"),
            Action::Connect(method) => {
                format!("connect {} requests to {subresource} of {kind}", method.to_uppercase())
            }
        }
    }

    fn responses(&self, action: Action) -> Value {
        let deleted = self.deleted_schema.as_deref().unwrap_or(STATUS);
        let (codes, schema): (&[&str], &str) = match action {
            Action::List | Action::ListEverywhere => (&["200"], &self.list_schema),
            Action::Read => (&["200"], &self.schema),
            Action::Create => (&["200", "201", "202"], &self.schema),
            Action::Patch if self.is_custom => (&["200"], &self.schema),
            Action::Replace | Action::Patch => (&["200", "201"], &self.schema),
            Action::Delete => (&["200", "202"], deleted),
            Action::DeleteCollection | Action::Connect(_) => (&["200"], STATUS),
        };
        let content = match action {
            Action::Connect(_) => json!({ "*/*": { "schema": { "type": "string" } } }),
            Action::Read if self.subresource == "log" => {
                json!({ "text/plain": { "schema": { "type": "string" } } })
            }
            _ => content(&self.media_types(action), schema),
        };
        let mut responses: Map<_, _> = codes
            .iter()
            .map(|code| {
                let description = match *code {
                    "201" => "Created",
                    "202" => "Accepted",
                    _ => "OK",
                };
                (code.to_string(), json!({ "content": content, "description": description }))
            })
            .collect();
        responses.insert("401".to_owned(), json!({ "description": "Unauthorized" }));
        Value::from(responses)
    }

    fn media_types(&self, action: Action) -> Vec<&'static str> {
        let mut types = vec!["application/json", "application/yaml"];
        if !self.is_custom {
            types.push("application/vnd.kubernetes.protobuf");
            if matches!(action, Action::List | Action::ListEverywhere) {
                types.push("application/json;stream=watch");
                types.push("application/vnd.kubernetes.protobuf;stream=watch");
            }
        }
        types
    }

    fn request_body(&self, action: Action) -> Option<Value> {
        let written: &[&str] =
            if self.is_custom { &["application/json", "application/yaml"] } else { &["*/*"] };
        let patches = [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ];
        // Kubernetes: custom resources have no merge keys, and so no strategic merge patch.
        let patches = if self.is_custom { &patches[..3] } else { &patches[..] };
        Some(match action {
            Action::Create | Action::Replace => {
                json!({ "content": content(written, &self.schema), "required": true })
            }
            Action::Patch => json!({ "content": content(patches, PATCH), "required": true }),
            Action::DeleteCollection if self.is_custom => return None,
            Action::Delete | Action::DeleteCollection => {
                json!({ "content": content(written, DELETE_OPTIONS) })
            }
            _ => return None,
        })
    }
}

/// The operation that lists the resources of a version.
pub(super) fn list_resources(group: &str, version: &str) -> Value {
    let name = camel(group, false);
    let media_types = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
    json!({
        "description": "get available resources",
        "operationId": format!("get{name}{}APIResources", upper_first(version)),
        "responses": {
            "200": { "content": content(&media_types, RESOURCE_LIST), "description": "OK" },
            "401": { "description": "Unauthorized" },
        },
        "tags": [format!("{}_{version}", lower_first(&name))],
    })
}

fn content(media_types: &[&str], schema: &str) -> Value {
    let reference = json!({ "schema": { "$ref": format!("{SCHEMAS}{schema}") } });
    let content: Map<_, _> = media_types.iter().map(|it| (it.to_string(), reference.clone())).collect();
    Value::from(content)
}

/// `RbacAuthorization` for `rbac.authorization.k8s.io`, `ExampleCom` for a custom `example.com`.
fn camel(group: &str, is_custom: bool) -> String {
    let short = if is_custom { group } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    let short = if short.is_empty() { "core" } else { short };
    short.split(['.', '-']).map(upper_first).collect()
}

fn upper_first(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn lower_first(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}
