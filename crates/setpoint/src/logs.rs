//! The log of the process on standard error, and its format.

use serde_json::{Map, Value};
use std::{fmt, io::IsTerminal};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::{JsonFields, Writer},
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct LogOptions {
    /// Log more: -v every write with its caller, code and duration, -vv every read as well. RUST_LOG is
    /// finer, and has precedence.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// The format of a line on standard error
    #[arg(long, value_enum, default_value = "text", global = true)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Says of each failed request what its caller is told as well.
const QUIET: &str = "kube_client::client::builder=off";

impl LogOptions {
    pub(crate) fn new(verbose: u8, is_json: bool) -> LogOptions {
        LogOptions { verbose, log_format: if is_json { LogFormat::Json } else { LogFormat::Text } }
    }
}

/// Starts logging.
pub(crate) fn start(options: &LogOptions) {
    let level = match options.verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    // Libraries log only warnings and errors: one request is many lines of theirs.
    let ours = ["setpoint", "server", "store", "operator", "controllers"]
        .map(|crate_name| format!("{crate_name}={level}"));
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(format!("warn,{QUIET},{}", ours.join(","))));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match options.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.fmt_fields(JsonFields::new()).event_format(FlatJson).init(),
    }
}

/// One object per line: time, level, message, and the fields of the event and of its spans side by side.
struct FlatJson;

impl<S, N> FormatEvent<S, N> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("time".to_owned(), time.into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        let mut fields = String::new();
        context.format_fields(Writer::new(&mut fields), event)?;
        add_fields(&mut line, &fields);
        for span in context.event_scope().into_iter().flatten() {
            line.entry("span").or_insert_with(|| span.name().into());
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                add_fields(&mut line, &fields.fields);
            }
        }
        line.insert("module".to_owned(), metadata.target().into());
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Inner fields overwrite outer ones.
fn add_fields(line: &mut Map<String, Value>, fields: &str) {
    let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
    for (name, value) in fields {
        line.entry(name).or_insert(value);
    }
}
