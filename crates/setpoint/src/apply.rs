//! `setpoint apply`: makes the objects of manifests so, by server-side apply.

use crate::client::{
    api::{APPLY, Api, Call, JSON, with_query},
    catalog::Catalog,
    connect::{ClusterConnection, ConnectOptions},
    failure::{ClientError, ClientResult},
    json,
    manifest::{FileOptions, Manifest},
    output::{Format, ObjectPrinter, as_list},
    print,
    target::{self, ObjectTarget},
};
use http::Method;
use serde_json::Value;

/// Kubernetes: the field manager of `kubectl apply --server-side`.
const FIELD_MANAGER: &str = "kubectl";
/// How often an object that others write is read again before it is applied to whatever is there.
const MAX_ATTEMPTS: u32 = 10;

/// Create or change objects so that they are as files say.
///
/// This is always a server-side apply: the server merges, and keeps who owns which field. Without --server-side it prints
/// the words of kubectl's client-side apply (created, configured, unchanged), and, like that, what the file says wins
/// over what others have written. With --server-side a field that others own is a conflict, which --force-conflicts
/// overrules. No last-applied-configuration annotation is written.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint apply -f web.yaml                one file
  setpoint apply -f manifests/ -R           a folder with all folders in it
  cat web.yaml | setpoint apply -f -        standard input
  setpoint apply -f web.yaml --server-side  refuse to change what others own")]
pub(crate) struct ApplyOptions {
    #[command(flatten)]
    files: FileOptions,
    /// Report fields that others own as conflicts
    #[arg(long)]
    server_side: bool,
    /// Take over fields that others own
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,
    /// Who owns the fields
    #[arg(long, value_name = "NAME", default_value = FIELD_MANAGER)]
    field_manager: String,
    /// server: check everything, and change nothing
    #[arg(long, value_name = "none|server|client", default_value = "none", num_args = 0..=1, require_equals = true, default_missing_value = "unchanged")]
    dry_run: String,
    /// Whether unknown fields are refused: strict, warn or ignore
    #[arg(long, value_name = "strict|warn|ignore", default_value = "strict", num_args = 0..=1, require_equals = true, default_missing_value = "strict")]
    validate: String,
    /// name, yaml or json
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    /// Not here: delete what is no longer wanted by name or label
    #[arg(long, hide = true)]
    prune: bool,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// How each object is applied.
struct Applying<'a> {
    options: &'a ApplyOptions,
    is_dry: bool,
    validation: &'static str,
}

pub(crate) async fn run(options: &ApplyOptions) -> ClientResult<()> {
    let applying = Applying::new(options)?;
    let format = Format::parse(options.output.as_deref())?;
    if options.files.files.is_empty() && options.files.kustomize.is_none() {
        return Err(ClientError::error("must specify one of -f and -k"));
    }
    let manifests = options.files.read()?;
    if manifests.is_empty() {
        return Err(ClientError::error("no objects passed to apply"));
    }
    let connection = options.connect.connect().await?;
    let mut catalog = Catalog::load(&connection.api).await?;
    let mut failures = Vec::new();
    let mut applied = Vec::new();
    for manifest in &manifests {
        match applying.one(&connection, &mut catalog, manifest).await {
            Ok((target, object, word)) => {
                if format.is_table() {
                    print(&format!("{} {word}{}\n", target.short(), applying.dry_words()))?;
                }
                applied.push(object);
            }
            Err(error) => failures.push(error),
        }
    }
    if !format.is_table() && !applied.is_empty() {
        let mut printer = ObjectPrinter::new(format, false, true);
        let single = if applied.len() == 1 { applied.pop() } else { None };
        print(&printer.text(&single.unwrap_or_else(|| as_list(applied)))?)?;
    }
    ClientError::all(failures)
}

impl<'a> Applying<'a> {
    fn new(options: &'a ApplyOptions) -> ClientResult<Applying<'a>> {
        if options.prune {
            return Err(ClientError::error(
                "--prune is not done here: delete what is no longer wanted, as in `setpoint delete deploy -l app=old`",
            ));
        }
        let is_dry = match options.dry_run.as_str() {
            "none" => false,
            "server" => true,
            "client" => {
                return Err(ClientError::error(
                    "--dry-run=client is not done here: --dry-run=server also checks what only the server knows",
                ));
            }
            _ => {
                return Err(ClientError::error(format!(
                    "Invalid dry-run value ({}). Must be \"none\" or \"server\".",
                    options.dry_run
                )));
            }
        };
        let validation = match options.validate.as_str() {
            "strict" | "true" => "Strict",
            "warn" => "Warn",
            "ignore" | "false" => "Ignore",
            other => {
                return Err(ClientError::error(format!(
                    "invalid - validate option {other}: use strict, warn or ignore"
                )));
            }
        };
        Ok(Applying { options, is_dry, validation })
    }

    /// Applies one object; returns what happened in a word.
    async fn one(
        &self,
        connection: &ClusterConnection,
        catalog: &mut Catalog,
        manifest: &Manifest,
    ) -> ClientResult<(ObjectTarget, Value, &'static str)> {
        let find = |catalog: &Catalog| {
            target::of_manifest(catalog, manifest, &connection.namespace, connection.is_explicit)
        };
        let target = match find(catalog) {
            Ok(target) => target,
            // A definition among the manifests before may have added the kind.
            Err(_) => {
                *catalog = Catalog::load(&connection.api).await?;
                find(catalog)?
            }
        };
        let api = &connection.api;
        let mut attempt = 1;
        let (before, object) = loop {
            let before = if self.options.server_side { None } else { current(api, &target).await? };
            let doing =
                if before.is_some() || self.options.server_side { "applying patch to" } else { "creating" };
            let version = before.as_ref().filter(|_| attempt < MAX_ATTEMPTS).map(resource_version);
            match self.send(api, &target, &manifest.object, version).await {
                // Someone has written or removed it in between: only a new reading tells what this apply changes.
                Err(error) if version.is_some() && (error.is_conflict() || error.is_not_found()) => {
                    attempt += 1;
                }
                answer => {
                    let explained = |error: ClientError| explain(error.when(doing, &manifest.source));
                    let object = answer.map_err(explained)?;
                    break (before, object);
                }
            }
        };
        let word = match before {
            _ if self.options.server_side => "serverside-applied",
            None => "created",
            Some(before) if self.is_same(&before, &object) => "unchanged",
            Some(_) => "configured",
        };
        Ok((target, object, word))
    }

    /// Applies an object; with a resourceVersion, only to what has it.
    async fn send(
        &self,
        api: &Api,
        target: &ObjectTarget,
        object: &Value,
        version: Option<&Value>,
    ) -> ClientResult<Value> {
        let forces = !self.options.server_side || self.options.force_conflicts;
        let query = [
            ("fieldManager", self.options.field_manager.as_str()),
            ("fieldValidation", self.validation),
            ("force", if forces { "true" } else { "" }),
            ("dryRun", if self.is_dry { "All" } else { "" }),
        ];
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            if let Some(namespace) = &target.namespace {
                metadata.insert("namespace".to_owned(), namespace.as_str().into());
            }
            if let Some(version) = version {
                metadata.entry("resourceVersion").or_insert_with(|| version.clone());
            }
        }
        api.json(Call {
            method: Method::PATCH,
            path: &with_query(&target.path(), &query),
            accept: JSON,
            content_type: APPLY,
            body: json::compact(&object).into_bytes(),
        })
        .await
    }

    /// Whether an apply has changed nothing. A dry one gives no new resourceVersion: there, the contents tell.
    fn is_same(&self, before: &Value, after: &Value) -> bool {
        if !self.is_dry {
            return resource_version(before) == resource_version(after);
        }
        let contents = |object: &Value| {
            let mut object = object.clone();
            for field in ["managedFields", "resourceVersion"] {
                object["metadata"][field] = Value::Null;
            }
            object
        };
        contents(before) == contents(after)
    }

    fn dry_words(&self) -> &'static str {
        if self.is_dry { " (server dry run)" } else { "" }
    }
}

fn resource_version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// An object as it is, `None` if it is not there.
async fn current(api: &Api, target: &ObjectTarget) -> ClientResult<Option<Value>> {
    match api.get(&target.path()).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A conflict with what to do about it.
fn explain(error: ClientError) -> ClientError {
    match error.status() {
        Some(status) if status.reason == "Conflict" && status.message.contains("conflict") => {
            ClientError::Text(format!(
                "error: {}\n\
                 Take the fields over with --force-conflicts, or leave them out of the file for their owner to keep.",
                status.message
            ))
        }
        _ => error,
    }
}
