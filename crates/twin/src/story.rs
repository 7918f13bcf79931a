//! A story: requests in order, with placeholders for each server's own values.
//!
//! Texts may contain `{ns}` (the namespace of this run), `{id}` (letters of this run, for cluster-scoped
//! names), `{rv:NAME}`, `{firstrv:NAME}` and `{uid:NAME}` (of the object of that name, from this server's
//! last or first response), `{list}` and `{firstlist}` (the resourceVersion of the last and the first list)
//! and `{continue}` (its token).

use crate::json::Json;

#[derive(Clone, Debug)]
pub struct Story {
    /// Its subject, for reports.
    pub theme: &'static str,
    /// Sent first, never dropped by shrinking.
    pub setup: Vec<Step>,
    pub steps: Vec<Step>,
    /// Sent last and not compared, so that objects do not pile up.
    pub cleanup: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub request: Request,
    pub compared: bool,
    /// Repeated until the response contains this text, up to a limit: the real server applies some writes
    /// later.
    pub until: Option<String>,
    /// Sent to the real server alone: Setpoint does it by itself.
    pub real_only: bool,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    /// Without the query.
    pub path: String,
    /// Already escaped: `a=b&c=d`.
    pub query: String,
    pub user: &'static str,
    /// Further headers, among them `Accept`.
    pub headers: Vec<(&'static str, String)>,
    pub content_type: Option<String>,
    pub body: Body,
    pub http2: bool,
    /// A watch ends as soon as an event holds this text.
    pub watch_until: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Body {
    None,
    Json(Json),
    Yaml(Json),
    /// Encoded by the object's kind; sent as JSON if that fails.
    Protobuf(Json),
    Raw(Vec<u8>),
}

impl Body {
    pub fn json(&self) -> Option<&Json> {
        match self {
            Body::Json(json) | Body::Yaml(json) | Body::Protobuf(json) => Some(json),
            Body::None | Body::Raw(_) => None,
        }
    }

    /// The same format with another object.
    #[must_use]
    pub fn with(&self, json: Json) -> Body {
        match self {
            Body::Yaml(_) => Body::Yaml(json),
            Body::Protobuf(_) => Body::Protobuf(json),
            Body::Json(_) | Body::None | Body::Raw(_) => Body::Json(json),
        }
    }
}

pub const ADMIN: &str = "admin";
pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

impl Request {
    pub fn new(method: &'static str, path: impl Into<String>) -> Request {
        Request {
            method,
            path: path.into(),
            query: String::new(),
            user: ADMIN,
            headers: vec![("accept", JSON.to_owned())],
            content_type: None,
            body: Body::None,
            http2: false,
            watch_until: None,
        }
    }

    #[must_use]
    pub fn query(mut self, query: impl AsRef<str>) -> Request {
        let query = query.as_ref();
        if !query.is_empty() {
            let joint = if self.query.is_empty() { "" } else { "&" };
            self.query = format!("{}{joint}{query}", self.query);
        }
        self
    }

    #[must_use]
    pub fn accept(mut self, accept: impl Into<String>) -> Request {
        self.headers.retain(|(name, _)| *name != "accept");
        self.headers.push(("accept", accept.into()));
        self
    }

    #[must_use]
    pub fn body(mut self, content_type: &str, body: Body) -> Request {
        self.content_type = Some(content_type.to_owned());
        self.body = body;
        self
    }

    #[must_use]
    pub fn json(self, object: Json) -> Request {
        self.body(JSON, Body::Json(object))
    }

    #[must_use]
    pub fn user(mut self, user: &'static str) -> Request {
        self.user = user;
        self
    }

    pub fn accepted(&self) -> &str {
        self.headers.iter().find(|(name, _)| *name == "accept").map_or("", |(_, value)| value)
    }

    pub fn is_watch(&self) -> bool {
        self.query.split('&').any(|pair| pair == "watch=1" || pair == "watch=true")
    }

    /// A list that may be answered from a cache that has not seen the last write.
    pub fn may_be_stale(&self) -> bool {
        !self.is_watch() && self.query.contains("resourceVersionMatch=NotOlderThan")
    }

    pub fn target(&self) -> String {
        let joint = if self.query.is_empty() { "" } else { "?" };
        format!("{}{joint}{}", self.path, self.query)
    }

    pub fn compared(self) -> Step {
        Step { request: self, compared: true, until: None, real_only: false }
    }

    /// Part of the setup: its response is not compared.
    pub fn uncompared(self) -> Step {
        Step { request: self, compared: false, until: None, real_only: false }
    }

    pub fn until(self, text: &str) -> Step {
        Step { until: Some(text.to_owned()), ..self.uncompared() }
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} '{}'", self.method, self.target())?;
        if self.user != ADMIN {
            write!(f, " as {}", self.user)?;
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| value != JSON) {
            write!(f, " -H '{name}: {value}'")?;
        }
        if self.http2 {
            f.write_str(" --http2")?;
        }
        if let Some(content_type) = &self.content_type {
            write!(f, " -H 'content-type: {content_type}'")?;
        }
        match &self.body {
            Body::None => Ok(()),
            Body::Json(json) => write!(f, " -d '{json}'"),
            Body::Yaml(json) => write!(f, " -d (as YAML) '{json}'"),
            Body::Protobuf(json) => write!(f, " -d (as protobuf) '{json}'"),
            Body::Raw(bytes) => write!(f, " -d '{}'", String::from_utf8_lossy(bytes)),
        }
    }
}
