//! Reads policies and their bindings, and indexes them by resource; expressions are compiled once per
//! generation.

use crate::{
    admission::{
        evaluation::Expression,
        matching::{ByResource, Criteria},
    },
    live::Fold,
    stored::Stored,
};
use api::object;
use kinds::policy::{Names, Offer, Wanted};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    /// UID and generation: expressions change only with them.
    state: (String, i64),
    pub(super) criteria: Criteria,
    pub(super) fails_open: bool,
    pub(super) is_reinvocable: bool,
    /// apiVersion and kind.
    pub(super) param_kind: Option<(String, String)>,
    spec: Value,
    compiled: OnceLock<PolicyExpressions>,
}

/// The expressions of a policy.
#[derive(Debug, Default)]
pub(super) struct PolicyExpressions {
    pub(super) variables: Vec<Expression>,
    pub(super) conditions: Vec<Expression>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Expression>,
    pub(super) mutations: Vec<Mutation>,
}

#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: String,
}

#[derive(Debug)]
pub(super) enum Mutation {
    Apply(Expression),
    Patch(Expression),
}

#[derive(Debug)]
pub(super) struct PolicyBinding {
    pub(super) name: String,
    policy: String,
    /// matchResources; `None` where the policy's matchConstraints suffice.
    pub(super) criteria: Option<Criteria>,
    pub(super) param_ref: Value,
    pub(super) actions: Vec<String>,
}

/// All validating or all mutating policies with their bindings, by key.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    policies: BTreeMap<String, Arc<Policy>>,
    bindings: BTreeMap<String, Arc<PolicyBinding>>,
    /// Keys of undecodable objects: while there are any, writes are rejected, as these might reject them.
    unreadable: BTreeSet<String>,
    index: ByResource<Policy>,
    bound: BTreeMap<String, Vec<Arc<PolicyBinding>>>,
}

impl Policy {
    fn read(object: &Value) -> Policy {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &object["spec"];
        let kind = &spec["paramKind"];
        Policy {
            name: object::name(object).to_owned(),
            state: (object::uid(object).to_owned(), object::generation(object)),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            fails_open: spec["failurePolicy"] == "Ignore",
            is_reinvocable: spec["reinvocationPolicy"] == "IfNeeded",
            param_kind: kind.is_object().then(|| (text(&kind["apiVersion"]), text(&kind["kind"]))),
            spec: spec.clone(),
            compiled: OnceLock::new(),
        }
    }

    pub(super) fn compiled(&self) -> &PolicyExpressions {
        self.compiled.get_or_init(|| self.compile())
    }

    fn compile(&self) -> PolicyExpressions {
        let (spec, params) = (&self.spec, self.param_kind.is_some());
        let patches = spec["mutations"].is_array();
        let list = |name: &str| spec[name].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut names = Names::new(Offer { params, authorizer: true, patches: false }).composed();
        let mut patching = Names::new(Offer { params, authorizer: true, patches }).composed();
        let mut variables = Vec::new();
        for variable in list("variables") {
            let (name, source) = (text(&variable["name"]), text(&variable["expression"]));
            let compiled = patching.compile(&source, Wanted::Anything);
            names = names.define(&name, compiled.as_ref().ok());
            patching = patching.define(&name, compiled.as_ref().ok());
            variables.push(Expression::new(&name, &source, compiled));
        }
        let expression =
            |names: &Names, source: &str, wanted| Expression::new("", source, names.compile(source, wanted));
        let validations = list("validations").map(|it| Validation {
            expression: expression(&names, &text(&it["expression"]), Wanted::Bool),
            message: text(&it["message"]).trim().to_owned(),
            message_expression: it["messageExpression"]
                .as_str()
                .filter(|source| !source.is_empty())
                .map(|source| expression(&names, source, Wanted::Text)),
            reason: text(&it["reason"]),
        });
        let annotations = list("auditAnnotations").map(|it| {
            let source = text(&it["valueExpression"]);
            Expression::new(&text(&it["key"]), &source, names.compile(source.trim(), Wanted::TextOrNull))
        });
        let mutations = list("mutations").map(|it| match it["patchType"].as_str() {
            Some("JSONPatch") => {
                let source = text(&it["jsonPatch"]["expression"]);
                Mutation::Patch(expression(&patching, source.trim(), Wanted::Patches))
            }
            _ => {
                let source = text(&it["applyConfiguration"]["expression"]);
                Mutation::Apply(expression(&patching, source.trim(), Wanted::Object))
            }
        });
        PolicyExpressions {
            conditions: Expression::conditions(&names, &spec["matchConditions"]),
            validations: validations.collect(),
            annotations: annotations.collect(),
            mutations: mutations.collect(),
            variables,
        }
    }
}

impl PolicyBinding {
    fn read(object: &Value) -> PolicyBinding {
        let spec = &object["spec"];
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        let matched = &spec["matchResources"];
        PolicyBinding {
            name: object::name(object).to_owned(),
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            criteria: matched.is_object().then(|| Criteria::of_policy(matched)),
            param_ref: spec["paramRef"].clone(),
            actions: actions.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

impl Policies {
    /// Bound policies by name; `None` while an object is undecodable.
    pub(super) fn candidates(&self, resource: &str) -> Option<Vec<super::BoundPolicy>> {
        if !self.unreadable.is_empty() {
            return None;
        }
        let found = self.index.candidates(resource).into_iter();
        let bound = |policy: Arc<Policy>| {
            let bindings = self.bound.get(&policy.name)?.clone();
            Some((policy, bindings))
        };
        Some(found.filter_map(bound).collect())
    }

    fn index(&mut self) {
        self.index = ByResource::new(self.policies.values(), |policy| &policy.criteria);
        self.bound.clear();
        for binding in self.bindings.values() {
            self.bound.entry(binding.policy.clone()).or_default().push(Arc::clone(binding));
        }
    }
}

fn is_binding(key: &str) -> bool {
    key.contains("policybindings/")
}

impl Fold for Policies {
    fn clear(&mut self) {
        *self = Policies::default();
    }

    fn put(&mut self, key: &str, object: Stored) {
        let Some(object) = object.value_or_member("spec") else {
            // The last readable state stays in force.
            if !self.policies.contains_key(key) && !self.bindings.contains_key(key) {
                tracing::error!(key, "cannot decode admission policy or binding: writes are rejected");
                self.unreadable.insert(key.to_owned());
            }
            return;
        };
        self.unreadable.remove(key);
        if is_binding(key) {
            self.bindings.insert(key.to_owned(), Arc::new(PolicyBinding::read(&object)));
        } else {
            let new = Policy::read(&object);
            if self.policies.get(key).is_some_and(|known| known.state == new.state) {
                return;
            }
            self.policies.insert(key.to_owned(), Arc::new(new));
        }
        self.index();
    }

    fn remove(&mut self, key: &str) {
        self.policies.remove(key);
        self.bindings.remove(key);
        self.unreadable.remove(key);
        self.index();
    }
}
