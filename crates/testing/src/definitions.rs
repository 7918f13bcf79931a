//! The kinds of `testing.setpoint.dev/v1`, as CustomResourceDefinitions.

use serde_json::{Value, json};

pub const GROUP: &str = "testing.setpoint.dev";
pub const VERSION: &str = "v1";

/// Longer than every name; the cost of rules depends on it.
const MAX_TEXT: u32 = 512;

/// A kind of the testing API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TestingKind {
    Snapshot,
    Restore,
    Reset,
    Fork,
    Settle,
    Clock,
    Advance,
    Fault,
    Trace,
}

pub(crate) const ALL: [TestingKind; 9] = [
    TestingKind::Snapshot,
    TestingKind::Restore,
    TestingKind::Reset,
    TestingKind::Fork,
    TestingKind::Settle,
    TestingKind::Clock,
    TestingKind::Advance,
    TestingKind::Fault,
    TestingKind::Trace,
];

impl TestingKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            TestingKind::Snapshot => "Snapshot",
            TestingKind::Restore => "Restore",
            TestingKind::Reset => "Reset",
            TestingKind::Fork => "Fork",
            TestingKind::Settle => "Settle",
            TestingKind::Clock => "Clock",
            TestingKind::Advance => "Advance",
            TestingKind::Fault => "Fault",
            TestingKind::Trace => "Trace",
        }
    }

    /// The plural in URLs.
    pub(crate) fn resource(self) -> String {
        format!("{}s", self.name().to_lowercase())
    }

    pub(crate) fn by_resource(resource: &str) -> Option<TestingKind> {
        ALL.into_iter().find(|kind| kind.resource() == resource)
    }

    /// Whether its objects only record what was done: old ones are removed.
    pub(crate) fn is_record(self) -> bool {
        use TestingKind::{Advance, Reset, Restore, Settle, Trace};
        matches!(self, Restore | Reset | Settle | Advance | Trace)
    }

    fn description(self) -> &'static str {
        match self {
            TestingKind::Snapshot => "Keeps the state of the cluster as it is when the object is created.",
            TestingKind::Restore => "Takes the cluster back to a snapshot.",
            TestingKind::Reset => "Takes the cluster back to how it was when it had started.",
            TestingKind::Fork => {
                "A copy of the cluster that goes its own way, at a port of its own, until the object is deleted."
            }
            TestingKind::Settle => {
                "Waits until no controller has work and every watch has been sent all events."
            }
            TestingKind::Clock => "The time of server, controllers and nodes.",
            TestingKind::Advance => "Moves the clock on, from timer to timer.",
            TestingKind::Fault => {
                "Something that goes wrong for the requests that match, until the object is deleted."
            }
            TestingKind::Trace => "The last requests of all clients, in order.",
        }
    }

    fn spec(self) -> Value {
        match self {
            TestingKind::Snapshot | TestingKind::Reset => object(json!({})),
            TestingKind::Restore => {
                required(json!({"snapshot": text("The name of the Snapshot.")}), "snapshot")
            }
            TestingKind::Fork => object(json!({
                "snapshot": text("The name of the Snapshot to start from; by default, the cluster as it is now."),
            })),
            TestingKind::Settle => object(json!({
                "quiet": duration("How long nothing may have happened, in real time.", "50ms"),
                "timeout": duration("How long to wait at most, in real time.", "30s"),
            })),
            TestingKind::Clock => object(json!({
                "frozen": {"type": "boolean", "description": "Whether time stands still."},
            })),
            TestingKind::Advance => {
                let mut spec = object(json!({
                    "by": text("A duration like 24h."),
                    "to": {"type": "string", "format": "date-time", "maxLength": MAX_TEXT, "description": "A time in the future."},
                    "timeout": duration("How long it may take, in real time.", "5m"),
                }));
                spec["x-kubernetes-validations"] =
                    json!([{"rule": "has(self.by) != has(self.to)", "message": "give either by or to"}]);
                spec
            }
            TestingKind::Fault => fault_spec(),
            TestingKind::Trace => object(json!({
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100,
                    "description": "How many of the last requests to show."},
                "user": text("Only the requests of this user."),
                "client": text("Only requests whose User-Agent begins with this."),
                "verb": text("Only this verb; write stands for all that do not read."),
                "resource": text("Only this resource, like pods or pods/status."),
            })),
        }
    }

    fn status(self) -> Value {
        let number = json!({"type": "integer", "format": "int64"});
        let string = json!({"type": "string"});
        match self {
            TestingKind::Snapshot => object(json!({"revision": number, "objects": number})),
            TestingKind::Restore | TestingKind::Reset => {
                object(json!({"revision": number, "created": number, "updated": number, "deleted": number}))
            }
            TestingKind::Fork => object(json!({"revision": number, "server": string, "kubeconfig": string})),
            TestingKind::Settle => object(json!({"revision": number, "waited": string, "now": string})),
            TestingKind::Clock => object(json!({"now": string})),
            TestingKind::Advance => object(json!({"now": string, "timers": number, "took": string})),
            TestingKind::Fault => object(json!({"hits": number})),
            TestingKind::Trace => object(json!({
                "total": number,
                "requests": {"type": "array", "items": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })),
        }
    }

    /// Name, type and path of the columns of `kubectl get`.
    fn columns(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            TestingKind::Snapshot => {
                &[("Revision", "integer", ".status.revision"), ("Objects", "integer", ".status.objects")]
            }
            TestingKind::Restore => {
                &[("Snapshot", "string", ".spec.snapshot"), ("Revision", "integer", ".status.revision")]
            }
            TestingKind::Reset => &[("Revision", "integer", ".status.revision")],
            TestingKind::Fork => {
                &[("Server", "string", ".status.server"), ("Revision", "integer", ".status.revision")]
            }
            TestingKind::Settle => {
                &[("Revision", "integer", ".status.revision"), ("Waited", "string", ".status.waited")]
            }
            TestingKind::Clock => &[("Frozen", "boolean", ".spec.frozen"), ("Now", "string", ".status.now")],
            TestingKind::Advance => &[
                ("Now", "string", ".status.now"),
                ("Timers", "integer", ".status.timers"),
                ("Took", "string", ".status.took"),
            ],
            TestingKind::Fault => &[
                ("Verb", "string", ".spec.match.verb"),
                ("Resource", "string", ".spec.match.resource"),
                ("Hits", "integer", ".status.hits"),
            ],
            TestingKind::Trace => &[("Total", "integer", ".status.total")],
        }
    }

    /// Its CustomResourceDefinition.
    pub(crate) fn definition(self) -> Value {
        let (kind, plural) = (self.name(), self.resource());
        let singular = kind.to_lowercase();
        let columns: Vec<Value> = self
            .columns()
            .iter()
            .map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path}))
            .chain([json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})])
            .collect();
        let mut schema = object(json!({"spec": self.spec(), "status": self.status()}));
        schema["description"] = json!(self.description());
        match self {
            TestingKind::Fault | TestingKind::Restore | TestingKind::Advance => {
                schema["required"] = json!(["spec"]);
            }
            _ => schema["properties"]["spec"]["default"] = json!({}),
        }
        if self == TestingKind::Clock {
            schema["x-kubernetes-validations"] =
                json!([{"rule": "self.metadata.name == 'cluster'", "message": "the only Clock is cluster"}]);
        } else {
            let spec = &mut schema["properties"]["spec"];
            let fixed = json!({"rule": "self == oldSelf", "message": "it cannot be changed; create another"});
            spec["x-kubernetes-validations"] = with_rule(&spec["x-kubernetes-validations"], fixed);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP,
                "scope": "Cluster",
                "names": {"kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List")},
                "versions": [{
                    "name": VERSION, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                }],
            },
        })
    }
}

fn with_rule(rules: &Value, rule: Value) -> Value {
    let mut rules = rules.as_array().cloned().unwrap_or_default();
    rules.push(rule);
    rules.into()
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn required(properties: Value, name: &str) -> Value {
    let mut schema = object(properties);
    schema["required"] = json!([name]);
    schema
}

fn text(description: &str) -> Value {
    json!({"type": "string", "maxLength": MAX_TEXT, "description": description})
}

fn duration(description: &str, default: &str) -> Value {
    json!({"type": "string", "maxLength": MAX_TEXT, "default": default, "description": description})
}

/// The fields of a fault of which exactly one is given.
const EFFECTS: [&str; 6] = ["refuse", "delay", "lose", "stale", "endWatch", "lagWatch"];

/// What a fault may match.
const VERBS: [&str; 10] =
    ["*", "write", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

fn fault_spec() -> Value {
    let matching = object(json!({
        "verb": {"type": "string", "enum": VERBS, "default": "*", "description":
            "write is for all that do not read, * for any."},
        "resource": {"type": "string", "maxLength": MAX_TEXT, "default": "*", "description": "Like pods or pods/status; * for any."},
        "group": text("The API group; empty for the core group. By default any."),
        "namespace": text("By default any."),
        "name": text("By default any."),
        "user": text("The name of the user. By default any, also the control loops of the cluster."),
        "client": text("The beginning of the User-Agent. By default any."),
    }));
    let mut spec = object(json!({
        "match": matching,
        "skip": {"type": "integer", "minimum": 0, "default": 0, "description":
            "So many matching requests are not affected at first."},
        "times": {"type": "integer", "minimum": 1, "description":
            "How many requests are affected; by default all until the object is deleted."},
        "refuse": object(json!({
            "code": {"type": "integer", "minimum": 400, "maximum": 599, "default": 500},
            "reason": text("The reason of the Status, like Conflict. By default the usual one of the code."),
        })),
        "delay": text("Delays the request before the server gets it, by the cluster's clock, like 2s."),
        "lose": {"type": "string", "enum": ["Request", "Answer"], "description":
            "The connection breaks before the server gets the request, or after it was carried out."},
        "stale": required(json!({"revisions": {"type": "integer", "minimum": 1}}), "revisions"),
        "endWatch": object(json!({
            "after": {"type": "integer", "minimum": 0, "default": 0, "description": "So many events come first."},
            "how": {"type": "string", "enum": ["Cut", "Close", "Expire"], "default": "Cut", "description":
                "The connection breaks; the server ends it properly; an ERROR event with 410 comes."},
        })),
        "lagWatch": text("Every event of the watch comes so much later, by the cluster's clock, like 500ms."),
    }));
    spec["properties"]["match"]["default"] = json!({});
    let given: Vec<String> = EFFECTS.iter().map(|name| format!("has(self.{name})")).collect();
    spec["x-kubernetes-validations"] = json!([{
        "rule": format!("[{}].filter(given, given).size() == 1", given.join(", ")),
        "message": format!("give exactly one of {}", EFFECTS.join(", ")),
    }]);
    spec
}
