//! The time limit of a request: its `timeout`, within the server's maximum.

use crate::{
    refusal::Refusal,
    request::{Options, Place, Target, Verb},
};
use api::go;
use http::Method;
use std::time::Duration;
use world::{Moment, World};

/// The limit of requests that set no shorter timeout.
// Kubernetes: --request-timeout.
const REQUEST: Duration = Duration::from_secs(60);
/// No request waits longer for seats.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The time limit of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    After(Duration),
    /// A watch, or a connection to a pod: as long as the client wants.
    Never,
}

impl Deadline {
    /// From the path and the query.
    pub(crate) fn new(method: &Method, place: &Place, options: &Options) -> Result<Deadline, Refusal> {
        if let Place::Resource(target) = place
            && (is_connection(target) || target.verb(method, options.watch) == Some(Verb::Watch))
        {
            return Ok(Deadline::Never);
        }
        let timeout = match options.rest.get("timeout").map(String::as_str) {
            None | Some("") => None,
            Some(text) => Some(parse(text).map_err(|problem| {
                Refusal::bad_request(format!("invalid timeout specified in the request URL - {problem}"))
            })?),
        };
        let timeout = timeout.flatten().filter(|timeout| !timeout.is_zero() && *timeout < REQUEST);
        Ok(Deadline::After(timeout.unwrap_or(REQUEST)))
    }

    /// Runs work that began a while ago within the remaining time.
    pub(crate) async fn keep<T>(
        self,
        world: &World,
        begun: Moment,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let Deadline::After(limit) = self else { return work.await };
        let left = limit.saturating_sub(world.now().since(begun));
        world.timeout(left, work).await.unwrap_or_else(|_| Err(too_slow()))
    }

    /// The part of the limit that may pass waiting for seats.
    // Kubernetes: a quarter.
    pub(super) fn wait(self) -> Duration {
        let whole = match self {
            Deadline::After(limit) => limit,
            Deadline::Never => REQUEST,
        };
        (whole / 4).min(MAX_WAIT)
    }
}

/// Whether a request holds its connection for as long as the client wants.
// Kubernetes: these take no seats, and have no deadline.
pub(super) fn is_connection(target: &Target) -> bool {
    let subresource = target.subresource.split('/').next().unwrap_or_default();
    matches!(subresource, "attach" | "exec" | "proxy" | "log" | "portforward")
}

/// The answer to a request that timed out.
fn too_slow() -> Refusal {
    Refusal::timeout("request did not complete within the allotted timeout", 0)
}

/// Parses a Go duration; `None` if negative.
fn parse(text: &str) -> Result<Option<Duration>, String> {
    let bad = || format!("time: invalid duration {}", go::quote(text));
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Some(Duration::ZERO));
    }
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let number: f64 = number.parse().map_err(|_| bad())?;
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" => return Err(format!("time: missing unit in duration {}", go::quote(text))),
            _ => {
                return Err(format!(
                    "time: unknown unit {} in duration {}",
                    go::quote(unit),
                    go::quote(text)
                ));
            }
        };
        total += number * seconds;
        rest = after;
    }
    if total > MAX_SECONDS {
        return Err(bad());
    }
    Ok((!negative).then(|| Duration::from_secs_f64(total)))
}

/// Go counts nanoseconds in 64 bits.
const MAX_SECONDS: f64 = 9_223_372_036.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_parameter_sets_the_deadline() {
        for (query, expected) in [
            ("", Ok(60_000)),
            ("timeout=", Ok(60_000)),
            ("timeout=5s", Ok(5_000)),
            ("timeout=1.5s", Ok(1_500)),
            ("timeout=1s500ms", Ok(1_500)),
            ("timeout=0", Ok(60_000)),
            ("timeout=0s", Ok(60_000)),
            ("timeout=-3s", Ok(60_000)),
            ("timeout=10m", Ok(60_000)),
            ("timeout=5", Err(r#"time: missing unit in duration "5""#)),
            ("timeout=5x", Err(r#"time: unknown unit "x" in duration "5x""#)),
            ("timeout=abc", Err(r#"time: invalid duration "abc""#)),
            ("timeout=1..s", Err(r#"time: invalid duration "1..s""#)),
            ("timeout=9999999999999h", Err(r#"time: invalid duration "9999999999999h""#)),
        ] {
            let options = Options::parse(query);
            let found = Deadline::new(&Method::GET, &parse_path("/api/v1/pods"), &options);
            let expected = expected
                .map(|millis| Deadline::After(Duration::from_millis(millis)))
                .map_err(|text| format!("invalid timeout specified in the request URL - {text}"));
            assert_eq!(found.map_err(|refusal| refusal.to_string()), expected, "{query}");
        }
        for (path, query) in [
            ("/api/v1/pods", "watch=1&timeout=never"),
            ("/api/v1/watch/pods", "timeout=never"),
            ("/api/v1/namespaces/a/pods/b/log", "timeout=never"),
            ("/api/v1/namespaces/a/services/b/proxy/c", ""),
        ] {
            let options = Options::parse(query);
            let found = Deadline::new(&Method::GET, &parse_path(path), &options);
            assert_eq!(found.ok(), Some(Deadline::Never), "{path}");
        }
    }

    fn parse_path(path: &str) -> Place {
        crate::request::parse(path).unwrap()
    }

    #[test]
    fn a_request_waits_a_quarter_of_its_time_at_most() {
        for (deadline, expected) in [
            (Deadline::After(Duration::from_secs(60)), 15),
            (Deadline::After(Duration::from_secs(4)), 1),
            (Deadline::Never, 15),
        ] {
            assert_eq!(deadline.wait().as_secs(), expected);
        }
    }
}
