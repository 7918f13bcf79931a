//! An authorized request with everything that verbs need.

use crate::{
    Inner,
    audit_trail::Trail,
    authenticate::Caller,
    authorize::{self, Permit},
    input,
    negotiate::Form,
    refusal::Refusal,
    request::{Options, RawRequest, Target, Verb, is_web_socket},
    route::{self, Unrouted},
    served::Served,
    stored::Stored,
};
use api::{kind::GroupResource, object, time::Time};
use bytes::Bytes;
use http::{HeaderMap, header, request::Parts};
use schema::types::Types;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// Limit on the warnings of one response; each is a header.
const MAX_WARNINGS: usize = 64;

/// An authorized request: made from a [`Permit`], for the verb that it permits.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) inner: Arc<Inner>,
    caller: Arc<Caller>,
    pub(crate) target: Target,
    pub(crate) served: Arc<Served>,
    pub(crate) options: Options,
    pub(crate) headers: HeaderMap,
    pub(crate) form: Form,
    /// Shared by the parts of a request.
    notes: Arc<CallNotes>,
    /// The time that written objects record, if it is not now.
    pub(crate) time: Option<Time>,
    /// Collects audit annotations.
    pub(crate) trail: Trail,
    /// Whether its commits are noted for the hooks behind them.
    notes_commits: bool,
    /// For requests that are passed on to a node, or become a WebSocket.
    pub(crate) raw: Option<Arc<RawRequest>>,
}

/// Side results of a call.
#[derive(Debug, Default)]
struct CallNotes {
    /// Warnings for the client, from all stages.
    warnings: Mutex<Vec<String>>,
    /// Commits for the hooks that run after them; empty where no hook does.
    commits: Mutex<Vec<Committed>>,
}

/// A commit of a call: an object before and after it.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `None` if it was created.
    pub(crate) before: Option<Stored>,
    /// `None` if it was deleted.
    pub(crate) after: Option<Stored>,
}

impl Call {
    /// Fails where the resource does not support the verb.
    pub(crate) fn new(
        inner: &Arc<Inner>,
        permit: Permit,
        verb: Verb,
        served: Arc<Served>,
        mut head: Parts,
        options: Options,
    ) -> Result<Call, Unrouted> {
        let (caller, mut target) = permit.redeem(verb).map_err(Unrouted::ByRouter)?;
        let form = route::check(verb, &served, &mut target, &head.headers, &options)?;
        let trail = Trail::of(&head).clone();
        let is_raw =
            route::is_connect(&served, &target) || (verb == Verb::Watch && is_web_socket(&head.headers));
        let raw = is_raw.then(|| Arc::new(RawRequest::of(&mut head)));
        Ok(Call {
            inner: Arc::clone(inner),
            caller,
            target,
            served,
            options,
            headers: head.headers,
            form,
            notes: Arc::default(),
            time: None,
            trail,
            notes_commits: false,
            raw,
        })
    }

    /// A call that the server makes by itself.
    pub(crate) fn by_server(
        inner: &Arc<Inner>,
        served: &Arc<Served>,
        target: Target,
        options: Options,
    ) -> Call {
        Call {
            inner: Arc::clone(inner),
            caller: authorize::server_caller(),
            target,
            served: Arc::clone(served),
            options,
            headers: HeaderMap::new(),
            form: Form::default(),
            notes: Arc::default(),
            time: None,
            trail: Trail::default(),
            notes_commits: false,
            raw: None,
        }
    }

    /// The part of a request for one object of the same resource.
    pub(crate) fn for_object(&self, object: &Value) -> Call {
        let mut one = self.clone();
        one.target.namespace = object::namespace(object).to_owned();
        one.target.name = object::name(object).to_owned();
        one
    }

    /// The part of a subresource request for the object itself.
    pub(crate) fn for_parent(&self) -> Call {
        let mut parent = self.clone();
        parent.target.subresource = String::new();
        parent
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Reads the body, and keeps it for the audit log.
    pub(crate) async fn take<B>(&self, body: B) -> Result<Bytes, Refusal>
    where
        B: http_body::Body,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let bytes = input::read(body).await?;
        self.trail.sent(&bytes, input::media_type(&self.headers));
        Ok(bytes)
    }

    /// The built-in types.
    pub(crate) fn types(&self) -> &'static Types {
        self.inner.registry.types
    }

    pub(crate) fn resource(&self) -> GroupResource {
        self.served.group_resource()
    }

    pub(crate) fn key(&self, name: &str) -> Bytes {
        self.served.key(&self.target.namespace, name).into()
    }

    /// The field manager of the request.
    pub(crate) fn manager(&self) -> String {
        let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        schema::managed_fields::manager_of(&self.options.field_manager, agent.unwrap_or_default())
    }

    /// Adds a warning to the response. Those beyond the limit are dropped.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        let (text, mut warnings) =
            (text.into(), self.notes.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        if warnings.len() < MAX_WARNINGS && !text.is_empty() && !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.notes.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes from now on what is committed.
    pub(crate) fn note_commits(&mut self) {
        self.notes_commits = true;
    }

    /// Notes a commit for the hooks behind it.
    pub(crate) fn note_commit(&self, name: &str, before: Option<&Stored>, after: Option<&Stored>) {
        if self.notes_commits {
            let (namespace, name) = (self.target.namespace.clone(), name.to_owned());
            let commit = Committed { namespace, name, before: before.cloned(), after: after.cloned() };
            self.notes.commits.lock().unwrap_or_else(PoisonError::into_inner).push(commit);
        }
    }

    /// The commits since the last call of this.
    pub(crate) fn take_commits(&self) -> Vec<Committed> {
        std::mem::take(&mut self.notes.commits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn not_found(&self, name: &str) -> Refusal {
        Refusal::not_found(&self.resource(), name)
    }
}
