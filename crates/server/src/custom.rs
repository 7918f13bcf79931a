//! A custom resource: one version of its definition, compiled at first use.

mod schemas;

pub(crate) use schemas::Schemas;

use api::{
    field::{ErrorList, Path},
    meta::{self, ObjectMeta},
    name::NameRule,
    object,
};
use kinds::definition::{Definition, Version};
use schema::{
    structural::{Change, ScalePaths, Structural, Through, cells::Columns, json_path::JsonPath},
    types::{TypeId, Types},
};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};
use store::Revision;

// Kubernetes: this finalizer of a definition says that its objects are still being removed.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// One version of a custom resource.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) definition: Arc<Definition>,
    /// The revision at which the form of its objects last changed.
    pub(crate) since: Revision,
    /// Its index among the definition's versions.
    at: usize,
    compiled: Arc<[OnceLock<CompiledSchema>]>,
    schemas: Arc<Schemas>,
}

/// The compiled schema of a version.
#[derive(Debug)]
pub(crate) struct CompiledSchema {
    pub(crate) schema: Arc<Structural>,
    /// The schema as a type table, which only writes need.
    table: OnceLock<(Types, TypeId)>,
    kind: [String; 3],
    pub(crate) columns: Columns,
    /// Selectable fields by their label: `spec.size`.
    selectable: Vec<(String, JsonPath)>,
    pub(crate) scale: Option<ScalePaths>,
}

impl Custom {
    /// The served versions of a definition that was written at `revision`. Reuses compiled schemas of its
    /// earlier state if these are unchanged.
    pub(crate) fn versions(
        definition: &Arc<Definition>,
        revision: Revision,
        before: Option<&Custom>,
        schemas: &Arc<Schemas>,
    ) -> Vec<Custom> {
        let same = before.filter(|before| {
            let (old, new) = (&before.definition, definition);
            (&old.uid, old.generation, &old.names) == (&new.uid, new.generation, &new.names)
        });
        let (since, compiled) = match same {
            Some(before) => (before.since, Arc::clone(&before.compiled)),
            None => (revision, definition.versions.iter().map(|_| OnceLock::new()).collect()),
        };
        let served = definition.versions.iter().enumerate().filter(|(_, version)| version.served);
        served
            .map(|(at, _)| Custom {
                definition: Arc::clone(definition),
                since,
                at,
                compiled: Arc::clone(&compiled),
                schemas: Arc::clone(schemas),
            })
            .collect()
    }

    pub(crate) fn version(&self) -> &Version {
        &self.definition.versions[self.at]
    }

    pub(crate) fn compiled(&self) -> &CompiledSchema {
        self.compile(self.at)
    }

    /// The compiled schema of another version, if it exists.
    pub(crate) fn compiled_as(&self, version: &str) -> Option<&CompiledSchema> {
        let at = self.definition.versions.iter().position(|other| other.name == version)?;
        Some(self.compile(at))
    }

    fn compile(&self, at: usize) -> &CompiledSchema {
        let version = &self.definition.versions[at];
        self.compiled[at].get_or_init(|| {
            let schema = self.schemas.compiled(version);
            CompiledSchema::new(&self.definition, version, schema)
        })
    }

    pub(crate) fn check_new(&self, new: &Value) -> ErrorList {
        let scope = match self.definition.is_namespaced() {
            true => meta::Scope::Namespaced,
            false => meta::Scope::Cluster,
        };
        let metadata = metadata(new);
        let mut errors = meta::check_create(&Path::new("metadata"), &metadata, scope, NameRule::DnsSubdomain);
        let _ = self.check(Change { new, old: None, through: Through::Object, scale: None }, &mut errors);
        errors
    }

    /// `forgiven` gets errors that are ignored because unchanged fields had them before.
    pub(crate) fn check_next(
        &self,
        subresource: &str,
        new: &Value,
        old: &Value,
        forgiven: &mut ErrorList,
    ) -> ErrorList {
        let (path, after, before) = (Path::new("metadata"), metadata(new), metadata(old));
        // Kubernetes: metadata is validated once for every kind and once by the kind; each error comes
        // twice.
        let mut errors = meta::check_any_update(&path, &after, &before);
        errors.extend(meta::check_update(&path, &after, &before));
        let through = if subresource == "status" { Through::Status } else { Through::Object };
        forgiven.extend(self.check(Change { new, old: Some(old), through, scale: None }, &mut errors));
        errors
    }

    fn check(&self, change: Change<'_>, errors: &mut ErrorList) -> ErrorList {
        let compiled = self.compiled();
        compiled.schema.check(&Change { scale: compiled.scale.as_ref(), ..change }, errors)
    }

    pub(crate) fn check_selectable(&self, field: &str) -> Result<(), String> {
        let known = field == "metadata.name"
            || (field == "metadata.namespace" && self.definition.is_namespaced())
            || self.compiled().selectable.iter().any(|(label, _)| label == field);
        if known { Ok(()) } else { Err(format!("field label not supported: {field}")) }
    }

    pub(crate) fn selectable_value<'a>(&self, field: &str, object: &'a Value) -> Cow<'a, str> {
        match field {
            "metadata.name" => object::name(object).into(),
            "metadata.namespace" => object::namespace(object).into(),
            _ => {
                let path = self.compiled().selectable.iter().find(|(label, _)| label == field);
                path.map(|(_, path)| path.text(object)).unwrap_or_default().into()
            }
        }
    }
}

impl CompiledSchema {
    fn new(definition: &Definition, version: &Version, schema: Arc<Structural>) -> CompiledSchema {
        let selectable = version
            .selectable
            .iter()
            .filter_map(|path| Some((path.trim_start_matches('.').to_owned(), JsonPath::parse(path).ok()?)));
        let scale = version.scale.as_ref().map(|scale| ScalePaths {
            spec_replicas: scale.spec_replicas.clone(),
            status_replicas: scale.status_replicas.clone(),
            label_selector: scale.label_selector.clone(),
        });
        let columns = version.columns.iter().map(|column| {
            serde_json::json!({
                "name": column.name, "type": column.type_name, "format": column.format,
                "description": column.description, "priority": column.priority, "jsonPath": column.json_path,
            })
        });
        let columns = Columns::compile(&columns.collect::<Vec<_>>());
        let kind = [definition.group.clone(), version.name.clone(), definition.names.kind.clone()];
        let selectable = selectable.collect();
        CompiledSchema { selectable, scale, columns, schema, table: OnceLock::new(), kind }
    }

    pub(crate) fn types(&self) -> &Types {
        &self.table().0
    }

    pub(crate) fn of(&self) -> TypeId {
        self.table().1
    }

    fn table(&self) -> &(Types, TypeId) {
        let [group, version, kind] = &self.kind;
        self.table.get_or_init(|| self.schema.types(group, version, kind))
    }
}

fn metadata(object: &Value) -> ObjectMeta<'_> {
    object::meta(object).unwrap_or_default()
}

/// Warns about new finalizers without a domain-qualified name.
pub(crate) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before: Vec<&str> = old.into_iter().flat_map(object::finalizers).collect();
    let mut added: Vec<&str> = object::finalizers(new).filter(|name| !before.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    added.into_iter().filter_map(finalizer_warning).collect()
}

fn finalizer_warning(name: &str) -> Option<String> {
    const KNOWN: [&str; 3] = [meta::FINALIZER_ORPHAN, meta::FINALIZER_FOREGROUND, "kubernetes"];
    let plain = !name.contains('/') && !KNOWN.contains(&name);
    let what = if name.contains('.') { " including a path (/)" } else { "" };
    plain.then(|| {
        format!(
            "metadata.finalizers: {}: prefer a domain-qualified finalizer name{what} to avoid accidental \
             conflicts with other finalizer writers",
            api::go::quote(name)
        )
    })
}
