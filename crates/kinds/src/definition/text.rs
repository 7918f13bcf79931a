//! The text of a definition in, its parts out; schemas stay text.
//!
//! Schemas are most of it, so they are taken out before anything is parsed: in their places stand numbers.

use api::kind::compare_versions;
use bytes::Bytes;
use schema::scan;
use serde::Deserialize;
use std::ops::Range;

use super::approval::is_protected;
use super::condition::{ESTABLISHED, NAMES_ACCEPTED, NON_STRUCTURAL, TERMINATING};
use super::{
    Conversion, ConversionWebhook, Definition, DefinitionNames, PrinterColumn, Scale, State, Version,
    WebhookAddress,
};
use crate::resources::Scope;

const DEFAULT_PORT: u16 = 443;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Text {
    metadata: MetadataText,
    spec: Spec,
    status: StatusText,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct MetadataText {
    name: String,
    uid: String,
    generation: i64,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    group: String,
    scope: String,
    names: NamesText,
    versions: Option<Vec<VersionText>>,
    conversion: Option<ConversionText>,
    preserve_unknown_fields: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NamesText {
    plural: String,
    singular: String,
    kind: String,
    list_kind: String,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct VersionText {
    name: String,
    served: bool,
    storage: bool,
    deprecated: bool,
    deprecation_warning: Option<String>,
    schema: Option<SchemaText>,
    subresources: Option<Subresources>,
    additional_printer_columns: Option<Vec<ColumnText>>,
    selectable_fields: Option<Vec<SelectableText>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SchemaText {
    /// Which of the schemas that were taken out.
    #[serde(rename = "openAPIV3Schema")]
    open_api: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Subresources {
    status: Option<serde::de::IgnoredAny>,
    scale: Option<ScaleText>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ScaleText {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ColumnText {
    name: String,
    r#type: String,
    format: String,
    description: String,
    priority: i32,
    json_path: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct SelectableText {
    json_path: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConversionText {
    strategy: String,
    webhook: Option<WebhookText>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WebhookText {
    client_config: Option<ClientText>,
    conversion_review_versions: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ClientText {
    url: Option<String>,
    service: Option<ServiceText>,
    ca_bundle: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServiceText {
    namespace: String,
    name: String,
    path: Option<String>,
    port: Option<u16>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusText {
    accepted_names: Option<NamesText>,
    conditions: Option<Vec<ConditionText>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConditionText {
    r#type: String,
    status: String,
}

pub(super) fn parse(json: &Bytes) -> Result<Definition, serde_json::Error> {
    let Places { versions: place, schemas } = Places::find(json).unwrap_or_default();
    let (rest, schemas) = without(schemas, json);
    let mut text: Text = serde_json::from_slice(&rest)?;
    let versions = text.spec.versions.take().unwrap_or_default();
    let deprecations =
        versions.iter().map(|version| deprecation(version, &versions, &text.spec.group, &text.spec.names));
    let deprecations: Vec<_> = deprecations.collect();
    let versions = versions.into_iter().zip(deprecations);
    let versions = versions.map(|(version, deprecation)| read_version(version, deprecation, &schemas));
    Ok(text.say(versions.collect(), json.slice(place)))
}

/// A later state of what is known: `None` where not only its status or metadata may have changed.
pub(super) fn parse_next(json: &Bytes, known: &Definition) -> Result<Option<Definition>, serde_json::Error> {
    let Some(place) = known.find_same_versions(json) else { return Ok(None) };
    let rest = [&json[..place.start], b"[]", &json[place.end..]].concat();
    let text: Text = serde_json::from_slice(&rest)?;
    if (&text.metadata.uid, text.metadata.generation) != (&known.uid, known.generation) {
        return Ok(None);
    }
    // Nothing may hold on to the text of the state before.
    let versions_text = json.slice(place);
    let versions = known.versions.iter().map(|version| version.within(&known.versions_text, &versions_text));
    Ok(Some(text.say(versions.collect(), versions_text)))
}

impl Text {
    fn say(self, versions: Vec<Version>, versions_text: Bytes) -> Definition {
        let Text { metadata, spec, status } = self;
        let (wanted, accepted) = (
            DefinitionNames::from(spec.names),
            DefinitionNames::from(status.accepted_names.unwrap_or_default()),
        );
        let preserves = spec.preserve_unknown_fields == Some(true);
        let mut state = state(&status.conditions.unwrap_or_default());
        state.settled &= wanted == accepted && metadata.deletion_timestamp.is_none();
        // Approvals are told of anew, and so are the faults of schemas from before.
        state.settled &= !preserves && !is_protected(&spec.group);
        Definition {
            name: metadata.name,
            uid: metadata.uid,
            generation: metadata.generation,
            scope: if spec.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
            group: spec.group,
            names: if accepted.plural.is_empty() { wanted } else { accepted.clone() },
            accepted,
            versions,
            versions_text,
            conversion: spec.conversion.map_or(Conversion::None, Conversion::from),
            state,
            preserve_unknown_fields: preserves,
        }
    }
}

/// Where in the text of a definition its versions lie, and their schemas.
#[derive(Default)]
struct Places {
    versions: Range<usize>,
    schemas: Vec<Range<usize>>,
}

impl Places {
    /// Nothing is looked at twice.
    fn find(json: &[u8]) -> Option<Places> {
        let start = scan::start(json, 0, &["spec", "versions"]).filter(|at| json[*at] == b'[')?;
        let (mut schemas, mut at) = (Vec::new(), start + 1);
        while json.get(at) == Some(&b'{') {
            let schema = scan::start(json, at, &["schema", "openAPIV3Schema"]);
            let schema = schema.filter(|at| json.get(*at) == Some(&b'{'));
            let schema = schema.and_then(|start| Some(start..scan::value_end(json, start)?));
            at = match &schema {
                // Behind the schema, and what is around it.
                Some(schema) => scan::closed(json, schema.end, 2)?,
                None => scan::value_end(json, at)?,
            };
            schemas.extend(schema);
            at += usize::from(json.get(at) == Some(&b','));
        }
        Some(Places { versions: start..at + 1, schemas }).filter(|_| json.get(at) == Some(&b']'))
    }
}

/// A number for each schema in the text, and the schemas.
fn without(schemas: Vec<Range<usize>>, json: &Bytes) -> (Vec<u8>, Vec<Bytes>) {
    let (mut rest, mut texts) = (Vec::new(), Vec::new());
    let mut taken = 0;
    for schema in schemas {
        rest.extend_from_slice(&json[taken..schema.start]);
        rest.extend_from_slice(texts.len().to_string().as_bytes());
        taken = schema.end;
        texts.push(json.slice(schema));
    }
    rest.extend_from_slice(&json[taken..]);
    (rest, texts)
}

fn read_version(version: VersionText, deprecation: Option<String>, schemas: &[Bytes]) -> Version {
    let subresources = version.subresources.unwrap_or_default();
    let schema = version.schema.and_then(|schema| schema.open_api);
    let selectable = version.selectable_fields.unwrap_or_default();
    Version {
        name: version.name,
        served: version.served,
        storage: version.storage,
        deprecation,
        has_status: subresources.status.is_some(),
        scale: subresources.scale.map(Scale::from),
        columns: version.additional_printer_columns.into_iter().flatten().map(PrinterColumn::from).collect(),
        selectable: selectable.into_iter().map(|field| field.json_path).collect(),
        schema: schema.and_then(|number| schemas.get(number).cloned()),
    }
}

/// What the version says of itself, or else which newer one to use.
fn deprecation(version: &VersionText, all: &[VersionText], group: &str, names: &NamesText) -> Option<String> {
    if !version.deprecated {
        return None;
    }
    if let Some(warning) = &version.deprecation_warning {
        return Some(warning.clone());
    }
    let kind = &names.kind;
    let is_newer = |it: &&VersionText| compare_versions(&it.name, &version.name).is_gt();
    let newest = all
        .iter()
        .filter(|it| it.served && !it.deprecated)
        .filter(is_newer)
        .max_by(|one, other| compare_versions(&one.name, &other.name));
    let instead = newest.map(|it| format!("; use {group}/{} {kind}", it.name)).unwrap_or_default();
    Some(format!("{group}/{} {kind} is deprecated{instead}", version.name))
}

fn state(conditions: &[ConditionText]) -> State {
    let is_true = |name: &str| conditions.iter().any(|it| it.r#type == name && it.status == "True");
    State {
        names_accepted: is_true(NAMES_ACCEPTED),
        established: is_true(ESTABLISHED),
        terminating: is_true(TERMINATING),
        settled: [NAMES_ACCEPTED, ESTABLISHED].into_iter().all(is_true)
            && ![TERMINATING, NON_STRUCTURAL].into_iter().any(is_true),
    }
}

impl From<NamesText> for DefinitionNames {
    fn from(text: NamesText) -> Self {
        DefinitionNames {
            plural: text.plural,
            singular: text.singular,
            kind: text.kind,
            list_kind: text.list_kind,
            short_names: text.short_names.unwrap_or_default(),
            categories: text.categories.unwrap_or_default(),
        }
    }
}

impl From<ScaleText> for Scale {
    fn from(text: ScaleText) -> Self {
        Scale {
            spec_replicas: text.spec_replicas_path,
            status_replicas: text.status_replicas_path,
            label_selector: text.label_selector_path.filter(|path| !path.is_empty()),
        }
    }
}

impl From<ColumnText> for PrinterColumn {
    fn from(text: ColumnText) -> Self {
        PrinterColumn {
            name: text.name,
            type_name: text.r#type,
            format: text.format,
            description: text.description,
            priority: text.priority,
            json_path: text.json_path,
        }
    }
}

impl From<ConversionText> for Conversion {
    fn from(text: ConversionText) -> Self {
        let webhook = text.webhook.filter(|_| text.strategy == "Webhook");
        let Some(webhook) = webhook else { return Conversion::None };
        let client = webhook.client_config.unwrap_or_default();
        let address = match (client.url, client.service) {
            (Some(url), _) => WebhookAddress::Url(url),
            (None, service) => {
                let service = service.unwrap_or_default();
                WebhookAddress::Service {
                    namespace: service.namespace,
                    name: service.name,
                    path: service.path.unwrap_or_default(),
                    port: service.port.unwrap_or(DEFAULT_PORT),
                }
            }
        };
        Conversion::Webhook(ConversionWebhook {
            address,
            ca_bundle: client.ca_bundle.unwrap_or_default(),
            review_versions: webhook.conversion_review_versions.unwrap_or_default(),
        })
    }
}
