//! Webhooks for your types: validators, defaulters and converters behind one TLS server.
//!
//! ```
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! use operator::webhook::{Change, Hook, Request, Review, Verdict, Webhooks};
//!
//! let webhooks = Webhooks::new("sizes")
//!     .hook(Hook::defaulter(|map: &mut ConfigMap, _: &Request| {
//!         map.data.get_or_insert_default().entry("size".to_owned()).or_insert_with(|| "small".to_owned());
//!     }))
//!     .hook(Hook::validator(|review: Review<ConfigMap>| async move {
//!         match review.change {
//!             Change::Update { old, new } if old.data != new.data => Verdict::deny("sizes stay as they are"),
//!             _ => Verdict::allow(),
//!         }
//!     }));
//! ```
//!
//! | file | what happens there |
//! |---|---|
//! | `hook` | a validator or defaulter for your type, as a function on admission reviews |
//! | `review`, `verdict` | the request of an admission review, and the response |
//! | `patch` | the JSON patch between an object before and after a defaulter |
//! | `conversion`, `round_trip` | versions of a type, converted through a hub; and a test that no field is lost |
//! | `serve` | sockets, TLS, limits |
//! | `keys`, `certificate`, `shared` | the serving certificate: loaded, renewed, shared between replicas |
//! | `register` | the webhook configurations in the cluster |

mod certificate;
mod conversion;
mod hook;
mod keys;
mod patch;
mod register;
mod review;
mod round_trip;
mod serve;
mod shared;
mod verdict;

pub use api::field;
pub use certificate::BadCertificate;
pub use conversion::{Conversion, Hub, Spoke};
pub use hook::Hook;
pub use keys::Files;
pub use register::Address;
pub use review::{Change, Operation, Request, Review};
pub use round_trip::{RoundTripError, hub_round_trip, round_trip};
pub use serve::{Certificates, Error, Site};
pub use verdict::Verdict;

use bytes::Bytes;
use conversion::ErasedConversion;
use futures::FutureExt;
use hook::HookType;
use http::StatusCode;
use serde_json::{Value, json};
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use world::World;

/// Kubernetes: the longest timeout of a webhook.
const MAX_TIME: Duration = Duration::from_secs(30);

/// All webhooks of an operator.
#[derive(Debug)]
pub struct Webhooks {
    name: String,
    /// By path.
    hooks: BTreeMap<String, Hook>,
    conversions: Vec<ErasedConversion>,
}

/// Webhooks that a [`Host`] calls: until it is dropped.
pub type Hosted = Box<dyn Send + Sync>;

/// Calls webhooks without sockets: how a test's control plane reaches them.
pub trait Host: Send + Sync {
    /// Answers requests to these server names with `webhooks`, until the result is dropped.
    fn host(&self, world: &World, server_names: Vec<String>, webhooks: Arc<Webhooks>) -> Hosted;
}

/// The HTTP response to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200 also if the verdict is no.
    pub code: StatusCode,
    /// JSON if the code is 200, text otherwise.
    pub body: Bytes,
}

impl Webhooks {
    /// The name of the webhook configurations in the cluster, and of their field manager: it must stay
    /// the same in all versions of the operator.
    pub fn new(name: &str) -> Webhooks {
        Webhooks { name: name.to_owned(), hooks: BTreeMap::new(), conversions: Vec::new() }
    }

    /// The name of their configurations in the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a validator or defaulter.
    pub fn hook(mut self, mut hook: Hook) -> Webhooks {
        let same = self.hooks.values().filter(|other| other.is_for_same(&hook)).count();
        hook.set_number(same + 1);
        self.hooks.insert(hook.path(), hook);
        self
    }

    /// Adds the conversions between the versions of a type.
    pub fn conversion<H: Hub>(mut self, conversion: Conversion<H>) -> Webhooks {
        self.conversions.push(conversion.erase());
        self
    }

    /// Answers one request. The query may have a timeout, as Kubernetes sends it.
    pub async fn answer(&self, world: &World, path: &str, query: &str, body: &[u8]) -> Reply {
        let limit = time_limit(query);
        let answer = AssertUnwindSafe(self.dispatch(path, body)).catch_unwind();
        match world.timeout(limit, answer).await {
            Ok(Ok(Ok(review))) => Reply { code: StatusCode::OK, body: review.to_string().into() },
            Ok(Ok(Err(refused))) => refused,
            Ok(Err(_)) => Reply::text(StatusCode::INTERNAL_SERVER_ERROR, "the webhook panicked"),
            Err(_) => Reply::text(StatusCode::GATEWAY_TIMEOUT, "the webhook did not answer in time"),
        }
    }

    async fn dispatch(&self, path: &str, body: &[u8]) -> Result<Value, Reply> {
        if path == conversion::PATH {
            return conversion::review(&self.conversions, body).map_err(Reply::bad);
        }
        let hook =
            self.hooks.get(path).ok_or_else(|| Reply::text(StatusCode::NOT_FOUND, "no such webhook"))?;
        let request = review::read(body).map_err(Reply::bad)?;
        let uid = request.uid.clone();
        let response = hook.review(request).await;
        Ok(json!({
            "apiVersion": review::API_VERSION, "kind": review::KIND, "response": response.into_json(&uid),
        }))
    }

    fn hooks_of(&self, hook_type: HookType) -> impl Iterator<Item = &Hook> {
        self.hooks.values().filter(move |hook| hook.hook_type() == hook_type)
    }
}

impl Reply {
    fn text(code: StatusCode, text: impl Into<Bytes>) -> Reply {
        Reply { code, body: text.into() }
    }

    fn bad(problem: String) -> Reply {
        Reply::text(StatusCode::BAD_REQUEST, problem)
    }
}

/// Kubernetes: the parameter `timeout=10s`.
fn time_limit(query: &str) -> Duration {
    let seconds =
        query.split('&').find_map(|pair| pair.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    seconds.map_or(MAX_TIME, |seconds: u64| Duration::from_secs(seconds).min(MAX_TIME))
}
