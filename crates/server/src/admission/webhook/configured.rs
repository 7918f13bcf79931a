//! Reads webhook configurations, and indexes the webhooks by resource.

use crate::{
    admission::{
        evaluation::Expression,
        matching::{ByResource, Criteria},
    },
    live::Fold,
    stored::Stored,
};
use api::object;
use kinds::{
    definition::WebhookAddress,
    policy::{Names, Offer},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

// Kubernetes: the defaults, should a stored object lack them.
const TIMEOUT_SECONDS: u64 = 10;
const PORT: u16 = 443;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    /// Unique id: the same name may come twice.
    pub(super) id: String,
    /// Its index among all webhooks, in their order.
    pub(super) ordinal: AtomicUsize,
    pub(super) configuration: String,
    pub(super) name: String,
    pub(super) criteria: Criteria,
    pub(super) address: WebhookAddress,
    pub(super) ca_bundle: String,
    pub(super) timeout: Duration,
    /// `failurePolicy: Ignore`: a failed call counts as allowed.
    pub(super) fails_open: bool,
    /// Whether it may be called for a dry run: it has no side effects.
    pub(super) allows_dry_run: bool,
    pub(super) is_reinvocable: bool,
    pub(super) review_versions: Vec<String>,
    match_conditions: Value,
    conditions: OnceLock<Vec<Expression>>,
}

/// All validating or all mutating configurations, by name.
#[derive(Debug, Default)]
pub(crate) struct Configurations {
    all: BTreeMap<String, Vec<Arc<Webhook>>>,
    /// Keys of undecodable configurations: while there are any, writes are rejected, as their webhooks
    /// might.
    unreadable: BTreeSet<String>,
    index: ByResource<Webhook>,
}

impl Webhook {
    fn read(configuration: &str, at: usize, hook: &Value) -> Webhook {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&hook["name"]);
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS);
        let versions = hook["admissionReviewVersions"].as_array().into_iter().flatten();
        Webhook {
            id: format!("{configuration}/{name}/{at}"),
            ordinal: AtomicUsize::new(at),
            configuration: configuration.to_owned(),
            criteria: Criteria::of_webhook(hook),
            address: address(&hook["clientConfig"]),
            ca_bundle: text(&hook["clientConfig"]["caBundle"]),
            timeout: Duration::from_secs(seconds),
            fails_open: hook["failurePolicy"] == "Ignore",
            allows_dry_run: matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            is_reinvocable: hook["reinvocationPolicy"] == "IfNeeded",
            review_versions: versions.map(text).collect(),
            match_conditions: hook["matchConditions"].clone(),
            conditions: OnceLock::new(),
            name,
        }
    }

    pub(super) fn conditions(&self) -> &[Expression] {
        self.conditions.get_or_init(|| {
            let names = Names::new(Offer { authorizer: true, ..Offer::default() });
            Expression::conditions(&names, &self.match_conditions)
        })
    }
}

fn address(client: &Value) -> WebhookAddress {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let service = &client["service"];
    match client["url"].as_str() {
        Some(url) => WebhookAddress::Url(url.to_owned()),
        None => WebhookAddress::Service {
            namespace: text(&service["namespace"]),
            name: text(&service["name"]),
            path: text(&service["path"]),
            port: service["port"].as_u64().and_then(|port| port.try_into().ok()).unwrap_or(PORT),
        },
    }
}

impl Configurations {
    /// Webhooks that may match a resource; `None` while a configuration is undecodable.
    pub(super) fn candidates(&self, resource: &str) -> Option<Vec<Arc<Webhook>>> {
        self.unreadable.is_empty().then(|| self.index.candidates(resource))
    }

    fn index(&mut self) {
        for (at, hook) in self.all.values().flatten().enumerate() {
            hook.ordinal.store(at, Relaxed);
        }
        self.index = ByResource::new(self.all.values().flatten(), |hook| &hook.criteria);
    }
}

impl Fold for Configurations {
    fn clear(&mut self) {
        *self = Configurations::default();
    }

    fn put(&mut self, key: &str, object: Stored) {
        let Some(object) = object.value_or_member("webhooks") else {
            // The last readable state stays in force.
            if !self.all.contains_key(key) {
                tracing::error!(key, "cannot decode webhook configuration: writes are rejected");
                self.unreadable.insert(key.to_owned());
            }
            return;
        };
        self.unreadable.remove(key);
        let hooks = object["webhooks"].as_array().into_iter().flatten().enumerate();
        let hooks = hooks.map(|(at, hook)| Arc::new(Webhook::read(object::name(&object), at, hook)));
        self.all.insert(key.to_owned(), hooks.collect());
        self.index();
    }

    fn remove(&mut self, key: &str) {
        self.all.remove(key);
        self.unreadable.remove(key);
        self.index();
    }
}
