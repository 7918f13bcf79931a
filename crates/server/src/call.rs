//! A request that may be carried out, with all that is known of it: every verb takes one.

use crate::{
    Inner,
    audit::Trail,
    authenticate::Caller,
    authorize::{self, Permit},
    input,
    negotiate::Form,
    refusal::Refusal,
    request::{Options, Target, Verb},
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

/// Warnings of one answer; each is a header.
const MAX_WARNINGS: usize = 64;

/// A request that may be carried out: it is made of a [`Permit`], and does what that permits.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) inner: Arc<Inner>,
    caller: Arc<Caller>,
    pub(crate) target: Target,
    pub(crate) served: Arc<Served>,
    pub(crate) options: Options,
    pub(crate) headers: HeaderMap,
    pub(crate) form: Form,
    /// Parts of the same request share them.
    notes: Arc<CallNotes>,
    /// The time that what it writes bears, where that is not now.
    pub(crate) time: Option<Time>,
    /// Where it leaves notes for auditors.
    pub(crate) trail: Trail,
    /// Whether its commits are noted for the hooks behind them.
    notes_commits: bool,
}

/// What comes of a call beside its answer.
#[derive(Debug, Default)]
struct CallNotes {
    /// For the caller, whichever stage finds them.
    warnings: Mutex<Vec<String>>,
    /// What was committed, for the hooks behind a commit; nothing where none is concerned.
    commits: Mutex<Vec<Committed>>,
}

/// A commit of a call: an object before and after it.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `None` where it was created.
    pub(crate) before: Option<Stored>,
    /// `None` where it was removed.
    pub(crate) after: Option<Stored>,
}

impl Call {
    /// Finds out whether what is served knows the verb.
    pub(crate) fn new(
        inner: &Arc<Inner>,
        permit: Permit,
        verb: Verb,
        served: Arc<Served>,
        head: Parts,
        options: Options,
    ) -> Result<Call, Unrouted> {
        let (caller, mut target) = permit.redeem(verb).map_err(Unrouted::ByRouter)?;
        let form = route::check(verb, &served, &mut target, &head.headers, &options)?;
        let trail = Trail::of(&head).clone();
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
        })
    }

    /// What the server does of its own accord.
    pub(crate) fn by_server(
        inner: &Arc<Inner>,
        served: &Arc<Served>,
        target: Target,
        options: Options,
    ) -> Call {
        Call {
            inner: Arc::clone(inner),
            caller: authorize::itself(),
            target,
            served: Arc::clone(served),
            options,
            headers: HeaderMap::new(),
            form: Form::default(),
            notes: Arc::default(),
            time: None,
            trail: Trail::default(),
            notes_commits: false,
        }
    }

    /// The part of a request that concerns one object of the same resource.
    pub(crate) fn for_object(&self, object: &Value) -> Call {
        let mut one = self.clone();
        one.target.namespace = object::namespace(object).to_owned();
        one.target.name = object::name(object).to_owned();
        one
    }

    /// The part of a request for a subresource that concerns the object itself.
    pub(crate) fn for_parent(&self) -> Call {
        let mut parent = self.clone();
        parent.target.subresource = String::new();
        parent
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Reads the body, and notes what was sent.
    pub(crate) async fn take<B>(&self, body: B) -> Result<Bytes, Refusal>
    where
        B: http_body::Body,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let bytes = input::read(body).await?;
        self.trail.sent(&bytes, input::media_type(&self.headers));
        Ok(bytes)
    }

    /// The table of the built-in types.
    pub(crate) fn types(&self) -> &'static Types {
        self.inner.registry.types
    }

    pub(crate) fn resource(&self) -> GroupResource {
        self.served.group_resource()
    }

    pub(crate) fn key(&self, name: &str) -> Bytes {
        self.served.key(&self.target.namespace, name).into()
    }

    /// Who writes, for the record of field owners.
    pub(crate) fn manager(&self) -> String {
        let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        schema::managed_fields::manager_of(&self.options.field_manager, agent.unwrap_or_default())
    }

    /// Tells the caller something beside the answer. Of too many, the first are told.
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

    /// What was committed since the last time.
    pub(crate) fn take_commits(&self) -> Vec<Committed> {
        std::mem::take(&mut self.notes.commits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn not_found(&self, name: &str) -> Refusal {
        Refusal::not_found(&self.resource(), name)
    }
}
