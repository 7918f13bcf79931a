//! A validator or defaulter for a kind, as a function on admission requests.

use super::{
    patch,
    review::{Operation, Request, Review},
    verdict::{ReviewResponse, Verdict},
};
use api::kind::GroupKind;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{Resource, core::ApiResource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt, sync::Arc, time::Duration};

/// Kubernetes' own default.
const TIMEOUT: Duration = Duration::from_secs(10);

const UNREADABLE: &str = "the object cannot be read";

/// A webhook for one kind: its function, when it is called, and what happens if that fails.
#[derive(Clone)]
pub struct Hook {
    /// Of the resource that it is called for; the body of a subresource may be of another kind.
    kind: ApiResource,
    hook_type: HookType,
    /// 1 for the first of its type for a kind.
    number: usize,
    operations: Vec<Operation>,
    subresource: Option<String>,
    fails_open: bool,
    timeout: Duration,
    objects: Option<LabelSelector>,
    namespaces: Option<LabelSelector>,
    function: Arc<HookFunction>,
}

type HookFunction = dyn Fn(Request) -> BoxFuture<'static, (Verdict, Option<json_patch::Patch>)> + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookType {
    Mutating,
    Validating,
}

impl Hook {
    /// Allows or denies a change of an object. Called for creates and updates, unless [`Hook::on`] says
    /// otherwise.
    pub fn validator<K, F, V>(validate: F) -> Hook
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
        F: Fn(Review<K>) -> V + Send + Sync + 'static,
        V: Future<Output = Verdict> + Send + 'static,
    {
        let validate = Arc::new(validate);
        Hook::new::<K>(
            HookType::Validating,
            Arc::new(move |request| {
                let validate = Arc::clone(&validate);
                Box::pin(async move {
                    let verdict = match Review::of(request) {
                        Ok(review) => validate(review).await,
                        Err(problem) => unreadable(&*problem),
                    };
                    (verdict, None)
                })
            }),
        )
    }

    /// Sets defaults. It may be called several times for one write, and must not change its own result.
    /// Fields that your type does not have stay as they are.
    ///
    /// An object that does not fit your type gets no defaults, and a warning that says why: the schema then
    /// refuses it with messages about each field. To set a field that your type requires, use
    /// [`Hook::json_defaulter`].
    pub fn defaulter<K, F>(set_defaults: F) -> Hook
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
        F: Fn(&mut K, &Request) + Send + Sync + 'static,
    {
        Hook::new::<K>(
            HookType::Mutating,
            Arc::new(move |request| {
                let patch = patch::between(&request.object, |object| set_defaults(object, &request));
                Box::pin(std::future::ready(match patch {
                    Ok(patch) => (Verdict::allow(), Some(patch)),
                    Err(problem) => (Verdict::allow().warn(format!("{UNREADABLE}: {problem}")), None),
                }))
            }),
        )
    }

    /// [`Hook::defaulter`] on the JSON of the object, as the user has sent it: it may lack fields that your
    /// type requires.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// use operator::webhook::Hook;
    ///
    /// let hook = Hook::json_defaulter::<Deployment, _>(|deployment, _| {
    ///     let spec = &mut deployment["spec"];
    ///     if spec["selector"].is_null() {
    ///         spec["selector"] = serde_json::json!({"matchLabels": spec["template"]["metadata"]["labels"]});
    ///     }
    /// });
    /// ```
    pub fn json_defaulter<K, F>(set_defaults: F) -> Hook
    where
        K: Resource<DynamicType = ()>,
        F: Fn(&mut Value, &Request) + Send + Sync + 'static,
    {
        Hook::new::<K>(
            HookType::Mutating,
            Arc::new(move |request| {
                let mut object = request.object.clone();
                set_defaults(&mut object, &request);
                let patch = json_patch::diff(&request.object, &object);
                Box::pin(std::future::ready((Verdict::allow(), Some(patch))))
            }),
        )
    }

    fn new<K: Resource<DynamicType = ()>>(hook_type: HookType, function: Arc<HookFunction>) -> Hook {
        Hook {
            kind: ApiResource::erase::<K>(&()),
            hook_type,
            number: 1,
            operations: vec![Operation::Create, Operation::Update],
            subresource: None,
            fails_open: false,
            timeout: TIMEOUT,
            objects: None,
            namespaces: None,
            function,
        }
    }

    /// Called for these operations.
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::webhook::{Hook, Operation, Review, Verdict};
    /// use std::time::Duration;
    ///
    /// let hook = Hook::validator(|review: Review<ConfigMap>| async move { Verdict::deny("it stays") })
    ///     .on(&[Operation::Delete])
    ///     .within(Duration::from_secs(2))
    ///     .fails_open();
    /// ```
    pub fn on(mut self, operations: &[Operation]) -> Hook {
        self.operations = operations.to_vec();
        self
    }

    /// Called for a subresource (`status`) instead of the object itself. The bodies of its requests must be
    /// of the same kind: for others, such as `scale`, use [`Hook::of_subresource_of`].
    pub fn of_subresource(mut self, subresource: &str) -> Hook {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Called for a subresource of the kind `K` whose requests have bodies of the hook's own kind.
    ///
    /// A rule about `spec.replicas` needs this beside a hook on the object itself: `kubectl scale` and
    /// autoscalers write through `scale`.
    ///
    /// ```
    /// use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale};
    /// use operator::webhook::{Hook, Review, Verdict};
    ///
    /// let hook = Hook::validator(|review: Review<Scale>| async move {
    ///     let replicas = review.change.after().and_then(|scale| scale.spec.as_ref()?.replicas);
    ///     if replicas > Some(5) { Verdict::deny("at most 5 replicas") } else { Verdict::allow() }
    /// });
    /// let hook = hook.of_subresource_of::<Deployment>("scale");
    /// ```
    pub fn of_subresource_of<K: Resource<DynamicType = ()>>(mut self, subresource: &str) -> Hook {
        self.kind = ApiResource::erase::<K>(&());
        self.of_subresource(subresource)
    }

    /// If the webhook cannot be called, writes are allowed without it; the default is that they are refused.
    pub fn fails_open(mut self) -> Hook {
        self.fails_open = true;
        self
    }

    /// How long the API server waits for the response: between 1 and 30 seconds.
    pub fn within(mut self, timeout: Duration) -> Hook {
        self.timeout = timeout.clamp(Duration::from_secs(1), super::MAX_TIME);
        self
    }

    /// Called for objects with these labels only.
    pub fn for_objects(mut self, selector: LabelSelector) -> Hook {
        self.objects = Some(selector);
        self
    }

    /// Called for objects in namespaces with these labels only.
    pub fn for_namespaces(mut self, selector: LabelSelector) -> Hook {
        self.namespaces = Some(selector);
        self
    }

    pub(super) fn hook_type(&self) -> HookType {
        self.hook_type
    }

    pub(super) fn is_for_same(&self, other: &Hook) -> bool {
        self.hook_type == other.hook_type && self.kind == other.kind
    }

    pub(super) fn set_number(&mut self, number: usize) {
        self.number = number;
    }

    /// Its path on the webhook server.
    pub(super) fn path(&self) -> String {
        let ApiResource { version, plural, .. } = &self.kind;
        format!("/{}/{}/{version}/{plural}", self.verb(), self.group())
    }

    /// Its name in a configuration: Kubernetes wants at least three parts with dots between them.
    pub(super) fn name(&self) -> String {
        format!("{}.{}.{}", self.verb(), self.kind.plural, self.group())
    }

    fn group(&self) -> &str {
        if self.kind.group.is_empty() { "core" } else { &self.kind.group }
    }

    fn verb(&self) -> String {
        let verb = match self.hook_type {
            HookType::Mutating => "default",
            HookType::Validating => "validate",
        };
        match self.number {
            1 => verb.to_owned(),
            number => format!("{verb}-{number}"),
        }
    }

    /// Its entry in a webhook configuration.
    pub(super) fn entry(&self, client_config: Value) -> Value {
        let resource = match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.kind.plural),
            None => self.kind.plural.clone(),
        };
        let operations: Vec<&str> = self.operations.iter().map(|it| it.as_str()).collect();
        let mut entry = json!({
            "name": self.name(),
            "clientConfig": client_config,
            "rules": [{
                "apiGroups": [self.kind.group], "apiVersions": [self.kind.version],
                "resources": [resource], "operations": operations, "scope": "*",
            }],
            "failurePolicy": if self.fails_open { "Ignore" } else { "Fail" },
            "timeoutSeconds": self.timeout.as_secs(),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        for (field, selector) in [("objectSelector", &self.objects), ("namespaceSelector", &self.namespaces)]
        {
            if let Some(selector) = selector {
                entry[field] = json!(selector);
            }
        }
        entry
    }

    pub(super) async fn review(&self, request: Request) -> ReviewResponse {
        let kind = GroupKind::new(request.kind.group.as_str(), request.kind.kind.as_str());
        let name = request.name.clone();
        let (verdict, patch) = (self.function)(request).await;
        ReviewResponse { verdict, patch, kind, name }
    }
}

fn unreadable(problem: &(dyn std::error::Error + 'static)) -> Verdict {
    Verdict::refuse(400, "BadRequest", format!("{UNREADABLE}: {problem}"))
}

impl fmt::Debug for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hook({})", self.path())
    }
}
