//! DeleteOptions, from the body or else from the query.

use crate::{
    call::Call,
    input::{self, Encoding},
    refusal::{self, Refusal},
    request,
};
use api::{
    field::{Error, ErrorList, Path},
    go,
};
use schema::{
    decode::{self, FieldValidation},
    proto::{self, Envelope},
};
use serde_json::Value;

const KIND: &str = "DeleteOptions";

#[derive(Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(super) grace_seconds: Option<i64>,
    propagation: Option<String>,
    /// The deprecated orphanDependents.
    orphan: Option<bool>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    dry_run: Vec<String>,
}

impl DeleteOptions {
    /// Kubernetes: with a body, the query is ignored except for dryRun.
    pub(super) fn read(call: &mut Call, body: &[u8]) -> Result<DeleteOptions, Refusal> {
        let options = match body {
            [] => DeleteOptions::of_query(&call.options)?,
            body => {
                let mut options = DeleteOptions::of(&read_body(call, body)?);
                options.dry_run.extend(call.options.dry_run.iter().cloned());
                options
            }
        };
        options.check()?;
        if options.is_dry_run() {
            call.options.dry_run = options.dry_run.clone();
        }
        Ok(options)
    }

    fn of_query(query: &request::Options) -> Result<DeleteOptions, Refusal> {
        let given = |name: &str| query.rest.get(name);
        let grace_seconds = given("gracePeriodSeconds").map(|text| go::parse_int(text)).transpose();
        Ok(DeleteOptions {
            grace_seconds: grace_seconds.map_err(Refusal::bad_request)?,
            propagation: given("propagationPolicy").cloned(),
            orphan: given("orphanDependents").map(|text| request::flag(text)),
            uid: given("uid").filter(|uid| !uid.is_empty()).cloned(),
            resource_version: Some(query.resource_version.clone()).filter(|version| !version.is_empty()),
            dry_run: query.dry_run.clone(),
        })
    }

    /// Reads a decoded DeleteOptions.
    pub(crate) fn of(value: &Value) -> DeleteOptions {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let dry_run = value.get("dryRun").and_then(Value::as_array).into_iter().flatten();
        DeleteOptions {
            grace_seconds: value.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation: text("/propagationPolicy"),
            orphan: value.get("orphanDependents").and_then(Value::as_bool),
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            dry_run: dry_run.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    fn check(&self) -> Result<(), Refusal> {
        let mut errors = ErrorList::new();
        let path = Path::new("propagationPolicy");
        if let Some(policy) = self.propagation.as_deref() {
            if self.orphan.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(Error::invalid(&path, policy, detail));
            } else if !["Foreground", "Background", "Orphan"].contains(&policy) {
                let choices = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(Error::not_supported(&path, policy, choices));
            }
        }
        if self.dry_run.iter().any(|stage| stage != "All") {
            let given = Value::from(self.dry_run.clone());
            errors.push(Error::not_supported(&Path::new("dryRun"), &given, ["All"]));
        }
        refusal::check_options(KIND, errors)
    }

    /// The propagationPolicy; `None` where the client does not say.
    pub(super) fn policy(&self) -> Option<&str> {
        let given = || self.orphan.map(|orphan| if orphan { "Orphan" } else { "Background" });
        self.propagation.as_deref().or_else(given)
    }
}

// Kubernetes: only the kind is checked. Old clients send the apiVersion of the objects they delete.
fn read_body(call: &Call, body: &[u8]) -> Result<Value, Refusal> {
    let types = call.types();
    let of = types.named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    let (of, _) = of.ok_or_else(Refusal::not_served)?;
    let refused = |error: decode::DecodeError| Refusal::bad_request(error.to_string());
    let decode_json = |json: &[u8]| {
        let given = decode::type_meta(json).map_err(refused)?;
        check_kind(&given.api_version, &given.kind)?;
        Ok(decode::decode(types, of, json, FieldValidation::Ignore).map_err(refused)?.value)
    };
    match input::encoding(input::media_type(&call.headers))? {
        Encoding::Json => decode_json(body),
        Encoding::Yaml => decode_json(&schema::yaml::to_json(body).map_err(refused)?.json),
        Encoding::Protobuf => {
            let envelope = Envelope::open(body).map_err(|error| Refusal::bad_request(error.to_string()))?;
            check_kind(&envelope.api_version, &envelope.kind)?;
            proto::decode(types, of, &envelope.raw).map_err(|error| Refusal::bad_request(error.to_string()))
        }
    }
}

fn check_kind(api_version: &str, kind: &str) -> Result<(), Refusal> {
    if api_version.matches('/').count() > 1 {
        return Err(Refusal::bad_request(format!("unexpected GroupVersion string: {api_version}")));
    }
    if matches!(kind, "" | KIND) {
        return Ok(());
    }
    let version = if api_version.is_empty() { "meta.k8s.io/v1" } else { api_version };
    // Kubernetes: the location in its source is part of the text.
    Err(Refusal::bad_request(format!(
        "no kind {} is registered for version {} in scheme \
         \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
        go::quote(kind),
        go::quote(version),
    )))
}
