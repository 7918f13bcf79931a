//! A function on your type in, one on reviews of that type out.

use super::{
    patch,
    review::{Operation, Request, Review},
    verdict::{Outcome, Verdict},
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

/// A webhook for one kind: what it does, when it is asked, and what happens when it cannot be.
#[derive(Clone)]
pub struct Hook {
    kind: ApiResource,
    sort: Sort,
    /// 1 for the first of its sort for a kind.
    number: usize,
    operations: Vec<Operation>,
    subresource: Option<String>,
    fails_open: bool,
    timeout: Duration,
    objects: Option<LabelSelector>,
    namespaces: Option<LabelSelector>,
    act: Arc<Act>,
}

type Act = dyn Fn(Request) -> BoxFuture<'static, (Verdict, Option<json_patch::Patch>)> + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Mutating,
    Validating,
}

impl Hook {
    /// Judges what would become of an object. Asked when one is created or updated, unless
    /// [`Hook::on`] says otherwise.
    pub fn validator<K, F, V>(judge: F) -> Hook
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
        F: Fn(Review<K>) -> V + Send + Sync + 'static,
        V: Future<Output = Verdict> + Send + 'static,
    {
        let judge = Arc::new(judge);
        Hook::new::<K>(
            Sort::Validating,
            Arc::new(move |request| {
                let judge = Arc::clone(&judge);
                Box::pin(async move {
                    let verdict = match Review::of(request) {
                        Ok(review) => judge(review).await,
                        Err(problem) => unreadable(&*problem),
                    };
                    (verdict, None)
                })
            }),
        )
    }

    /// Fills in what was left out. It may be called several times for one write, and must then
    /// change nothing more. Fields that your type does not know stay as they are.
    pub fn defaulter<K, F>(fill_in: F) -> Hook
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
        F: Fn(&mut K, &Request) + Send + Sync + 'static,
    {
        Hook::new::<K>(
            Sort::Mutating,
            Arc::new(move |request| {
                let filled_in = patch::between(&request.object, |object| fill_in(object, &request));
                Box::pin(std::future::ready(match filled_in {
                    Ok(patch) => (Verdict::allow(), Some(patch)),
                    Err(problem) => (unreadable(&problem), None),
                }))
            }),
        )
    }

    fn new<K: Resource<DynamicType = ()>>(sort: Sort, act: Arc<Act>) -> Hook {
        Hook {
            kind: ApiResource::erase::<K>(&()),
            sort,
            number: 1,
            operations: vec![Operation::Create, Operation::Update],
            subresource: None,
            fails_open: false,
            timeout: TIMEOUT,
            objects: None,
            namespaces: None,
            act,
        }
    }

    /// Asked for these operations.
    pub fn on(mut self, operations: &[Operation]) -> Hook {
        self.operations = operations.to_vec();
        self
    }

    /// Asked about a subresource (`status`, `scale`, `*`) instead of the object itself.
    pub fn of_subresource(mut self, subresource: &str) -> Hook {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Where the webhook cannot be asked, things happen without it; otherwise they do not happen.
    pub fn fails_open(mut self) -> Hook {
        self.fails_open = true;
        self
    }

    /// The server waits this long for the answer: between 1 and 30 seconds.
    pub fn within(mut self, timeout: Duration) -> Hook {
        self.timeout = timeout.clamp(Duration::from_secs(1), super::MAX_TIME);
        self
    }

    /// Asked about objects with these labels only.
    pub fn for_objects(mut self, selector: LabelSelector) -> Hook {
        self.objects = Some(selector);
        self
    }

    /// Asked about objects in namespaces with these labels only.
    pub fn for_namespaces(mut self, selector: LabelSelector) -> Hook {
        self.namespaces = Some(selector);
        self
    }

    pub(super) fn sort(&self) -> Sort {
        self.sort
    }

    pub(super) fn is_for_same(&self, other: &Hook) -> bool {
        self.sort == other.sort && self.kind == other.kind
    }

    pub(super) fn number(&mut self, number: usize) {
        self.number = number;
    }

    /// Where it is found on the server.
    pub(super) fn path(&self) -> String {
        let ApiResource { version, plural, .. } = &self.kind;
        format!("/{}/{}/{version}/{plural}", self.verb(), self.group())
    }

    /// Its name within a configuration: three words or more, with dots between.
    pub(super) fn name(&self) -> String {
        format!("{}.{}.{}", self.verb(), self.kind.plural, self.group())
    }

    fn group(&self) -> &str {
        if self.kind.group.is_empty() { "core" } else { &self.kind.group }
    }

    fn verb(&self) -> String {
        let verb = match self.sort {
            Sort::Mutating => "default",
            Sort::Validating => "validate",
        };
        match self.number {
            1 => verb.to_owned(),
            number => format!("{verb}-{number}"),
        }
    }

    /// The hook as a configuration tells of it.
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

    pub(super) async fn act(&self, request: Request) -> Outcome {
        let kind = GroupKind::new(request.kind.group.as_str(), request.kind.kind.as_str());
        let name = request.name.clone();
        let (verdict, patch) = (self.act)(request).await;
        Outcome { verdict, patch, kind, name }
    }
}

fn unreadable(problem: &(dyn std::error::Error + 'static)) -> Verdict {
    Verdict::refuse(400, "BadRequest", format!("the object cannot be read: {problem}"))
}

impl fmt::Debug for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hook({})", self.path())
    }
}
