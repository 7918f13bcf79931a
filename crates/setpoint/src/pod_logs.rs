//! `setpoint logs`: prints what containers have written.

mod choose;

use crate::client::{
    age::{self, GoDuration},
    api::{Api, Call, with_query},
    catalog::Catalog,
    connect::{ClusterConnection, ConnectOptions},
    failure::{ClientError, ClientResult},
    follow::{self, Selection},
    note, print_bytes, target,
};
use crate::wait::{self, Deadline, Seen};
use futures::future::try_join_all;
use serde_json::Value;
use world::World;

/// Kubernetes: with a selector, this many lines of each container.
const TAIL_OF_SELECTION: i64 = 10;

/// Print the logs of containers.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint logs web-0 -f               one pod, as it goes on
  setpoint logs deploy/web --tail=20   a pod of a deployment
  setpoint logs -l app=web --all-containers --prefix")]
pub(crate) struct PodLogOptions {
    /// POD or TYPE/NAME
    #[arg(value_name = "POD")]
    pod: Option<String>,
    /// The container
    #[arg(value_name = "CONTAINER", conflicts_with = "container")]
    inline_container: Option<String>,
    /// The container
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// All containers of each pod
    #[arg(long)]
    all_containers: bool,
    /// All pods of a TYPE/NAME
    #[arg(long)]
    all_pods: bool,
    /// Pods with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "pod")]
    selector: Option<String>,
    /// Go on with new lines
    #[arg(short, long)]
    follow: bool,
    /// Of the container before its last restart
    #[arg(short, long)]
    previous: bool,
    /// With the time of each line
    #[arg(long)]
    timestamps: bool,
    /// With pod and container before each line
    #[arg(long)]
    prefix: bool,
    /// The last lines only; -1 for all
    #[arg(long, value_name = "LINES", allow_negative_numbers = true)]
    tail: Option<i64>,
    /// Newer than this, such as 5m
    #[arg(long, value_name = "DURATION", value_parser = age::parse, conflicts_with = "since_time")]
    since: Option<GoDuration>,
    /// Newer than a time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since_time: Option<String>,
    /// At most this many bytes of each container
    #[arg(long, value_name = "BYTES")]
    limit_bytes: Option<u64>,
    /// How many containers may be followed at once
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    max_log_requests: usize,
    /// How long to wait for a container to start, with --follow
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = age::parse)]
    pod_running_timeout: GoDuration,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// One container to read.
#[derive(Debug)]
struct LogSource {
    namespace: String,
    pod: String,
    container: String,
}

pub(crate) async fn run(world: &World, options: &PodLogOptions) -> ClientResult<()> {
    if options.all_containers && (options.container.is_some() || options.inline_container.is_some()) {
        return Err(ClientError::error(
            "--all-containers=true should not be specified with a container name",
        ));
    }
    let connection = options.connect.connect().await?;
    let pods = pods(options, &connection).await?;
    let mut sources = Vec::new();
    for pod in &pods {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let wanted = options.container.as_deref().or(options.inline_container.as_deref());
        for container in choose::containers(pod, wanted, options.all_containers)? {
            let (namespace, pod) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
            sources.push(LogSource { namespace, pod, container });
        }
    }
    if !options.follow {
        for source in &sources {
            options.copy(&connection.api, source).await?;
        }
        return Ok(());
    }
    if sources.len() > options.max_log_requests {
        return Err(ClientError::error(format!(
            "you are attempting to follow {} log streams, but maximum allowed concurrency is {}, use --max-log-requests to increase the limit",
            sources.len(),
            options.max_log_requests
        )));
    }
    let deadline = Deadline::new(world, options.pod_running_timeout.positive());
    let streams = sources.iter().map(|source| async {
        started(&connection.api, source, &deadline).await?;
        options.copy(&connection.api, source).await
    });
    try_join_all(streams).await.map(drop)
}

/// The pods that the arguments mean.
async fn pods(options: &PodLogOptions, connection: &ClusterConnection) -> ClientResult<Vec<Value>> {
    let ClusterConnection { api, namespace, .. } = connection;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    if let Some(labels) = &options.selector {
        let selection = Selection { labels: labels.clone(), fields: String::new() };
        let pods = follow::items(api, &path, &selection).await?;
        if pods.is_empty() {
            note(&format!("No resources found in {namespace} namespace."));
        }
        return Ok(pods);
    }
    let Some(argument) = &options.pod else {
        return Err(ClientError::error("POD or TYPE/NAME is a required argument for the logs command"));
    };
    let catalog = Catalog::load(api).await?;
    let argument = if argument.contains('/') { argument.clone() } else { format!("pods/{argument}") };
    let target = target::pair(&catalog, namespace, &argument)?;
    let object = api.get(&target.path()).await.map_err(|error| match error.status() {
        // Kubernetes: kubectl's words.
        Some(status) if error.is_not_found() => ClientError::error(format!(
            "error from server (NotFound): {} in namespace \"{namespace}\"",
            status.message
        )),
        _ => error,
    })?;
    if target.resource.kind == "Pod" {
        return Ok(vec![object]);
    }
    let labels = choose::selector(&object)
        .ok_or_else(|| ClientError::error(format!("{} selects no pods: name a pod", target.short())))?;
    let mut pods = follow::items(api, &path, &Selection { labels, fields: String::new() }).await?;
    choose::sort(&mut pods);
    let Some(first) = pods.first() else {
        return Err(ClientError::error(format!("{} has no pods", target.short())));
    };
    if pods.len() > 1 && !options.all_pods {
        let name = first["metadata"]["name"].as_str().unwrap_or_default();
        note(&format!("Found {} pods, using pod/{name}", pods.len()));
        pods.truncate(1);
    }
    Ok(pods)
}

/// Waits until a container has run; at the end of the time the server says what is wrong.
async fn started(api: &Api, source: &LogSource, deadline: &Deadline) -> ClientResult<()> {
    let path = format!("/api/v1/namespaces/{}/pods", source.namespace);
    let selection = Selection::of_name(&source.pod);
    let work = wait::until(api, &path, &selection, |seen| match seen {
        Seen::Object(pod) => Ok(choose::has_started(pod, &source.container).then_some(())),
        Seen::Nothing | Seen::Deleted => Ok(Some(())),
    });
    deadline.limit(work).await.map(drop)
}

impl PodLogOptions {
    /// Copies the log of a container to standard output.
    async fn copy(&self, api: &Api, source: &LogSource) -> ClientResult<()> {
        let flag = |is_set: bool| if is_set { "true" } else { "" };
        let tail = match self.tail {
            Some(-1) => None,
            None => self.selector.is_some().then_some(TAIL_OF_SELECTION),
            lines => lines,
        };
        let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods/{}/log", source.namespace, source.pod);
        let path = with_query(
            &path,
            &[
                ("container", source.container.as_str()),
                ("follow", flag(self.follow)),
                ("previous", flag(self.previous)),
                ("timestamps", flag(self.timestamps)),
                ("tailLines", &number(tail)),
                ("sinceSeconds", &number(self.since.map(GoDuration::seconds))),
                ("sinceTime", self.since_time.as_deref().unwrap_or_default()),
                ("limitBytes", &self.limit_bytes.map(|bytes| bytes.to_string()).unwrap_or_default()),
            ],
        );
        let mut lines = api.lines(Call::get(&path, "*/*")).await?;
        if !self.prefix && !self.all_pods {
            while let Some(data) = lines.chunk().await? {
                print_bytes(&data)?;
            }
            return Ok(());
        }
        while let Some(line) = lines.next().await? {
            let mut whole = format!("[pod/{}/{}] ", source.pod, source.container).into_bytes();
            whole.extend_from_slice(&line);
            whole.push(b'\n');
            print_bytes(&whole)?;
        }
        Ok(())
    }
}
