//! The request of an AdmissionReview.

use crate::BoxError;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::core::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

/// The operation on an object, and the user who requests it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Request {
    /// The UID of this request, not of the object.
    pub uid: String,
    /// The kind of the object that was sent.
    pub kind: GroupVersionKind,
    /// The resource of the URL.
    pub resource: GroupVersionResource,
    /// Empty for the object itself.
    #[serde(default, rename = "subResource")]
    pub subresource: String,
    /// Empty if the server will generate it.
    #[serde(default)]
    pub name: String,
    /// Empty for cluster-scoped kinds.
    #[serde(default)]
    pub namespace: String,
    /// What is requested.
    pub operation: Operation,
    /// Who requests it.
    #[serde(default)]
    pub user_info: UserInfo,
    /// Nothing will be stored: have no side effects.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    pub(super) old_object: Value,
}

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, by update, patch or apply.
    Update,
    /// A deletion.
    Delete,
    /// A connection, such as `exec` or `proxy`.
    Connect,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// The argument of a validator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Review<K> {
    /// The object before and after it.
    pub change: Change<K>,
    /// Who requests what.
    pub request: Request,
}

/// The change of an object that is under review.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<K> {
    /// The new object.
    Create(K),
    /// The object before and after the change.
    Update {
        /// Before.
        old: K,
        /// After.
        new: K,
    },
    /// The object that is to go.
    Delete(K),
}

impl<K> Change<K> {
    /// The object after the change; `None` if it is deleted.
    pub fn after(&self) -> Option<&K> {
        match self {
            Change::Create(new) | Change::Update { new, .. } => Some(new),
            Change::Delete(_) => None,
        }
    }
}

impl<K: DeserializeOwned> Review<K> {
    pub(super) fn of(mut request: Request) -> Result<Review<K>, BoxError> {
        let (object, old) = (request.object.take(), request.old_object.take());
        let change = match request.operation {
            Operation::Create => Change::Create(serde_json::from_value(object)?),
            Operation::Update => {
                Change::Update { old: serde_json::from_value(old)?, new: serde_json::from_value(object)? }
            }
            Operation::Delete => Change::Delete(serde_json::from_value(old)?),
            Operation::Connect => return Err("nobody can connect to it".into()),
        };
        Ok(Review { change, request })
    }
}

/// Reads the request of an AdmissionReview. The text of an error is for people.
pub(super) fn read(body: &[u8]) -> Result<Request, String> {
    read_review(body, API_VERSION, KIND)
}

/// Reads the request of a review of this kind: admission and conversion reviews differ in nothing else.
pub(super) fn read_review<R: DeserializeOwned>(
    body: &[u8],
    api_version: &str,
    kind: &str,
) -> Result<R, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct AnyReview<R> {
        api_version: String,
        kind: String,
        request: Option<R>,
    }
    let review: AnyReview<R> =
        serde_json::from_slice(body).map_err(|error| format!("this is no {kind}: {error}"))?;
    if (review.api_version.as_str(), review.kind.as_str()) != (api_version, kind) {
        let AnyReview { api_version: other_version, kind: other, .. } = review;
        return Err(format!("expected a {kind} of {api_version}, got a {other} of {other_version}"));
    }
    review.request.ok_or_else(|| format!("the {kind} holds no request"))
}
