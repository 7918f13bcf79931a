//! `setpoint events`: what has happened, the latest last.

use crate::client::{
    age,
    api::JSON,
    catalog::Catalog,
    connect::{ClusterConnection, ConnectOptions},
    failure::{ClientError, ClientResult},
    follow::{self, Following, Selection},
    note,
    output::{Format, ObjectPrinter},
    print,
    table::{Layout, visible},
    target,
};
use serde_json::{Value, json};
use world::{Timestamp, World};

/// Show events.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint events                     of the namespace, the latest last
  setpoint events --for pod/web-0 -w  of one object, and then every new one
  setpoint events -A --types=Warning  only warnings, everywhere")]
pub(crate) struct EventOptions {
    /// Only about this object
    #[arg(long = "for", value_name = "TYPE/NAME")]
    object: Option<String>,
    /// Only of these types: Normal, Warning
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Go on with new events
    #[arg(short, long)]
    watch: bool,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Without the line of headers
    #[arg(long)]
    no_headers: bool,
    /// name, yaml, json or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

pub(crate) async fn run(world: &World, options: &EventOptions) -> ClientResult<()> {
    let format = Format::parse(options.output.as_deref())?;
    let is_type = |name: &String| name.eq_ignore_ascii_case("Normal") || name.eq_ignore_ascii_case("Warning");
    if !options.types.iter().all(is_type) {
        return Err(ClientError::error("valid --types are Normal or Warning"));
    }
    let connection = options.connect.connect().await?;
    let selection = options.selection(&connection).await?;
    let path = match connection.namespace.as_str() {
        _ if options.all_namespaces => "/api/v1/events".to_owned(),
        namespace => format!("/api/v1/namespaces/{namespace}/events"),
    };
    let mut printer = EventPrinter::new(options, format);
    if options.watch {
        return watch(world, &connection, &path, &selection, options, &mut printer).await;
    }
    let mut events = follow::items(&connection.api, &path, &selection).await?;
    events.retain(|event| options.is_wanted(event));
    if events.is_empty() {
        note(&match options.all_namespaces {
            true => "No events found.".to_owned(),
            false => format!("No events found in {} namespace.", connection.namespace),
        });
        return Ok(());
    }
    events.sort_by_cached_key(|event| last_seen(event).map(str::to_owned));
    print(&printer.list(events, world.wall())?)
}

async fn watch(
    world: &World,
    connection: &ClusterConnection,
    path: &str,
    selection: &Selection,
    options: &EventOptions,
    printer: &mut EventPrinter,
) -> ClientResult<()> {
    // Without a resourceVersion, a watch begins with what there is.
    let mut following = Following::new(&connection.api, path, JSON, selection, &Value::Null);
    loop {
        let happening = following.next().await?;
        // Events are deleted after an hour; that is no news.
        if happening.event != "DELETED" && options.is_wanted(&happening.object) {
            print(&printer.one(&happening.object, world.wall())?)?;
        }
    }
}

impl EventOptions {
    async fn selection(&self, connection: &ClusterConnection) -> ClientResult<Selection> {
        let Some(object) = &self.object else { return Ok(Selection::default()) };
        if !object.contains('/') {
            return Err(ClientError::error("--for must be in resource/name form"));
        }
        let catalog = Catalog::load(&connection.api).await?;
        let target = target::pair(&catalog, &connection.namespace, object)?;
        let (kind, version) = (&target.resource.kind, target.resource.api_version());
        let fields = format!(
            "involvedObject.kind={kind},involvedObject.apiVersion={version},involvedObject.name={}",
            target.name
        );
        Ok(Selection { labels: String::new(), fields })
    }

    fn is_wanted(&self, event: &Value) -> bool {
        let kind = event["type"].as_str().unwrap_or_default();
        self.types.is_empty() || self.types.iter().any(|wanted| wanted.eq_ignore_ascii_case(kind))
    }
}

/// When an event was last seen.
pub(crate) fn last_seen(event: &Value) -> Option<&str> {
    let series = event["series"]["lastObservedTime"].as_str();
    series.or_else(|| event["lastTimestamp"].as_str()).or_else(|| event["eventTime"].as_str())
}

/// Prints events in columns, or as objects.
struct EventPrinter {
    namespaces: bool,
    headers: bool,
    layout: Layout,
    objects: Option<ObjectPrinter>,
}

impl EventPrinter {
    fn new(options: &EventOptions, format: Format) -> EventPrinter {
        EventPrinter {
            namespaces: options.all_namespaces,
            headers: !options.no_headers,
            layout: Layout::default(),
            objects: (!format.is_table()).then(|| ObjectPrinter::new(format, false, true)),
        }
    }

    fn list(&mut self, events: Vec<Value>, now: Timestamp) -> ClientResult<String> {
        match &mut self.objects {
            Some(printer) => printer
                .text(&json!({"apiVersion": "v1", "kind": "EventList", "metadata": {}, "items": events})),
            None => Ok(self.rows(&events.iter().collect::<Vec<_>>(), now)),
        }
    }

    fn one(&mut self, event: &Value, now: Timestamp) -> ClientResult<String> {
        match &mut self.objects {
            Some(printer) => printer.text(event),
            None => Ok(self.rows(&[event], now)),
        }
    }

    fn rows(&mut self, events: &[&Value], now: Timestamp) -> String {
        let mut rows = Vec::new();
        if std::mem::take(&mut self.headers) {
            let names = ["NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
            rows.push(names.iter().skip(usize::from(!self.namespaces)).map(ToString::to_string).collect());
        }
        for event in events {
            let text = |value: &Value| visible(value.as_str().unwrap_or_default());
            let object = &event["involvedObject"];
            let mut row = vec![
                interval(event, now),
                text(&event["type"]),
                text(&event["reason"]),
                format!("{}/{}", text(&object["kind"]), text(&object["name"])),
                text(&event["message"]).trim().to_owned(),
            ];
            if self.namespaces {
                row.insert(0, text(&event["metadata"]["namespace"]));
            }
            rows.push(row);
        }
        self.layout.lines(&rows)
    }
}

/// `5s`, or `5s (x3 over 2m)`.
fn interval(event: &Value, now: Timestamp) -> String {
    let since = |time: &Value| age::since(time.as_str(), now);
    let first = if event["eventTime"].is_string() { &event["eventTime"] } else { &event["firstTimestamp"] };
    let (series, count) = (&event["series"], event["count"].as_i64().unwrap_or(0));
    if series.is_object() {
        let count = series["count"].as_i64().unwrap_or(0);
        format!("{} (x{count} over {})", since(&series["lastObservedTime"]), since(first))
    } else if count > 1 {
        format!("{} (x{count} over {})", since(&event["lastTimestamp"]), since(first))
    } else {
        since(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_tells_how_often_and_since_when() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        for (event, expected) in [
            (json!({"firstTimestamp": "2026-01-01T00:09:55Z", "count": 1}), "5s"),
            (
                json!({"firstTimestamp": "2026-01-01T00:08:00Z", "lastTimestamp": "2026-01-01T00:09:50Z", "count": 3}),
                "10s (x3 over 2m)",
            ),
            (
                json!({"eventTime": "2026-01-01T00:05:00.000000Z",
                    "series": {"count": 2, "lastObservedTime": "2026-01-01T00:09:00.000000Z"}}),
                "60s (x2 over 5m)",
            ),
            (json!({}), "<unknown>"),
        ] {
            assert_eq!(interval(&event, now), expected);
        }
    }
}
