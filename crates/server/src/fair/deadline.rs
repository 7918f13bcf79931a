//! The time limit of a request: its `timeout`, within the server's maximum.

use crate::{
    refusal::Refusal,
    request::{Options, Place, Target, Verb},
};
use api::time::parse_duration;
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
            Some(text) => {
                let nanos = parse_duration(text).map_err(|problem| {
                    Refusal::bad_request(format!("invalid timeout specified in the request URL - {problem}"))
                })?;
                u64::try_from(nanos).ok().map(Duration::from_nanos)
            }
        };
        let timeout = timeout.filter(|timeout| !timeout.is_zero() && *timeout < REQUEST);
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
            ("timeout=1..s", Err(r#"time: missing unit in duration "1..s""#)),
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
