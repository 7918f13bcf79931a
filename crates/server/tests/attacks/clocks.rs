//! Extreme numbers that are added to a clock: no request panics, and none lasts for ever.

use crate::client::send;
use serde_json::json;
use server::{Config, Server};
use std::sync::Arc;

const NUMBERS: [&str; 10] = [
    "0",
    "1",
    "-1",
    "4294967296",
    "253402300800",
    "9223372036",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
];

const PROBED_POD: &str = r#"{"metadata":{"generateName":"p-"},"spec":{"activeDeadlineSeconds":SECONDS,"containers":[{"name":"c","image":"i","readinessProbe":{"exec":{"command":["a"]},"initialDelaySeconds":SECONDS,"periodSeconds":SECONDS,"failureThreshold":SECONDS,"successThreshold":SECONDS,"timeoutSeconds":SECONDS,"terminationGracePeriodSeconds":SECONDS},"lifecycle":{"preStop":{"sleep":{"seconds":SECONDS}}}}]}}"#;
const NODE_POD: &str = r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":GRACE,"containers":[{"name":"c","image":"i"}]}}"#;

#[test]
fn extreme_numbers_of_seconds_are_accepted_or_rejected() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let pods = "/api/v1/namespaces/default/pods";
        let account = json!({"metadata": {"name": "bot"}}).to_string();
        send(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", account).await;
        for number in NUMBERS {
            for (method, path, body) in [
                ("GET", format!("{pods}?timeoutSeconds={number}"), String::new()),
                ("GET", format!("{pods}?timeout={number}s"), String::new()),
                ("GET", format!("{pods}?limit={number}"), String::new()),
                ("GET", format!("{pods}?resourceVersion={number}"), String::new()),
                (
                    "POST",
                    "/api/v1/namespaces/default/serviceaccounts/bot/token".to_owned(),
                    format!(r#"{{"spec":{{"expirationSeconds":{number}}}}}"#),
                ),
                ("POST", pods.to_owned(), PROBED_POD.replace("SECONDS", number)),
                ("POST", pods.to_owned(), NODE_POD.replace("GRACE", number)),
                ("DELETE", format!("{pods}/p?gracePeriodSeconds={number}"), String::new()),
                ("POST", pods.to_owned(), NODE_POD.replace("GRACE", "30")),
                (
                    "DELETE",
                    format!("{pods}/p"),
                    format!(r#"{{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":{number}}}"#),
                ),
                ("POST", pods.to_owned(), NODE_POD.replace("GRACE", number)),
                ("DELETE", format!("{pods}/p"), String::new()),
                (
                    "POST",
                    format!("{pods}/p/eviction"),
                    format!(
                        r#"{{"metadata":{{"name":"p"}},"deleteOptions":{{"gracePeriodSeconds":{number}}}}}"#
                    ),
                ),
                (
                    "DELETE",
                    format!("{pods}?gracePeriodSeconds={number}&timeoutSeconds={number}"),
                    String::new(),
                ),
                ("DELETE", format!("{pods}/p?gracePeriodSeconds=0"), String::new()),
                (
                    "POST",
                    "/apis/coordination.k8s.io/v1/namespaces/default/leases".to_owned(),
                    format!(
                        r#"{{"metadata":{{"generateName":"l-"}},"spec":{{"leaseDurationSeconds":{number},"renewTime":"9999-12-31T23:59:59.000000Z"}}}}"#
                    ),
                ),
                (
                    "POST",
                    "/apis/batch/v1/namespaces/default/jobs".to_owned(),
                    format!(
                        r#"{{"metadata":{{"generateName":"j-","generation":{number}}},"spec":{{"activeDeadlineSeconds":{number},"ttlSecondsAfterFinished":1,"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
                    ),
                ),
            ] {
                let (code, answer) = send(&server, method, &path, body.clone()).await;
                assert!(code != 500 && code != 0, "{method} {path} {body}: {code} {answer}");
            }
        }
    });
    run.unwrap();
}

#[test]
fn a_grace_period_beyond_the_largest_timestamp_ends_there() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let pods = "/api/v1/namespaces/default/pods";
        send(
            &server,
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            r#"{"metadata":{"name":"default"}}"#,
        )
        .await;
        let (code, made) = send(&server, "POST", pods, NODE_POD.replace("GRACE", "30")).await;
        assert_eq!(code, 201, "{made}");
        let path = format!("{pods}/p?gracePeriodSeconds={}", i64::MAX);
        let (code, marked) = send(&server, "DELETE", &path, "").await;
        assert_eq!(code, 200, "{marked}");
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], i64::MAX);
        assert!(
            marked["metadata"]["deletionTimestamp"].as_str().unwrap().starts_with("9999-12-"),
            "{marked}"
        );
        let (code, gone) = send(&server, "DELETE", &format!("{pods}/p?gracePeriodSeconds=0"), "").await;
        assert_eq!(code, 200, "{gone}");
        assert_eq!(send(&server, "GET", &format!("{pods}/p"), "").await.0, 404);
    });
    run.unwrap();
}

#[test]
fn watches_with_the_largest_timeout_begin() {
    use http::{Request, header};
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        for number in NUMBERS {
            let uri = format!("/api/v1/pods?watch=1&allowWatchBookmarks=1&timeoutSeconds={number}");
            let mut request = Request::get(&uri).header(header::ACCEPT, "application/json");
            let caller = server::Caller::known("admin", "", vec!["system:masters".to_owned()]);
            request.extensions_mut().unwrap().insert(caller);
            let body = http_body_util::Full::new(bytes::Bytes::new());
            let response = server.handle(request.body(body).unwrap()).await;
            assert!(matches!(response.status().as_u16(), 200 | 400), "{uri}: {}", response.status());
        }
    });
    run.unwrap();
}
