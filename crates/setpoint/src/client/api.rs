//! Requests to the server, and its answers as JSON or as a stream of lines.

use super::{
    failure::{ClientError, ClientResult, StatusAnswer},
    note,
};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;

/// The most bytes of one answer; lists come in pages far below that.
const MAX_BODY: usize = 1 << 30;
/// The longest line of a stream: an event with a large object in it.
const MAX_LINE: usize = 64 << 20;

pub(crate) const JSON: &str = "application/json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// A connection to one server.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
    host: String,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Api").field("host", &self.host).finish_non_exhaustive()
    }
}

/// One request. `path` has the query in it.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) body: Vec<u8>,
}

impl<'a> Call<'a> {
    pub(crate) fn get(path: &'a str, accept: &'a str) -> Call<'a> {
        Call { method: Method::GET, path, accept, content_type: JSON, body: Vec::new() }
    }
}

impl Api {
    pub(crate) fn new(mut config: kube::Config) -> ClientResult<Api> {
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        // Each answer is handed to the caller as it is: no waiting behind their back.
        config.default_retry = false;
        let client = kube::Client::try_from(config).map_err(|error| ClientError::error(describe(&error)))?;
        Ok(Api { client, host })
    }

    /// With a client of the server in this process.
    pub(crate) fn of_client(client: kube::Client) -> Api {
        Api { client, host: "this process".to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> ClientResult<Value> {
        self.json(Call::get(path, JSON)).await
    }

    /// The answer as JSON.
    pub(crate) async fn json(&self, call: Call<'_>) -> ClientResult<Value> {
        let answer = self.send(call).await?;
        let body = collect(answer.into_body()).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ClientError::error(format!("the server's answer is no JSON: {error}")))
    }

    /// The answer as a stream of lines.
    pub(crate) async fn lines(&self, call: Call<'_>) -> ClientResult<Lines> {
        let answer = self.send(call).await?;
        Ok(Lines { body: answer.into_body(), buffer: BytesMut::new(), has_ended: false })
    }

    async fn send(&self, call: Call<'_>) -> ClientResult<Response<Body>> {
        let request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::ACCEPT, call.accept)
            .header(header::CONTENT_TYPE, call.content_type)
            .header(header::USER_AGENT, concat!("setpoint/", env!("CARGO_PKG_VERSION")))
            .body(Body::from(call.body))
            .map_err(|error| ClientError::error(format!("{}: {error}", call.path)))?;
        let answer = self.client.send(request).await.map_err(|error| self.unreachable(&error))?;
        warnings(answer.headers()).iter().for_each(|warning| note(&format!("Warning: {warning}")));
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let body = collect(answer.into_body()).await?;
        Err(ClientError::Status(Box::new(StatusAnswer::read(code, &body))))
    }

    fn unreachable(&self, error: &kube::Error) -> ClientError {
        let text = describe(error);
        if text.contains("Connection refused") {
            let host = &self.host;
            return ClientError::Text(format!(
                "The connection to the server {host} was refused - did you specify the right host or port?"
            ));
        }
        ClientError::Text(format!("Unable to connect to the server: {text}"))
    }
}

/// An error with its causes, without repetitions.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text.push_str(&format!(": {inner}"));
        }
        cause = error.source();
    }
    text
}

async fn collect(body: Body) -> ClientResult<Bytes> {
    let collected = Limited::new(body, MAX_BODY).collect().await;
    let collected =
        collected.map_err(|error| ClientError::error(format!("the server's answer was cut off: {error}")))?;
    Ok(collected.to_bytes())
}

/// The texts of `Warning: 299 - "text"` headers.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(header::WARNING).iter().filter_map(|value| value.to_str().ok());
    let quoted = texts.filter_map(|text| {
        let (start, end) = (text.find('"')?, text.rfind('"')?);
        text.get(start + 1..end)
    });
    quoted.map(|text| text.replace("\\\"", "\"").replace("\\\\", "\\")).collect()
}

/// The lines of an answer, as they come.
#[derive(Debug)]
pub(crate) struct Lines {
    body: Body,
    buffer: BytesMut,
    has_ended: bool,
}

impl Lines {
    /// The next line without its end; `None` at the end of the answer.
    pub(crate) async fn next(&mut self) -> ClientResult<Option<Bytes>> {
        let mut scanned = 0;
        loop {
            if let Some(at) = self.buffer[scanned..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(scanned + at).freeze();
                self.buffer.advance(1);
                return Ok(Some(line));
            }
            scanned = self.buffer.len();
            if self.has_ended {
                return Ok((!self.buffer.is_empty()).then(|| self.buffer.split().freeze()));
            }
            if scanned > MAX_LINE {
                return Err(ClientError::error(format!(
                    "the server sent a line of more than {MAX_LINE} bytes"
                )));
            }
            match self.chunk().await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => self.has_ended = true,
            }
        }
    }

    /// The next bytes as they come; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> ClientResult<Option<Bytes>> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(ClientError::error(format!("the server's answer was cut off: {error}")));
                }
            }
        }
    }
}

/// A path with its query. Empty values are left out.
pub(crate) fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut out = path.to_owned();
    for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        out.push(if out.contains('?') { '&' } else { '?' });
        out.push_str(name);
        out.push('=');
        out.push_str(&percent(value));
    }
    out
}

/// A text as a part of a URL.
pub(crate) fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped_and_empty_values_left_out() {
        let query = [("labelSelector", "a in (b, c)"), ("limit", ""), ("watch", "1")];
        assert_eq!(
            with_query("/api/v1/pods", &query),
            "/api/v1/pods?labelSelector=a%20in%20%28b%2C%20c%29&watch=1"
        );
    }

    #[test]
    fn warnings_are_read_from_headers() {
        let mut headers = HeaderMap::new();
        headers.append(header::WARNING, "299 - \"the \\\"old\\\" one\"".parse().unwrap());
        assert_eq!(warnings(&headers), ["the \"old\" one"]);
    }
}
