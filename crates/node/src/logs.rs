//! The logs of simulated containers, as a kubelet's server answers `/containerLogs/NAMESPACE/POD/CONTAINER`.

use crate::{
    budget::beginning,
    plan::Course,
    query::{is_true, pairs},
    simulation::Simulation,
    times::{earlier, later},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStatus;
use kube::ResourceExt;
use std::{rc::Rc, sync::Arc};

/// Which part of a log is wanted: the query of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogOptions {
    pub(crate) follow: bool,
    pub(crate) previous: bool,
    pub(crate) timestamps: bool,
    pub(crate) tail_lines: Option<usize>,
    pub(crate) since_seconds: Option<i64>,
    pub(crate) since_time: Option<Timestamp>,
    pub(crate) limit_bytes: Option<usize>,
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) text: String,
    pub(crate) rest: Rest,
    /// Which run of the container it is of; the first one is 0.
    run: i32,
    /// The line of this run that comes next.
    next_line: usize,
}

/// What comes after a piece of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There is more already.
    Ready,
    /// There may be more at this time: the next line, or the end. Without a time nothing is known of the future: look
    /// again when the pod changes.
    Later(Option<Timestamp>),
    Nothing,
}

/// Why there is no log: the status code of the response, and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoLog {
    pub(crate) code: u16,
    pub(crate) text: String,
}

/// A piece of a log has so many bytes, and the rest of its last line: a reader that is slow costs no more.
const PIECE: usize = 64 << 10;
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;

impl LogOptions {
    /// Reads a query as `follow=true&tailLines=10`; unknown names are ignored.
    pub(crate) fn of_query(query: &str) -> Result<LogOptions, NoLog> {
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

/// The beginning of the log of a container of a pod, as it is now.
pub(crate) fn log(
    simulation: &Simulation<'_>,
    container: &str,
    options: &LogOptions,
    now: Timestamp,
) -> Result<Log, NoLog> {
    let place = find(simulation, container)?;
    let run = Run::of(place.status, options.previous, &simulation.pod().name_any())?;
    let written = Written::of(simulation, &place, &run, now);
    let by_age = options.since_seconds.map(|seconds| earlier(now, SignedDuration::from_secs(seconds)));
    let since = options.since_time.into_iter().chain(by_age).max().unwrap_or(Timestamp::MIN);
    let tail = options.tail_lines.map_or(0, |count| written.due.saturating_sub(count));
    let first = written.lines_before(|at| at < since).max(tail);
    Ok(written.piece(run.number, first, options))
}

/// What was written after `last`, for a request that is not answered yet; nothing if that run is forgotten.
pub(crate) fn more(
    simulation: &Simulation<'_>,
    container: &str,
    options: &LogOptions,
    last: &Log,
    now: Timestamp,
) -> Log {
    let nothing = Log { text: String::new(), rest: Rest::Nothing, ..*last };
    let Ok(place) = find(simulation, container) else { return nothing };
    // Kubernetes: a log is followed to the end of the container, not into its next run.
    let is_previous = options.previous || place.status.restart_count > last.run;
    let run = match Run::of(place.status, is_previous, &simulation.pod().name_any()) {
        Ok(run) if run.number == last.run => run,
        _ => return nothing,
    };
    Written::of(simulation, &place, &run, now).piece(run.number, last.next_line, options)
}

/// A container of a pod and its status.
struct LoggedContainer<'a> {
    at: usize,
    status: &'a ContainerStatus,
}

fn find<'a>(simulation: &'a Simulation<'_>, container: &str) -> Result<LoggedContainer<'a>, NoLog> {
    let pod = simulation.pod();
    let name = pod.name_any();
    let Some(at) = (0..simulation.len()).find(|at| simulation.container(*at).name == container) else {
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
    Ok(LoggedContainer { at, status })
}

/// All lines of a run, also those that come later.
struct Written {
    course: Rc<Course>,
    start: Timestamp,
    /// So many lines have been written.
    due: usize,
    /// When there may be more lines; `None` if nothing is known of that.
    next: Option<Timestamp>,
    is_over: bool,
}

impl Written {
    fn of(simulation: &Simulation<'_>, place: &LoggedContainer<'_>, run: &Run, now: Timestamp) -> Written {
        // The log of a run that depends on files of the node is that of a node without them.
        let course = simulation.course(place.at, run.number, &Arc::default());
        let (start, is_over) = (run.start, run.end.is_some());
        let mut written = Written { course, start, due: 0, next: None, is_over };
        let until = run.end.unwrap_or(now);
        written.due = written.lines_before(|at| at <= until);
        let next_line = written.course.lines.get(written.due).map(|(after, _)| later(start, *after));
        let next_end = written.course.end.map(|(after, _)| later(start, after));
        written.next = [next_line, next_end].into_iter().flatten().min();
        written
    }

    /// How many lines there are up to the first one whose time is not one of these.
    fn lines_before(&self, is_before: impl Fn(Timestamp) -> bool) -> usize {
        self.course.lines.partition_point(|(after, _)| is_before(later(self.start, *after)))
    }

    /// The lines from this one on that have been written, as many as make a piece.
    fn piece(&self, run: i32, first: usize, options: &LogOptions) -> Log {
        let (mut text, mut next_line) = (String::new(), first.min(self.due));
        for (after, line) in &self.course.lines[next_line..self.due] {
            if text.len() >= PIECE {
                break;
            }
            if options.timestamps {
                text.push_str(&format!("{:.9} ", later(self.start, *after)));
            }
            text.push_str(line);
            text.push('\n');
            next_line += 1;
        }
        let limit = options.limit_bytes.unwrap_or(usize::MAX);
        let rest = match self.next {
            _ if text.len() >= limit => Rest::Nothing,
            _ if next_line < self.due => Rest::Ready,
            _ if self.is_over || !options.follow => Rest::Nothing,
            next => Rest::Later(next),
        };
        text.truncate(beginning(&text, limit).len());
        Log { text, rest, run, next_line }
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
            let number = if is_waiting { number } else { number.saturating_sub(1) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{budget::FULL, script::SCRIPT};
    use k8s_openapi::api::core::v1::Pod;
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
            ("app", "sinceSeconds=9223372036854775807", "one\ntwo\n"),
            ("app", "sinceSeconds=999999999999", "one\ntwo\n"),
            ("app", "sinceSeconds=-9223372036854775808", ""),
            ("app", "tailLines=9223372036854775807", "one\ntwo\n"),
            ("app", "limitBytes=9223372036854775807", "one\ntwo\n"),
            ("app", "sinceTime=9999-12-30T22%3A00%3A00Z", ""),
            ("app", "tailLines=x", "!400 {\"message\": \"Unable to decode query.\"}"),
            ("late", "", "!400 container \"late\" in pod \"web\" is waiting to start: ContainerCreating"),
            ("late", "previous=true", "!400 previous terminated container \"late\" in pod \"web\" not found"),
            ("none", "", "!404 container \"none\" not found in pod \"web\""),
        ] {
            let pod = pod();
            let simulation = Simulation::new(&pod, FULL);
            let result =
                LogOptions::of_query(query).and_then(|options| log(&simulation, container, &options, now));
            let text = result.map_or_else(|no| format!("!{} {}", no.code, no.text), |log| log.text);
            assert_eq!(text, expected, "{container} {query}");
        }
        let pod = pod();
        let simulation = Simulation::new(&pod, FULL);
        let options = LogOptions { follow: true, ..LogOptions::default() };
        let log = log(&simulation, "app", &options, now).unwrap();
        assert_eq!(log.rest, Rest::Later(Some("2026-01-01T00:00:10Z".parse().unwrap())));
    }

    #[test]
    fn a_long_log_comes_in_pieces() {
        let line = "x".repeat(1000);
        let mut pod = pod();
        let script = json!({"app": {"logs": vec![line.as_str(); 1000]}}).to_string();
        pod.metadata.annotations = Some([(SCRIPT.to_owned(), script)].into());
        let simulation = Simulation::new(&pod, FULL);
        let now: Timestamp = "2026-01-01T00:00:07Z".parse().unwrap();
        for (limit_bytes, whole) in [(None, 254 * 1001 + 55), (Some(100_000), 100_000), (Some(0), 0)] {
            let mut options = LogOptions { limit_bytes, ..LogOptions::default() };
            let mut piece = log(&simulation, "app", &options, now).unwrap();
            let mut text = piece.text.clone();
            while piece.rest == Rest::Ready {
                assert!(piece.text.len() <= PIECE + 1001, "{}", piece.text.len());
                options.limit_bytes = limit_bytes.map(|limit| limit - text.len());
                piece = more(&simulation, "app", &options, &piece, now);
                text.push_str(&piece.text);
            }
            assert_eq!((text.len(), piece.rest), (whole, Rest::Nothing), "{limit_bytes:?}");
            assert!(text.starts_with(&line[..limit_bytes.unwrap_or(1000).min(1000)]));
        }
    }
}
