//! Scripts: what the containers of a pod do, read from an annotation of the pod.
//!
//! ```
//! let script: node::Script = "
//! app: {readyAfter: 5s, exitCode: 3, after: 1m}
//! '*': {stopAfter: 10s}
//! ".parse().expect("it is a script");
//! assert_eq!(script.part("app").exit_code, Some(3));
//! assert_eq!(script.part("other").stop_after.0.as_secs(), 10);
//! ```

use crate::budget::beginning;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::{Deserialize, Deserializer, de};
use std::{collections::BTreeMap, fmt, str::FromStr, sync::LazyLock, time::Duration};

/// The annotation of a pod that holds its script.
pub const SCRIPT: &str = "setpoint.dev/script";

/// So much of what is wrong with a script is told, in bytes: it may repeat much of the script.
const MOST_PROBLEM: usize = 1024;

/// The part of the containers that have none of their own.
const OTHERS: &str = "*";

/// What the containers of a pod do, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script(BTreeMap<String, Part>);

/// What one container does. What is absent is as well-behaved containers do it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Part {
    /// How long pull and start take.
    pub start_after: Span,
    /// It ends with this code; at once, unless `after` says when.
    pub exit_code: Option<i32>,
    /// It ends so long after its start; with 0, unless `exitCode` says otherwise.
    pub after: Option<Span>,
    /// Only its first runs end like that, so many; the next one does not fail.
    pub times: Option<i32>,
    /// It ends with 1 after a second, unless `exitCode` and `after` say otherwise.
    pub crash_loop: bool,
    /// It ends because it has used too much memory.
    pub oom_killed: bool,
    /// The text of its termination message.
    pub message: Option<String>,
    /// Its startup probe fails.
    pub never_started: bool,
    /// It becomes ready so long after its start.
    pub ready_after: Option<Span>,
    pub never_ready: bool,
    /// Its liveness probe fails from so long after its start.
    pub unhealthy_after: Option<Span>,
    /// How long it takes to end after SIGTERM.
    pub stop_after: Span,
    /// Its exit code after SIGTERM.
    pub stop_code: Option<i32>,
    pub image_pull: ImagePull,
    /// Its log: these lines are written when it starts.
    pub logs: Vec<String>,
    /// What it uses, for metrics.
    pub cpu: Option<String>,
    pub memory: Option<String>,
    /// The results of commands that are executed in it.
    pub exec: BTreeMap<String, ExecResult>,
    /// What HTTP servers on its ports answer to every request, while it runs.
    pub http: BTreeMap<u16, String>,
}

/// Whether the image can be pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImagePull {
    /// Decided by the name of the image.
    #[default]
    Auto,
    Fail,
    Succeed,
}

/// The result of a command that is executed in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecResult {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
}

/// A duration: a number of seconds, or a text as `1m30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Script {
    /// The script of a pod; without the annotation there are no parts.
    pub fn of(pod: &Pod) -> Result<Script, String> {
        pod.annotations().get(SCRIPT).map_or_else(|| Ok(Script::default()), |text| text.parse())
    }

    /// What this container does.
    pub fn part(&self, container: &str) -> &Part {
        self.0.get(container).or_else(|| self.0.get(OTHERS)).unwrap_or_else(|| Part::well_behaved())
    }
}

impl Part {
    /// What a container does of which a script says nothing.
    pub(crate) fn well_behaved() -> &'static Part {
        static WELL_BEHAVED: LazyLock<Part> = LazyLock::new(Part::default);
        &WELL_BEHAVED
    }
}

impl FromStr for Script {
    type Err = String;
    fn from_str(text: &str) -> Result<Script, String> {
        if text.trim().is_empty() {
            return Ok(Script::default());
        }
        // An alias would repeat a text that is long already.
        let budget = serde_saphyr::budget! { max_anchors: 0, max_aliases: 0 };
        let options = serde_saphyr::options! { budget: budget };
        let parts: Option<BTreeMap<String, Part>> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| {
                format!("annotation {SCRIPT}: {}", beginning(&error.to_string(), MOST_PROBLEM))
            })?;
        Ok(Script(parts.unwrap_or_default()))
    }
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Span, String> {
        let wrong = || format!("\"{text}\" is no duration: write it as 30, 30s, 5m or 1h30m");
        if let Ok(seconds) = text.parse::<u64>() {
            return Ok(Span(Duration::from_secs(seconds)));
        }
        let (mut rest, mut total) = (text, Duration::ZERO);
        while !rest.is_empty() {
            let digits = rest.find(|it: char| !it.is_ascii_digit()).ok_or_else(wrong)?;
            let count: u32 = rest[..digits].parse().map_err(|_| wrong())?;
            let unit_end =
                rest[digits..].find(|it: char| it.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
            let unit = match &rest[digits..unit_end] {
                "ms" => Duration::from_millis(1),
                "s" => Duration::from_secs(1),
                "m" => Duration::from_secs(60),
                "h" => Duration::from_secs(3600),
                _ => return Err(wrong()),
            };
            total = total.saturating_add(unit.saturating_mul(count));
            rest = &rest[unit_end..];
        }
        if text.is_empty() { Err(wrong()) } else { Ok(Span(total)) }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        struct SpanVisitor;
        impl de::Visitor<'_> for SpanVisitor {
            type Value = Span;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number of seconds, or a duration as 1m30s")
            }
            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Span, E> {
                Ok(Span(Duration::from_secs(seconds)))
            }
            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Span, E> {
                u64::try_from(seconds).map_err(E::custom).and_then(|seconds| self.visit_u64(seconds))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(SpanVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_or_texts_with_units() {
        for (text, seconds) in [("0", Some(0)), ("30", Some(30)), ("30s", Some(30)), ("1h2m3s", Some(3723))] {
            assert_eq!(text.parse::<Span>().ok().map(|it| it.0.as_secs()), seconds, "{text}");
        }
        for text in ["", "s", "3x", "-1s", "soon"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_script_with_an_unknown_word_is_refused() {
        let problem = "app: {explodes: true}".parse::<Script>().unwrap_err();
        assert!(problem.starts_with("annotation setpoint.dev/script: "), "{problem}");
        assert!(problem.contains("explodes"), "{problem}");
        let aliased = "app: {logs: [&a x, *a]}".parse::<Script>().unwrap_err();
        assert!(aliased.starts_with("annotation setpoint.dev/script: "), "{aliased}");
        let long = format!("app: {{explodes: {}}}", "x".repeat(100_000)).parse::<Script>().unwrap_err();
        assert!(long.len() < 2 * MOST_PROBLEM, "{long}");
        assert_eq!("".parse::<Script>(), Ok(Script::default()));
        let script: Script =
            "{app: {after: 5, imagePull: fail, exec: {ls: {stdout: x}}, http: {80: hello}}}".parse().unwrap();
        assert_eq!(script.part("app").after, Some(Span(Duration::from_secs(5))));
        assert_eq!(script.part("app").image_pull, ImagePull::Fail);
        assert_eq!(script.part("app").http[&80], "hello");
        assert_eq!(script.part("none"), &Part::default());
    }
}
