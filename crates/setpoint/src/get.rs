//! `setpoint get`: shows objects, as kubectl does.

mod objects;
mod sort;
mod tables;
mod watch;

use crate::client::{
    catalog::Catalog,
    connect::{ClusterConnection, ConnectOptions},
    failure::{ClientError, ClientResult},
    follow::Selection,
    manifest::FileOptions,
    output::Format,
    table::View,
    target::{self, ArgumentTarget},
};
use world::World;

pub(crate) const WATCH_EXAMPLES: &str = "\
Examples:
  setpoint watch pods                    pods, and then every change of one
  setpoint watch deployment web -o name  one object";

/// Show objects.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint get pods                      the pods of the namespace
  setpoint get deploy,svc -A -o wide     two types, all namespaces, more columns
  setpoint get pod web-0 -o yaml         one object, complete
  setpoint get pods -l app=web -w        with a label, and then every change")]
pub(crate) struct GetOptions {
    /// TYPE, TYPE NAME…, TYPE/NAME…, or several types: TYPE,TYPE
    #[arg(value_name = "TYPE")]
    arguments: Vec<String>,
    #[command(flatten)]
    files: FileOptions,
    /// Objects with these labels, such as app=web,tier!=test
    #[arg(short = 'l', long, value_name = "LABELS", default_value = "")]
    selector: String,
    /// Objects with these fields, such as status.phase=Running
    #[arg(long, value_name = "FIELDS", default_value = "")]
    field_selector: String,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,…
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    /// Show changes as they happen
    #[arg(short, long)]
    watch: bool,
    /// Show changes only, not what there is
    #[arg(long)]
    watch_only: bool,
    /// With the type of each event of a watch
    #[arg(long)]
    output_watch_events: bool,
    /// With all labels
    #[arg(long)]
    show_labels: bool,
    /// With these labels as columns
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// With the type before each name
    #[arg(long)]
    show_kind: bool,
    /// Without the line of headers
    #[arg(long)]
    no_headers: bool,
    /// Sorted by a field, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,
    /// An object that is not there is no failure
    #[arg(long)]
    ignore_not_found: bool,
    /// With managed fields in yaml and json
    #[arg(long)]
    show_managed_fields: bool,
    /// Print the answer of a path of the server as it is
    #[arg(long, value_name = "PATH", conflicts_with_all = ["arguments", "output", "watch"])]
    raw: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// A command line that is understood: where, what and how.
#[derive(Debug)]
struct Wanted<'a> {
    options: &'a GetOptions,
    connection: ClusterConnection,
    targets: Vec<ArgumentTarget>,
    selection: Selection,
    format: Format,
}

pub(crate) async fn watch(world: &World, options: GetOptions) -> ClientResult<()> {
    run(world, &GetOptions { watch: true, ..options }).await
}

pub(crate) async fn run(_: &World, options: &GetOptions) -> ClientResult<()> {
    let format = Format::parse(options.output.as_deref())?;
    if options.show_labels && !format.is_table() {
        let output = options.output.as_deref().unwrap_or_default();
        return Err(ClientError::error(format!("--show-labels option cannot be used with {output} printer")));
    }
    let connection = options.connect.connect().await?;
    if let Some(path) = &options.raw {
        return raw(&connection, path).await;
    }
    let manifests = options.files.read()?;
    if options.arguments.is_empty() && options.files.files.is_empty() {
        return Err(ClientError::error(
            "Required resource not specified: name a type, as in `get pods`, or a file with -f",
        ));
    }
    let catalog = Catalog::load(&connection.api).await?;
    let namespace = &connection.namespace;
    let mut targets = Vec::new();
    for manifest in &manifests {
        let found = target::of_manifest(&catalog, manifest, namespace, connection.is_explicit)?;
        targets.push(ArgumentTarget::Object(found));
    }
    targets.extend(target::read(&catalog, namespace, &options.arguments)?);
    let selection = Selection { labels: options.selector.clone(), fields: options.field_selector.clone() };
    let wanted = Wanted { options, connection, targets, selection, format };
    wanted.check()?;
    if options.watch || options.watch_only {
        return watch::run(&wanted).await;
    }
    if wanted.format.is_table() { tables::run(&wanted).await } else { objects::run(&wanted).await }
}

async fn raw(connection: &ClusterConnection, path: &str) -> ClientResult<()> {
    use crate::client::api::Call;
    if !path.starts_with('/') {
        return Err(ClientError::error(format!(
            "--raw must be a path of the server, such as /healthz: {path}"
        )));
    }
    let mut lines = connection.api.lines(Call::get(path, "*/*")).await?;
    while let Some(data) = lines.chunk().await? {
        crate::client::print_bytes(&data)?;
    }
    Ok(())
}

impl Wanted<'_> {
    fn check(&self) -> ClientResult<()> {
        let has_names = self.targets.iter().any(|target| matches!(target, ArgumentTarget::Object(_)));
        let selects = !self.selection.labels.is_empty() || !self.selection.fields.is_empty();
        if has_names && selects {
            return Err(ClientError::error("name cannot be provided when a selector is specified"));
        }
        if has_names && self.options.all_namespaces {
            return Err(ClientError::error("a resource cannot be retrieved by name across all namespaces"));
        }
        Ok(())
    }

    /// The namespace to list, `None` for all.
    fn namespace(&self) -> Option<&str> {
        (!self.options.all_namespaces).then_some(self.connection.namespace.as_str())
    }

    /// How the table of a target looks. With `kinds`, names have their type.
    fn view(&self, target: &ArgumentTarget, kinds: bool) -> View {
        let resource = target.resource();
        View {
            wide: matches!(self.format, Format::Table { wide: true }),
            headers: !self.options.no_headers,
            namespaces: self.options.all_namespaces && resource.is_namespaced,
            kind: (kinds || self.options.show_kind).then(|| resource.type_name()),
            labels: self.options.show_labels,
            label_columns: self.options.label_columns.clone(),
        }
    }
}
