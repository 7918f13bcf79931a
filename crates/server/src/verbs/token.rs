//! `serviceaccounts/token`: issues a token for a service account, bound to a pod, node or secret.

use crate::{
    admission,
    answer::{self, Body},
    authenticate::jwt::{self, BoundObject, Claims, Kubernetes},
    call::Call,
    input::{self, ExpectedKind},
    refusal::Refusal,
    stored::Stored,
    write,
};
use api::{
    field::{Error, Path},
    kind::{GroupKind, GroupResource},
    object,
    time::Time,
};
use bytes::Bytes;
use http::{Response, StatusCode};
use schema::managed_fields::{self, Target, Unconvertible};
use serde_json::{Value, json};
use world::Timestamp;

const GROUP: &str = "authentication.k8s.io";
const VERSION: &str = "v1";
const KIND: &str = "TokenRequest";

/// Kubernetes: the lifetime that kubelets ask for on behalf of pods that may not know that tokens expire.
const ASKED_FOR_PODS_SECONDS: i64 = 60 * 60 + 7;
/// Such tokens live this long; past the requested lifetime their use is only reported.
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

pub(crate) async fn request(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let types = call.types();
    let (of, _) = types.kind(GROUP, VERSION, KIND).ok_or_else(Refusal::not_served)?;
    let wanted = ExpectedKind { types, of, group: GROUP, version: VERSION, kind: KIND };
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let decoded = wanted.decode(&body, encoding, call.options.validation)?;
    decoded.warnings.into_iter().for_each(|warning| call.warn(warning));
    let mut request = decoded.value;
    kinds::defaults::default(GROUP, VERSION, KIND, &mut request);
    check_names(call, &mut request)?;
    schema::encode::normalize(types, of, &mut request);
    record_owner(call, of, &mut request);
    let mut request = admission::subresource(call, request, |_| Ok(())).await?;
    let account = find(call, call.key(&call.target.name)).await?;
    let account = account.ok_or_else(|| call.not_found(&call.target.name))?;
    fill(call, &account, &mut request)?;
    let errors = kinds::validate::create(GROUP, VERSION, KIND, &request);
    errors.into_result().map_err(|errors| Refusal::invalid(&GroupKind::new(GROUP, KIND), "", &errors))?;
    let bound = bind(call, &request).await?;
    issue(call, &account, bound, &mut request)?;
    answer::unstored(call, StatusCode::CREATED, (GROUP, VERSION, KIND), &request)
}

/// Name and namespace of the body must match the URL.
fn check_names(call: &Call, request: &mut Value) -> Result<(), Refusal> {
    let (namespace, sent) = (call.target.namespace.as_str(), object::namespace(request));
    if !sent.is_empty() && sent != namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object::set_namespace(request, namespace);
    let (name, sent) = (call.target.name.as_str(), object::name(request));
    if !sent.is_empty() && sent != name {
        let path = Path::new("metadata");
        let error =
            Error::invalid(&path.child("name"), sent, "must match the service account name if specified");
        return Err(Refusal::invalid(&GroupKind::new(GROUP, KIND), name, &error.into()));
    }
    Ok(())
}

fn record_owner(call: &Call, of: schema::types::TypeId, request: &mut Value) {
    let version = format!("{GROUP}/{VERSION}");
    let (manager, now) = (call.manager(), write::now(call).to_string());
    let target = Target {
        types: call.types(),
        of,
        version: &version,
        subresource: "token",
        filters: &[],
        convert: &|_, _| Err(Unconvertible::NoSuchVersion),
    };
    managed_fields::create(&target, request, &manager, &now);
}

/// Sets the metadata and the defaults of the request.
fn fill(call: &Call, account: &Value, request: &mut Value) -> Result<(), Refusal> {
    let name = call.target.name.as_str();
    let (sent, found) = (object::uid(request).to_owned(), object::uid(account));
    if !sent.is_empty() && sent != found {
        return Err(Refusal::conflict(
            &GroupResource::new(GROUP, KIND),
            name,
            format!(
                "the UID in the token request ({sent}) does not match the UID of the service account ({found})"
            ),
        ));
    }
    object::set_name(request, name);
    object::set_uid(request, found);
    object::set_creation_timestamp(request, Some(write::now(call)));
    if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
        request["spec"]["audiences"] = json!(call.inner.authenticator.accounts.audiences);
    }
    Ok(())
}

/// The objects that a token is bound to, beside its account.
#[derive(Default)]
struct Bonds {
    pod: Option<BoundObject>,
    node: Option<BoundObject>,
    secret: Option<BoundObject>,
}

async fn bind(call: &Call, request: &Value) -> Result<Bonds, Refusal> {
    let reference = &request["spec"]["boundObjectRef"];
    if reference.is_null() {
        return Ok(Bonds::default());
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let namespace = call.target.namespace.as_str();
    let (resource, prefix) = match (group, kind) {
        ("", "Pod") => ("pods", format!("pods/{namespace}")),
        ("", "Secret") => ("secrets", format!("secrets/{namespace}")),
        ("", "Node") => ("nodes", "minions".to_owned()),
        _ => {
            let kind = format!("{group}/{version}, Kind={kind}");
            return Err(Refusal::bad_request(format!("cannot bind token to object of type {kind}")));
        }
    };
    let found = find(call, format!("/registry/{prefix}/{name}").into()).await?;
    let found = found.ok_or_else(|| Refusal::not_found(&GroupResource::new("", resource), name))?;
    let bound = Some(BoundObject { name: name.to_owned(), uid: object::uid(&found).to_owned() });
    let bonds = match kind {
        "Pod" => Bonds { pod: bound, node: node_of(call, &found).await?, secret: None },
        "Node" => Bonds { node: bound, ..Bonds::default() },
        _ => Bonds { secret: bound, ..Bonds::default() },
    };
    let sent = text("uid");
    if !sent.is_empty() && sent != object::uid(&found) {
        let why = format!(
            "the UID in the bound object reference ({sent}) does not match the UID in record. The object might have \
             been deleted and then recreated"
        );
        return Err(Refusal::conflict(&GroupResource::new("", kind), name, why));
    }
    Ok(bonds)
}

/// The node of a pod that runs as this account.
async fn node_of(call: &Call, pod: &Value) -> Result<Option<BoundObject>, Refusal> {
    let account = call.target.name.as_str();
    if pod["spec"]["serviceAccountName"] != account {
        let account = api::go::quote(account);
        return Err(Refusal::bad_request(format!(
            "cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
        )));
    }
    let Some(name) = pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let node = find(call, format!("/registry/minions/{name}").into()).await?;
    let uid = node.map(|node| object::uid(&node).to_owned()).unwrap_or_default();
    Ok(Some(BoundObject { name: name.to_owned(), uid }))
}

fn issue(call: &Call, account: &Value, bonds: Bonds, request: &mut Value) -> Result<(), Refusal> {
    let accounts = &call.inner.authenticator.accounts;
    let now = call.inner.world.wall().as_second();
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or_default();
    let audiences = request["spec"]["audiences"].as_array().into_iter().flatten();
    let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    let is_for_us = audiences.iter().all(|audience| accounts.audiences.contains(audience));
    let is_extended = bonds.pod.is_some() && seconds == ASKED_FOR_PODS_SECONDS && is_for_us;
    let namespace = call.target.namespace.clone();
    let named = BoundObject { name: object::name(account).to_owned(), uid: object::uid(account).to_owned() };
    let claims = Claims {
        aud: audiences,
        exp: now.saturating_add(if is_extended { EXTENDED_SECONDS } else { seconds }),
        iat: now,
        iss: accounts.issuer.clone(),
        jti: call.inner.world.uid(),
        nbf: now,
        sub: crate::Caller::account_name(&namespace, &named.name),
        kubernetes: Kubernetes {
            namespace,
            node: bonds.node,
            pod: bonds.pod,
            secret: bonds.secret,
            serviceaccount: named,
            warnafter: is_extended.then_some(now.saturating_add(seconds)),
        },
    };
    let token = jwt::sign(&accounts.key, &claims);
    let token = token.ok_or_else(|| Refusal::internal_error("failed to generate token"))?;
    let expiry = Timestamp::from_second(now.saturating_add(seconds)).unwrap_or(Timestamp::MAX);
    request["status"] = json!({"token": token, "expirationTimestamp": Time::from(expiry).to_string()});
    Ok(())
}

async fn find(call: &Call, key: Bytes) -> Result<Option<Value>, Refusal> {
    let read = call.inner.store.get(key, None).await?;
    read.entry.map(|entry| Stored::new(entry.value, entry.revision).value()).transpose()
}
