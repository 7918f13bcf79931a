//! The logs of simulated containers, as a kubelet's server answers `/containerLogs/NAMESPACE/POD/CONTAINER`.

use crate::{
    plan::{Role, course, roles},
    query::{is_true, pairs},
    script::Script,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube::ResourceExt;
use std::time::Duration;

/// Which part of a log is wanted: the query of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub follow: bool,
    pub previous: bool,
    pub timestamps: bool,
    pub tail_lines: Option<usize>,
    pub since_seconds: Option<i64>,
    pub since_time: Option<Timestamp>,
    pub limit_bytes: Option<usize>,
}

/// What there is of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub text: String,
    /// When there is more, for a request that follows: the next line, or the end. `None` if nothing is known of
    /// the future: look again when the pod changes.
    pub next: Option<Timestamp>,
    /// The container has ended: nothing more comes.
    pub is_over: bool,
    /// Which run of the container it is of; the first one is 0.
    pub run: i32,
    /// It holds the lines up to this time.
    pub until: Timestamp,
}

/// Why there is no log: the status code of the response, and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLog {
    pub code: u16,
    pub text: String,
}

const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;

impl LogOptions {
    /// Reads a query as `follow=true&tailLines=10`; unknown names are ignored.
    pub fn of_query(query: &str) -> Result<LogOptions, NoLog> {
        let mut options = LogOptions::default();
        for (name, value) in pairs(query) {
            // Kubernetes: the same text for all mistakes.
            let wrong =
                || NoLog { code: BAD_REQUEST, text: r#"{"message": "Unable to decode query."}"#.to_owned() };
            let number = || value.parse().map_err(|_| wrong());
            match name.as_str() {
                "follow" => options.follow = is_true(&value),
                "previous" => options.previous = is_true(&value),
                "timestamps" => options.timestamps = is_true(&value),
                "tailLines" => options.tail_lines = Some(number()?),
                "limitBytes" => options.limit_bytes = Some(number()?),
                "sinceSeconds" => options.since_seconds = Some(value.parse().map_err(|_| wrong())?),
                "sinceTime" => options.since_time = Some(value.parse().map_err(|_| wrong())?),
                _ => {}
            }
        }
        Ok(options)
    }
}

/// The log of a container of a pod, as it is now.
pub fn log(pod: &Pod, container: &str, options: &LogOptions, now: Timestamp) -> Result<Log, NoLog> {
    let place = find(pod, container)?;
    let run = Run::of(place.status, options.previous, &pod.name_any())?;
    let written = Written::of(pod, &place, &run, now);
    let lines = written.lines.iter().filter(|(time, _)| *time <= written.until);
    let text = cut(lines.map(|(time, line)| (*time, line.as_str())), options, now);
    Ok(Log { text, next: written.next, is_over: run.end.is_some(), run: run.number, until: written.until })
}

/// What was written after `last`, for a request that follows; without text and over if that run is forgotten.
pub(crate) fn more(pod: &Pod, container: &str, options: &LogOptions, last: &Log, now: Timestamp) -> Log {
    let nothing = Log { text: String::new(), next: None, is_over: true, run: last.run, until: last.until };
    let Ok(place) = find(pod, container) else { return nothing };
    // Kubernetes: a log is followed to the end of the container, not into its next run.
    let is_previous = options.previous || place.status.restart_count > last.run;
    let run = match Run::of(place.status, is_previous, &pod.name_any()) {
        Ok(run) if run.number == last.run => run,
        _ => return nothing,
    };
    let written = Written::of(pod, &place, &run, now);
    let lines = written.lines.iter().filter(|(time, _)| *time > last.until && *time <= written.until);
    let unlimited = LogOptions { timestamps: options.timestamps, ..LogOptions::default() };
    let text = cut(lines.map(|(time, line)| (*time, line.as_str())), &unlimited, now);
    let until = written.until.max(last.until);
    Log { text, next: written.next, is_over: run.end.is_some(), run: run.number, until }
}

/// A container of a pod and its status.
struct LoggedContainer<'a> {
    spec: Container,
    role: Role,
    status: &'a ContainerStatus,
}

fn find<'a>(pod: &'a Pod, container: &str) -> Result<LoggedContainer<'a>, NoLog> {
    let name = pod.name_any();
    let Some((spec, role)) = roles(pod).into_iter().find(|(it, _)| it.name == container) else {
        let text = format!("container \"{container}\" not found in pod \"{name}\"");
        return Err(NoLog { code: NOT_FOUND, text });
    };
    let mut statuses = pod.status.iter().flat_map(|it| {
        let lists = [&it.init_container_statuses, &it.container_statuses, &it.ephemeral_container_statuses];
        lists.into_iter().flatten().flatten()
    });
    let Some(status) = statuses.find(|it| it.name == container) else {
        let text = format!("container \"{container}\" in pod \"{name}\" is not available");
        return Err(NoLog { code: BAD_REQUEST, text });
    };
    Ok(LoggedContainer { spec, role, status })
}

/// All lines of a run, also those that come later.
struct Written {
    lines: Vec<(Timestamp, String)>,
    /// Now, or when it ended.
    until: Timestamp,
    /// As [`Log::next`].
    next: Option<Timestamp>,
}

impl Written {
    fn of(pod: &Pod, place: &LoggedContainer<'_>, run: &Run, now: Timestamp) -> Written {
        let script = Script::of(pod).unwrap_or_default();
        let course = course(pod, &place.spec, place.role, script.part(&place.spec.name), run.number);
        let until = run.end.unwrap_or(now);
        let at = |offset: Duration| {
            let offset = SignedDuration::try_from(offset).unwrap_or(SignedDuration::MAX);
            run.start.checked_add(offset).unwrap_or(Timestamp::MAX)
        };
        let lines: Vec<_> = course.lines.into_iter().map(|(offset, line)| (at(offset), line)).collect();
        let next_line = lines.iter().map(|(time, _)| *time).find(|time| *time > until);
        let next_end = course.end.map(|(after, _)| at(after));
        let next = [next_line, next_end].into_iter().flatten().filter(|_| run.end.is_none()).min();
        Written { lines, until, next }
    }
}

/// One run of a container.
struct Run {
    number: i32,
    start: Timestamp,
    end: Option<Timestamp>,
}

impl Run {
    fn of(status: &ContainerStatus, is_previous: bool, pod: &str) -> Result<Run, NoLog> {
        let container = &status.name;
        let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let state = status.state.as_ref();
        let time = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
            time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
        };
        let number = status.restart_count;
        if is_previous {
            // Kubernetes: this text.
            let text = format!("previous terminated container \"{container}\" in pod \"{pod}\" not found");
            let missing = || NoLog { code: BAD_REQUEST, text };
            let last = last.ok_or_else(missing)?;
            let is_waiting = state.is_some_and(|state| state.waiting.is_some());
            let number = if is_waiting { number } else { number - 1 };
            return Ok(Run { number, start: time(&last.started_at), end: Some(time(&last.finished_at)) });
        }
        if let Some(running) = state.and_then(|state| state.running.as_ref()) {
            return Ok(Run { number, start: time(&running.started_at), end: None });
        }
        match (state.and_then(|state| state.terminated.as_ref()), last) {
            (Some(ended), _) | (None, Some(ended)) => {
                Ok(Run { number, start: time(&ended.started_at), end: Some(time(&ended.finished_at)) })
            }
            (None, None) => {
                let reason = state.and_then(|state| state.waiting.as_ref()?.reason.as_deref());
                Err(waiting(container, pod, reason.unwrap_or_default()))
            }
        }
    }
}

/// Kubernetes: `kubectl logs` shows this text for a container that has not been started.
fn waiting(container: &str, pod: &str, reason: &str) -> NoLog {
    let what = match reason {
        "ErrImagePull" => "image can't be pulled".to_owned(),
        "ImagePullBackOff" => "trying and failing to pull image".to_owned(),
        reason => reason.to_owned(),
    };
    let text = format!("container \"{container}\" in pod \"{pod}\" is waiting to start: {what}");
    NoLog { code: BAD_REQUEST, text }
}

/// The lines that the options ask for.
fn cut<'a>(
    lines: impl Iterator<Item = (Timestamp, &'a str)>,
    options: &LogOptions,
    now: Timestamp,
) -> String {
    let by_age = options.since_seconds.map(|seconds| now - SignedDuration::from_secs(seconds));
    let since = options.since_time.into_iter().chain(by_age).max();
    let lines: Vec<_> = lines.filter(|(at, _)| since.is_none_or(|since| *at >= since)).collect();
    let first = options.tail_lines.map_or(0, |count| lines.len().saturating_sub(count));
    let line = |(at, line): &(Timestamp, &str)| match options.timestamps {
        true => format!("{at:.9} {line}\n"),
        false => format!("{line}\n"),
    };
    let mut text: String = lines[first..].iter().map(line).collect();
    if let Some(limit) = options.limit_bytes {
        let end =
            (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"containers": [
                {"name": "app", "command": ["sh", "-c", "echo one; sleep 5; echo two; sleep 5; echo three; sleep 99"]},
                {"name": "late"}]},
            "status": {"containerStatuses": [
                {"name": "app", "ready": true, "restartCount": 1, "image": "", "imageID": "",
                 "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                 "lastState": {"terminated": {"exitCode": 1, "startedAt": "2025-01-01T00:00:00Z",
                                              "finishedAt": "2025-01-01T00:00:01Z"}}},
                {"name": "late", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                 "state": {"waiting": {"reason": "ContainerCreating"}}}]}}))
        .unwrap()
    }

    #[test]
    fn a_log_has_the_lines_that_the_query_asks_for() {
        let now: Timestamp = "2026-01-01T00:00:07Z".parse().unwrap();
        for (container, query, expected) in [
            ("app", "", "one\ntwo\n"),
            ("app", "tailLines=1", "two\n"),
            ("app", "tailLines=0", ""),
            ("app", "sinceSeconds=3", "two\n"),
            ("app", "sinceTime=2026-01-01T00%3A00%3A01Z", "two\n"),
            ("app", "limitBytes=5", "one\nt"),
            ("app", "previous=true", "one\n"),
            ("app", "tailLines=1&timestamps=true", "2026-01-01T00:00:05.000000000Z two\n"),
            ("app", "tailLines=x", "!400 {\"message\": \"Unable to decode query.\"}"),
            ("late", "", "!400 container \"late\" in pod \"web\" is waiting to start: ContainerCreating"),
            ("late", "previous=true", "!400 previous terminated container \"late\" in pod \"web\" not found"),
            ("none", "", "!404 container \"none\" not found in pod \"web\""),
        ] {
            let result =
                LogOptions::of_query(query).and_then(|options| log(&pod(), container, &options, now));
            let text = result.map_or_else(|no| format!("!{} {}", no.code, no.text), |log| log.text);
            assert_eq!(text, expected, "{container} {query}");
        }
        let log = log(&pod(), "app", &LogOptions::default(), now).unwrap();
        assert_eq!(log.next, Some("2026-01-01T00:00:10Z".parse().unwrap()));
        assert!(!log.is_over);
    }
}
