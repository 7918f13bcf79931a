//! `rest_client_*`: requests to the API server, and how long they take.

use super::{Counter, Histogram, Metrics};
use crate::client;
use http::Method;
use kube::Client;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use world::World;

// controller-runtime: the bounds of its histogram.
const DURATIONS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
// client-go: the code of a request without a response.
const NO_ANSWER: &str = "<error>";

/// Caches the handles, so that labels are not built for each request.
#[derive(Debug)]
struct RequestMetrics {
    metrics: Metrics,
    /// By method and code; 0 stands for no response.
    counts: Mutex<BTreeMap<(String, u16), Counter>>,
    durations: Mutex<BTreeMap<String, Histogram>>,
}

impl Metrics {
    /// Sets the host of the API server. Only the first call counts.
    pub fn set_host(&self, host: &str) {
        let _ = self.0.host.set(host.to_owned());
    }

    /// The same client, with its requests counted.
    pub fn around(&self, world: &World, client: Client) -> Client {
        let requests = Arc::new(RequestMetrics {
            metrics: self.clone(),
            counts: Mutex::default(),
            durations: Mutex::default(),
        });
        let world = world.clone();
        client::through(&client, move |client, request| {
            let (world, requests) = (world.clone(), Arc::clone(&requests));
            async move {
                let (method, begun) = (request.method().clone(), world.now());
                let answer = client.send(request).await;
                let code = match &answer {
                    Ok(response) => response.status().as_u16(),
                    Err(kube::Error::Api(status)) => status.code,
                    Err(_) => 0,
                };
                requests.observe(&method, code, world.now().since(begun));
                answer
            }
        })
    }
}

impl RequestMetrics {
    fn observe(&self, method: &Method, code: u16, took: Duration) {
        self.count(method, code).add(1);
        self.duration(method).observe(took);
    }

    fn count(&self, method: &Method, code: u16) -> Counter {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let code = if code == 0 { NO_ANSWER.to_owned() } else { code.to_string() };
            let labels = [("code", code.as_str()), ("method", method.as_str()), ("host", self.host())];
            let help = "Number of HTTP requests, partitioned by status code, method, and host.";
            self.metrics.counter("rest_client_requests_total", help, &labels)
        };
        counts.entry((method.to_string(), code)).or_insert_with(make).clone()
    }

    fn duration(&self, method: &Method) -> Histogram {
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let labels = [("verb", method.as_str()), ("host", self.host())];
            let help = "Request latency in seconds. Broken down by verb and host.";
            self.metrics.histogram("rest_client_request_duration_seconds", help, &labels, &DURATIONS)
        };
        durations.entry(method.to_string()).or_insert_with(make).clone()
    }

    fn host(&self) -> &str {
        self.metrics.0.host.get().map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use tower::BoxError;

    #[test]
    fn requests_are_counted_by_code_method_and_host() {
        let run = world::simulate(1, |world| async move {
            let clock = world.clone();
            let server = tower::service_fn(move |request: Request<Body>| {
                let clock = clock.clone();
                async move {
                    clock.sleep(Duration::from_millis(20)).await;
                    match request.uri().path() {
                        "/lost" => Err(BoxError::from("the line is dead")),
                        path => {
                            let code = if path == "/none" { 404 } else { 200 };
                            Ok(Response::builder().status(code).body(Body::empty()).expect("a response"))
                        }
                    }
                }
            });
            let metrics = Metrics::default();
            metrics.set_host("example:6443");
            let client = metrics.around(&world, Client::new(server, "default"));
            for (method, path) in [("GET", "/"), ("GET", "/"), ("GET", "/none"), ("PUT", "/lost")] {
                let request = Request::builder().method(method).uri(path).body(Body::empty());
                drop(client.send(request.expect("a request")).await);
            }
            metrics.render()
        });
        let page = run.expect("everything is answered").output;
        let samples: Vec<_> =
            page.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket")).collect();
        let expected = r#"rest_client_request_duration_seconds_sum{host="example:6443",verb="GET"} 0.06
rest_client_request_duration_seconds_count{host="example:6443",verb="GET"} 3
rest_client_request_duration_seconds_sum{host="example:6443",verb="PUT"} 0.02
rest_client_request_duration_seconds_count{host="example:6443",verb="PUT"} 1
rest_client_requests_total{code="200",host="example:6443",method="GET"} 2
rest_client_requests_total{code="404",host="example:6443",method="GET"} 1
rest_client_requests_total{code="<error>",host="example:6443",method="PUT"} 1"#;
        assert_eq!(samples.join("\n"), expected);
    }
}
