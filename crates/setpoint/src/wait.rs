//! `setpoint wait`: waits for conditions of objects, by watching them.

mod goal;

use crate::client::{
    age::{self, GoDuration},
    api::{Api, JSON},
    catalog::Catalog,
    connect::{ClusterConnection, ConnectOptions},
    failure::{ClientError, ClientResult, StatusAnswer},
    follow::{self, Following, Selection},
    manifest::FileOptions,
    output::{Format, ObjectPrinter},
    print,
    target::{self, ArgumentTarget, ObjectTarget},
};
use goal::Goal;
use serde_json::{Value, json};
use std::time::Duration;
use world::{Moment, World};

/// Kubernetes: "no limit" is a week.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Wait until objects meet a condition.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint wait --for=condition=Available deploy/web --timeout=1m
  setpoint wait --for=delete pod/web-0
  setpoint wait --for=jsonpath='{.status.phase}'=Running pods -l app=web")]
pub(crate) struct WaitOptions {
    /// TYPE/NAME…, TYPE NAME…, or TYPE with -l or --all
    #[arg(value_name = "TYPE/NAME")]
    arguments: Vec<String>,
    #[command(flatten)]
    files: FileOptions,
    /// create, delete, condition=NAME[=VALUE] or jsonpath=PATH[=VALUE]; may be repeated
    #[arg(long = "for", value_name = "CONDITION", required = true)]
    goals: Vec<String>,
    /// How long to wait at most; 0 to look once, negative for a week
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = age::parse, allow_hyphen_values = true)]
    timeout: GoDuration,
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
    /// name, yaml or json
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// When waiting ends.
#[derive(Debug)]
pub(crate) struct Deadline {
    world: World,
    end: Option<Moment>,
}

impl Deadline {
    /// `None` waits for as long as it takes.
    pub(crate) fn new(world: &World, limit: Option<Duration>) -> Deadline {
        Deadline { world: world.clone(), end: limit.map(|limit| world.now() + limit) }
    }

    /// The result of `work`, or `None` at the end of the time.
    pub(crate) async fn limit<T>(
        &self,
        work: impl Future<Output = ClientResult<T>>,
    ) -> ClientResult<Option<T>> {
        let Some(end) = self.end else { return work.await.map(Some) };
        let left = end.since(self.world.now());
        match self.world.timeout(left, work).await {
            Ok(result) => result.map(Some),
            Err(_) => Ok(None),
        }
    }
}

pub(crate) async fn run(world: &World, options: &WaitOptions) -> ClientResult<()> {
    let goals = options.goals.iter().map(|text| Goal::parse(text)).collect::<ClientResult<Vec<_>>>()?;
    let format = Format::parse(options.output.as_deref())?;
    let connection = options.connect.connect().await?;
    let waiting = Waiting { options, connection, goals };
    let deadline = Deadline::new(world, Some(options.timeout.positive().unwrap_or(WEEK)));
    let targets = waiting.targets().await?;
    if waiting.goals.contains(&Goal::Created) {
        waiting.created(&targets, &deadline).await?;
    }
    let objects = waiting.objects(targets).await?;
    let is_for_delete = waiting.goals.contains(&Goal::Deleted);
    if objects.is_empty() && !is_for_delete {
        return Err(ClientError::error("no matching resources found"));
    }
    let mut printer = ObjectPrinter::new(format.clone(), false, true);
    let mut failures = Vec::new();
    for target in &objects {
        match waiting.one(target, &deadline).await {
            Ok(met) => {
                for object in met {
                    let words = format!("{} condition met\n", target.short());
                    print(&if format.is_table() { words } else { printer.text(&object)? })?;
                }
            }
            Err(error) => failures.push(error),
        }
    }
    ClientError::all(failures)
}

struct Waiting<'a> {
    options: &'a WaitOptions,
    connection: ClusterConnection,
    goals: Vec<Goal>,
}

impl Waiting<'_> {
    async fn targets(&self) -> ClientResult<Vec<ArgumentTarget>> {
        let ClusterConnection { api, namespace, is_explicit, .. } = &self.connection;
        let catalog = Catalog::load(api).await?;
        let mut targets = Vec::new();
        for manifest in &self.options.files.read()? {
            targets.push(ArgumentTarget::Object(target::of_manifest(
                &catalog,
                manifest,
                namespace,
                *is_explicit,
            )?));
        }
        targets.extend(target::read(&catalog, namespace, &self.options.arguments)?);
        let selects =
            self.options.all || !self.options.selector.is_empty() || !self.options.field_selector.is_empty();
        if !selects && targets.iter().any(|target| matches!(target, ArgumentTarget::All(_))) {
            return Err(ClientError::error("resource(s) were provided, but no name was specified"));
        }
        Ok(targets)
    }

    fn collection(&self, target: &ArgumentTarget) -> (String, Selection) {
        match target {
            ArgumentTarget::Object(object) => {
                (object.resource.path(object.namespace.as_deref()), Selection::of_name(&object.name))
            }
            ArgumentTarget::All(resource) => {
                let namespace = (!self.options.all_namespaces).then_some(self.connection.namespace.as_str());
                let selection = Selection {
                    labels: self.options.selector.clone(),
                    fields: self.options.field_selector.clone(),
                };
                (resource.path(namespace), selection)
            }
        }
    }

    /// Waits until each target has an object.
    async fn created(&self, targets: &[ArgumentTarget], deadline: &Deadline) -> ClientResult<()> {
        for target in targets {
            let (path, selection) = self.collection(target);
            let work = until(&self.connection.api, &path, &selection, |state| match state {
                Seen::Object(object) => Ok(Some(object.clone())),
                Seen::Nothing | Seen::Deleted => Ok(None),
            });
            if deadline.limit(work).await?.is_none() {
                return Err(ClientError::error("timed out waiting for the condition"));
            }
        }
        Ok(())
    }

    /// The objects that the targets are now.
    async fn objects(&self, targets: Vec<ArgumentTarget>) -> ClientResult<Vec<ObjectTarget>> {
        let mut objects = Vec::new();
        for target in targets {
            let (path, selection) = self.collection(&target);
            match target {
                ArgumentTarget::Object(object) => objects.push(object),
                ArgumentTarget::All(resource) => {
                    for item in follow::items(&self.connection.api, &path, &selection).await? {
                        let text = |value: &Value| value.as_str().map(str::to_owned);
                        objects.push(ObjectTarget {
                            resource: resource.clone(),
                            namespace: text(&item["metadata"]["namespace"]),
                            name: text(&item["metadata"]["name"]).unwrap_or_default(),
                            source: String::new(),
                        });
                    }
                }
            }
        }
        Ok(objects)
    }

    /// Waits for all goals of one object, one after the other; returns it as it met each.
    async fn one(&self, target: &ObjectTarget, deadline: &Deadline) -> ClientResult<Vec<Value>> {
        let api = &self.connection.api;
        let mut met = Vec::new();
        for goal in &self.goals {
            if *goal == Goal::Deleted {
                let Some(object) = found(api.get(&target.path()).await)? else { continue };
                if self.options.timeout.is_zero() {
                    return Err(not_met(target));
                }
                gone(api, target, object["metadata"]["uid"].as_str(), deadline).await?;
                met.push(object);
            } else if self.options.timeout.is_zero() {
                let object = api.get(&target.path()).await?;
                if !goal.is_met(&object)? {
                    return Err(not_met(target));
                }
                met.push(object);
            } else {
                met.push(reached(api, target, goal, deadline).await?);
            }
        }
        Ok(met)
    }
}

/// Waits until an object meets a goal. It must be there at first; later another may take its place.
async fn reached(api: &Api, target: &ObjectTarget, goal: &Goal, deadline: &Deadline) -> ClientResult<Value> {
    let path = target.resource.path(target.namespace.as_deref());
    let selection = Selection::of_name(&target.name);
    let work = until(api, &path, &selection, |state| match state {
        Seen::Object(object) => Ok(goal.is_met(object)?.then(|| object.clone())),
        Seen::Nothing => Err(missing(target)),
        Seen::Deleted => Ok(None),
    });
    deadline.limit(work).await?.ok_or_else(|| timed_out(target))
}

/// Waits until an object with this UID is gone.
pub(crate) async fn gone(
    api: &Api,
    target: &ObjectTarget,
    uid: Option<&str>,
    deadline: &Deadline,
) -> ClientResult<()> {
    let path = target.resource.path(target.namespace.as_deref());
    let is_other = |object: &Value| {
        uid.is_some_and(|uid| !uid.is_empty() && object["metadata"]["uid"].as_str() != Some(uid))
    };
    let selection = Selection::of_name(&target.name);
    let work = until(api, &path, &selection, |state| match state {
        Seen::Nothing | Seen::Deleted => Ok(Some(Value::Null)),
        Seen::Object(object) => Ok(is_other(object).then_some(Value::Null)),
    });
    match deadline.limit(work).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(timed_out(target)),
        // Who may delete but not watch does not wait; a collection that went away has taken its objects along.
        Err(error) if error.status().is_some_and(|status| matches!(status.code, 403..=405)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a list or a watch shows of an object.
pub(crate) enum Seen<'a> {
    Nothing,
    Object(&'a Value),
    Deleted,
}

/// Lists, then follows, and lists again when the watch cannot go on, until `look` has an answer.
pub(crate) async fn until<T>(
    api: &Api,
    path: &str,
    selection: &Selection,
    look: impl Fn(Seen<'_>) -> ClientResult<Option<T>>,
) -> ClientResult<T> {
    loop {
        let mut list = follow::list(api, path, JSON, selection).await?;
        let version = list["metadata"]["resourceVersion"].take();
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        if items.is_empty()
            && let Some(answer) = look(Seen::Nothing)?
        {
            return Ok(answer);
        }
        let (api_version, kind) = (&list["apiVersion"], list["kind"].as_str().unwrap_or_default());
        for item in items {
            let mut item = item.clone();
            item["apiVersion"] = api_version.clone();
            item["kind"] = kind.strip_suffix("List").unwrap_or(kind).into();
            if let Some(answer) = look(Seen::Object(&item))? {
                return Ok(answer);
            }
        }
        let mut following = Following::new(api, path, JSON, selection, &version);
        loop {
            let happening = match following.next().await {
                Ok(happening) => happening,
                // The place of the watch is gone: list again.
                Err(error) if error.status().is_some_and(|status| status.code == 410) => break,
                Err(error) => return Err(error),
            };
            let state =
                if happening.event == "DELETED" { Seen::Deleted } else { Seen::Object(&happening.object) };
            if let Some(answer) = look(state)? {
                return Ok(answer);
            }
        }
    }
}

fn found(answer: ClientResult<Value>) -> ClientResult<Option<Value>> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

// Kubernetes: kubectl's words.
fn timed_out(target: &ObjectTarget) -> ClientError {
    ClientError::error(format!(
        "timed out waiting for the condition on {}/{}",
        target.resource.plural, target.name
    ))
}

fn not_met(target: &ObjectTarget) -> ClientError {
    ClientError::error(format!("condition not met for {}/{}", target.resource.plural, target.name))
}

fn missing(target: &ObjectTarget) -> ClientError {
    let resource = match target.resource.group.as_str() {
        "" => target.resource.plural.clone(),
        group => format!("{}.{group}", target.resource.plural),
    };
    let message = format!("{resource} \"{}\" not found", target.name);
    let status = json!({"reason": "NotFound", "code": 404, "message": message});
    ClientError::Status(Box::new(StatusAnswer::of(404, &status)))
}
