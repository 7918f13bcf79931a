//! The audit events of one request.

use super::{
    Auditor, content, cut,
    event::{Event, ObjectReference},
    policy::{Recording, Stage},
};
use crate::{
    Body, Inner,
    answer::Holding,
    audit_trail::{AuditLevel, Trail},
    authenticate::Caller,
    authorize::{Attributes, OnResource},
    input::Encoding,
    request::{ClientAddress, Options, Place},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, header, request::Parts, response, uri::PathAndQuery,
};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{
    net::IpAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use world::Timestamp;

const ID: HeaderName = HeaderName::from_static("audit-id");
// Kubernetes: a longer user agent is truncated, with this suffix.
const MAX_AGENT_BYTES: usize = 1024;
const CUT: &str = "...TRUNCATED";

/// A request that the policy records.
#[derive(Debug)]
pub(crate) struct Record {
    inner: Arc<Inner>,
    trail: Trail,
    recording: Recording,
    id: String,
    uri: String,
    verb: String,
    user: Value,
    source_ips: Vec<String>,
    agent: String,
    object: Option<ObjectReference>,
    received: Timestamp,
    status: Value,
    answer: Option<Value>,
    is_over: bool,
}

/// Records RequestReceived, if the policy matches; the trail is then among the request's extensions.
pub(crate) async fn begin(
    inner: &Arc<Inner>,
    caller: &Caller,
    head: &mut Parts,
    place: &Place,
    options: &Options,
) -> Option<Box<Record>> {
    inner.audit.as_ref()?;
    let record = Record::of(inner, Some(caller), head, place, options)?;
    head.extensions.insert(record.trail.clone());
    Box::pin(record.emit(Stage::RequestReceived)).await;
    Some(record)
}

/// Records a request that failed authentication.
pub(crate) async fn refused(inner: &Arc<Inner>, head: &Parts, place: &Place, options: &Options) {
    if inner.audit.is_none() {
        return;
    }
    let Some(mut record) = Record::of(inner, None, head, place, options) else { return };
    record.status = json!({
        "metadata": {}, "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
    });
    if record.recording.level == AuditLevel::RequestResponse {
        let mut answer = json!({"kind": "Status", "apiVersion": "v1"});
        if let (Some(answer), Some(status)) = (answer.as_object_mut(), record.status.as_object()) {
            answer.extend(status.clone());
        }
        record.answer = Some(answer);
    }
    record.is_over = true;
    record.emit(Stage::ResponseStarted).await;
}

/// Records ResponseComplete; for a watch, ResponseStarted now and ResponseComplete when it ends.
pub(crate) async fn end(record: Option<Box<Record>>, response: Response<Body>) -> Response<Body> {
    match record {
        Some(record) => Box::pin(end_of(record, response)).await,
        None => response,
    }
}

async fn end_of(mut record: Box<Record>, response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Ok(id) = HeaderValue::from_str(&record.id) {
        head.headers.insert(ID, id);
    }
    record.status = json!({"metadata": {}, "code": head.status.as_u16()});
    let Some(size) = body.size_hint().exact() else {
        record.emit(Stage::ResponseStarted).await;
        return Response::from_parts(head, Holding::boxed(body, record));
    };
    let body = if size > 0 && record.wants_answer(&head) {
        let Ok(whole) = body.collect().await;
        let bytes = whole.to_bytes();
        record.answered(&head, &bytes);
        Full::new(bytes).boxed_unsync()
    } else {
        body
    };
    record.is_over = true;
    record.emit(Stage::ResponseComplete).await;
    Response::from_parts(head, body)
}

/// Records that a request ended in a panic.
pub(crate) async fn panicked(
    record: Option<Box<Record>>,
    mut response: Response<Body>,
    message: &str,
) -> Response<Body> {
    let Some(mut record) = record else { return response };
    if let Ok(id) = HeaderValue::from_str(&record.id) {
        response.headers_mut().insert(ID, id);
    }
    record.status = panic_status(message);
    record.is_over = true;
    record.emit(Stage::Panic).await;
    response
}

// Kubernetes: the Status that it records for a panic.
fn panic_status(message: &str) -> Value {
    json!({
        "metadata": {}, "status": "Failure", "message": format!("APIServer panic'd: {message}"),
        "reason": "InternalError", "code": 500,
    })
}

impl Record {
    fn of(
        inner: &Arc<Inner>,
        caller: Option<&Caller>,
        head: &Parts,
        place: &Place,
        options: &Options,
    ) -> Option<Box<Record>> {
        let method = head.method.as_str().to_lowercase();
        let (wanted, version) = match place {
            Place::Other(path) => (Attributes::Path { verb: &method, path }, ""),
            Place::Resource(target) => {
                let verb = target.verb(&head.method, options.watch);
                (Attributes::Resource(OnResource::by_method(verb, target, options)), target.version.as_str())
            }
        };
        let auditor = inner.audit.as_ref()?;
        let recording = auditor.policy.recording(caller, &wanted);
        auditor.count(recording.map_or(AuditLevel::None, |recording| recording.level));
        let recording = recording?.clone();
        let (verb, object) = match &wanted {
            Attributes::Path { verb, .. } => (*verb, None),
            Attributes::Resource(wanted) => (wanted.verb, Some(ObjectReference::of(wanted, version))),
        };
        let given = head.headers.get(ID).and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
        Some(Box::new(Record {
            trail: Trail::new(recording.level),
            recording,
            id: given.map_or_else(|| inner.world.uid(), str::to_owned),
            // Without the host, which HTTP/2 sends along.
            uri: head.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned(),
            verb: verb.to_owned(),
            user: caller.map_or_else(|| json!({}), Caller::info),
            source_ips: source_ips(head),
            agent: agent(&head.headers),
            object,
            received: inner.world.wall(),
            status: Value::Null,
            answer: None,
            is_over: false,
            inner: Arc::clone(inner),
        }))
    }

    /// Whether the response body is recorded.
    fn wants_answer(&self, head: &response::Parts) -> bool {
        let is_recorded = self.recording.level == AuditLevel::RequestResponse;
        self.object.is_some() && (is_recorded || !head.status.is_success() || self.verb.starts_with("delete"))
    }

    fn answered(&mut self, head: &response::Parts, body: &Bytes) {
        let media_type =
            head.headers.get(header::CONTENT_TYPE).and_then(|media_type| media_type.to_str().ok());
        let encoding = Encoding::of_media_type(media_type.unwrap_or_default());
        let Some(mut object) = content::read(body, encoding) else { return };
        if api::object::kind(&object) == "Status" {
            for field in ["status", "message", "reason", "details", "code"] {
                if let Some(value) = object.get(field) {
                    self.status[field] = value.clone();
                }
            }
        }
        if self.recording.level == AuditLevel::RequestResponse {
            if self.recording.omits_owners {
                content::without_owners(&mut object);
            }
            self.answer = Some(object);
        }
    }

    fn event(&self, stage: Stage) -> Bytes {
        let notes = self.trail.notes();
        let mut object = self.object.clone();
        let mut sent = notes.sent.as_ref().and_then(|sent| content::read(&sent.body, sent.encoding));
        if let (Some(reference), Some(sent)) = (&mut object, &sent)
            && notes.sent.as_ref().is_some_and(|it| it.is_object)
        {
            reference.complete(sent);
        }
        if let Some(sent) = sent.as_mut().filter(|_| self.recording.omits_owners) {
            content::without_owners(sent);
        }
        let (acting, constraint) = notes.acting.unzip();
        let constraint = constraint.filter(|it| !it.is_empty());
        let now = match stage {
            Stage::RequestReceived => self.received,
            _ => self.inner.world.wall(),
        };
        let event = Event {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: self.recording.level,
            id: &self.id,
            stage,
            uri: &self.uri,
            verb: &self.verb,
            user: &self.user,
            impersonated_user: acting.map(|caller| caller.info()),
            authentication_metadata: constraint.map(|it| json!({"impersonationConstraint": it})),
            source_ips: &self.source_ips,
            user_agent: &self.agent,
            object_ref: object,
            response_status: &self.status,
            request_object: sent.filter(|_| self.recording.level >= AuditLevel::Request),
            response_object: self.answer.as_ref(),
            request_received_timestamp: micros(self.received),
            stage_timestamp: micros(now),
            annotations: notes.annotations,
        };
        let mut line = serde_json::to_vec(&event).unwrap_or_default();
        line.push(b'\n');
        line.into()
    }

    /// The auditor and the event's line; `None` if the policy omits this stage.
    fn line(&self, stage: Stage) -> Option<(&Auditor, Bytes)> {
        let auditor = self.inner.audit.as_ref().filter(|_| !self.recording.omitted.contains(&stage))?;
        auditor.events.fetch_add(1, Relaxed);
        Some((auditor, self.event(stage)))
    }

    async fn emit(&self, stage: Stage) {
        if let Some((auditor, line)) = self.line(stage) {
            auditor.log.add(line).await;
        }
    }
}

impl Drop for Record {
    /// The client closed the connection before the response, or a watch ended.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let panic = self.trail.notes().panic;
        let stage = if panic.is_some() { Stage::Panic } else { Stage::ResponseComplete };
        if let Some(message) = panic {
            self.status = panic_status(&message);
        } else if self.status.is_null() {
            // Kubernetes: the Status where no response was sent.
            self.status = json!({
                "metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200,
            });
        }
        if let Some((auditor, line)) = self.line(stage) {
            auditor.log.try_add(line);
        }
    }
}

fn micros(moment: Timestamp) -> String {
    api::time::MicroTime::from(moment).to_string()
}

fn agent(headers: &HeaderMap) -> String {
    let given = headers.get(header::USER_AGENT).map(|given| String::from_utf8_lossy(given.as_bytes()));
    let mut agent = given.unwrap_or_default().into_owned();
    if agent.len() > MAX_AGENT_BYTES {
        cut(&mut agent, MAX_AGENT_BYTES);
        agent.push_str(CUT);
    }
    agent
}

/// Kubernetes: addresses from proxy headers, then that of the connection.
fn source_ips(head: &Parts) -> Vec<String> {
    let given = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let forwarded = given("x-forwarded-for").split(',');
    let mut found: Vec<IpAddr> = forwarded.filter_map(|part| part.trim().parse().ok()).collect();
    if let Ok(real) = given("x-real-ip").parse()
        && !found.contains(&real)
    {
        found.push(real);
    }
    if let Some(ClientAddress(address)) = head.extensions.get()
        && found.last() != Some(&address.ip())
    {
        found.push(address.ip());
    }
    found.iter().map(IpAddr::to_string).collect()
}
