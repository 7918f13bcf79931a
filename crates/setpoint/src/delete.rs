//! `setpoint delete`: deletes objects, and waits until they are gone.

use crate::client::{
    age::{self, GoDuration},
    api::{Call, JSON, with_query},
    catalog::Catalog,
    connect::{ClusterConnection, ConnectOptions},
    failure::{ClientError, ClientResult},
    follow::{self, Selection},
    json,
    manifest::FileOptions,
    note, print,
    target::{self, ArgumentTarget, ObjectTarget},
};
use crate::wait::{self, Deadline};
use http::Method;
use serde_json::{Value, json};
use world::World;

/// Delete objects.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint delete pod web-0                one object
  setpoint delete -f web.yaml              what a file describes
  setpoint delete pods -l app=web --now    by label, with a second to shut down
  setpoint delete deploy web --cascade=orphan   and leave its pods")]
pub(crate) struct DeleteOptions {
    /// TYPE NAME…, TYPE/NAME…, or TYPE with -l or --all
    #[arg(value_name = "TYPE")]
    arguments: Vec<String>,
    #[command(flatten)]
    files: FileOptions,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", default_value = "")]
    selector: String,
    /// Objects with these fields
    #[arg(long, value_name = "FIELDS", default_value = "")]
    field_selector: String,
    /// All objects of the types, in the namespace
    #[arg(long)]
    all: bool,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// What happens to objects that these own: background, foreground or orphan
    #[arg(long, value_name = "POLICY", default_value = "background", num_args = 0..=1, require_equals = true, default_missing_value = "background")]
    cascade: String,
    /// Seconds to shut down; -1 for what the object says
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_negative_numbers = true)]
    grace_period: i64,
    /// Delete at once, without confirmation of the node
    #[arg(long)]
    force: bool,
    /// With one second to shut down
    #[arg(long)]
    now: bool,
    /// Wait until the objects are gone
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait; 0 for as long as it takes
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = age::parse)]
    timeout: GoDuration,
    /// An object that is not there is no failure
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_not_found: Option<bool>,
    /// server: check everything, and delete nothing
    #[arg(long, value_name = "none|server", default_value = "none")]
    dry_run: String,
    /// name
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// The options, checked.
#[derive(Debug)]
struct Deletion {
    body: Value,
    is_dry: bool,
    is_forced: bool,
    prints_names: bool,
    ignores_missing: bool,
}

pub(crate) async fn run(world: &World, options: &DeleteOptions) -> ClientResult<()> {
    let deletion = Deletion::new(options)?;
    let connection = options.connect.connect().await?;
    let targets = targets(options, &connection).await?;
    if targets.is_empty() {
        return print("No resources found\n");
    }
    let mut failures = Vec::new();
    let mut deleted = Vec::new();
    for target in targets {
        match deletion.delete(&connection, &target).await {
            Ok(uid) => deleted.push((target, uid)),
            Err(error) if error.is_not_found() && deletion.ignores_missing => {}
            Err(error) => failures.push(error.when("deleting", &target.source)),
        }
    }
    if options.wait && !deletion.is_dry && failures.is_empty() {
        let limit = options.timeout.positive().filter(|limit| !limit.is_zero());
        let deadline = Deadline::new(world, limit);
        for (target, uid) in &deleted {
            wait::gone(&connection.api, target, Some(uid), &deadline).await?;
        }
    }
    ClientError::all(failures)
}

impl Deletion {
    fn new(options: &DeleteOptions) -> ClientResult<Deletion> {
        let refuse = |text: &str| Err(ClientError::error(text));
        if options.all && !options.selector.is_empty() {
            return refuse("cannot set --all and --selector at the same time");
        }
        if options.all && !options.field_selector.is_empty() {
            return refuse("cannot set --all and --field-selector at the same time");
        }
        if options.now && options.grace_period != -1 {
            return refuse("--now and --grace-period cannot be specified together");
        }
        if options.force && (options.grace_period > 0 || options.now) {
            return refuse("--force and --grace-period greater than 0 cannot be specified together");
        }
        if let Some(other) = options.output.as_deref().filter(|output| *output != "name") {
            return refuse(&format!("unexpected -o output mode: {other}. We only support '-o name'"));
        }
        let seconds = match options.grace_period {
            _ if options.now => Some(1),
            // Kubernetes: nothing is deleted at once without --force.
            0 if !options.force => Some(1),
            ..0 if options.force => Some(0),
            ..0 => None,
            seconds => Some(seconds),
        };
        if options.force {
            note(
                "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.",
            );
        }
        let policy = match options.cascade.as_str() {
            "background" | "true" => "Background",
            "foreground" => "Foreground",
            "orphan" | "false" => "Orphan",
            other => {
                return refuse(&format!(
                    "invalid cascade value ({other}). Must be \"background\", \"foreground\", or \"orphan\""
                ));
            }
        };
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(seconds) = seconds {
            body["gracePeriodSeconds"] = seconds.into();
        }
        let is_dry = match options.dry_run.as_str() {
            "none" => false,
            "server" => true,
            other => {
                return refuse(&format!("Invalid dry-run value ({other}). Must be \"none\" or \"server\"."));
            }
        };
        let selects = options.all || !options.selector.is_empty() || !options.field_selector.is_empty();
        Ok(Deletion {
            body,
            is_dry,
            is_forced: seconds == Some(0),
            prints_names: options.output.is_some(),
            ignores_missing: options.ignore_not_found.unwrap_or(selects),
        })
    }

    /// Deletes one object, says so, and returns its UID.
    async fn delete(&self, connection: &ClusterConnection, target: &ObjectTarget) -> ClientResult<String> {
        let query = [("dryRun", if self.is_dry { "All" } else { "" })];
        let path = with_query(&target.path(), &query);
        let call = Call {
            method: Method::DELETE,
            path: &path,
            accept: JSON,
            content_type: JSON,
            body: json::compact(&self.body).into_bytes(),
        };
        let answer = connection.api.json(call).await?;
        print(&self.words(target))?;
        // The object if it is still there, a Status with its UID otherwise.
        let uid = answer["details"]["uid"].as_str().or_else(|| answer["metadata"]["uid"].as_str());
        Ok(uid.unwrap_or_default().to_owned())
    }

    /// Kubernetes: kubectl's words.
    fn words(&self, target: &ObjectTarget) -> String {
        if self.prints_names {
            return format!("{}\n", target.short());
        }
        let word = if self.is_forced { "force deleted" } else { "deleted" };
        let place =
            target.namespace.as_ref().map(|name| format!(" from {name} namespace")).unwrap_or_default();
        let dry = if self.is_dry { " (server dry run)" } else { "" };
        format!("{} \"{}\" {word}{place}{dry}\n", target.resource.type_name(), target.name)
    }
}

async fn targets(options: &DeleteOptions, connection: &ClusterConnection) -> ClientResult<Vec<ObjectTarget>> {
    let manifests = options.files.read()?;
    if options.arguments.is_empty() && manifests.is_empty() {
        return Err(ClientError::error("You must provide one or more resources by argument or filename."));
    }
    let catalog = Catalog::load(&connection.api).await?;
    let mut targets = Vec::new();
    for manifest in &manifests {
        targets.push(target::of_manifest(&catalog, manifest, &connection.namespace, connection.is_explicit)?);
    }
    let selection = Selection { labels: options.selector.clone(), fields: options.field_selector.clone() };
    let selects = options.all || !selection.labels.is_empty() || !selection.fields.is_empty();
    for found in target::read(&catalog, &connection.namespace, &options.arguments)? {
        match found {
            ArgumentTarget::Object(_) if selects => {
                return Err(ClientError::error("name cannot be provided when a selector is specified"));
            }
            ArgumentTarget::Object(object) => targets.push(object),
            ArgumentTarget::All(_) if !selects => {
                return Err(ClientError::error("resource(s) were provided, but no name was specified"));
            }
            ArgumentTarget::All(resource) => {
                let namespace = (!options.all_namespaces).then_some(connection.namespace.as_str());
                let items = follow::items(&connection.api, &resource.path(namespace), &selection).await?;
                let text = |value: &Value| value.as_str().map(str::to_owned);
                targets.extend(items.iter().map(|item| ObjectTarget {
                    resource: resource.clone(),
                    namespace: text(&item["metadata"]["namespace"]),
                    name: text(&item["metadata"]["name"]).unwrap_or_default(),
                    source: String::new(),
                }));
            }
        }
    }
    Ok(targets)
}
