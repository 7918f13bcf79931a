//! Metrics of requests, watches and objects.

use crate::client::{send, send_raw};
use server::{Config, Server};
use std::sync::Arc;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn requests_are_counted_and_clients_cannot_add_labels() {
    let run = world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        for (method, path, body) in [
            ("POST", PATH, r#"{"metadata":{"name":"a"}}"#),
            ("POST", PATH, r#"{"metadata":{"name":"a"}}"#),
            ("GET", PATH, ""),
            ("GET", "/api/v1/configmaps?watch=1&timeoutSeconds=5", ""),
            ("GET", "/apis/nosuch/v7/things", ""),
            ("GET", "/nosuch", ""),
        ] {
            send(&server, method, path, body).await;
        }
        let page =
            async || String::from_utf8(send_raw(&server, "GET", "/metrics", "").await.1.to_vec()).unwrap();
        let first = page().await;
        for expected in [
            r#"apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 1"#,
            r#"apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 1"#,
            r#"apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1"} 1"#,
            r#"apiserver_request_duration_seconds_bucket{component="apiserver",dry_run="",group="",resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1",le="5"} 1"#,
            r#"apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1"} 0"#,
            r#"apiserver_watch_events_total{group="",resource="configmaps",version="v1"} 1"#,
            r#"apiserver_response_sizes_count{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="LIST",version="v1"} 1"#,
            r#"apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="LIST",version=""} 1"#,
            r#"apiserver_resource_objects{group="",resource="configmaps"} 1"#,
            r#"apiserver_storage_objects{resource="clusterroles.rbac.authorization.k8s.io"} "#,
            r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#,
            r#"apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"} "#,
            r#"apiserver_flowcontrol_current_executing_requests{flow_schema="exempt",priority_level="exempt"} 1"#,
            r#"apiserver_flowcontrol_current_inqueue_requests{flow_schema="global-default",priority_level="global-default"} 0"#,
            r#"apiserver_flowcontrol_request_execution_seconds_count{flow_schema="exempt",priority_level="exempt",type="watch"} 1"#,
            r#"apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} "#,
            "setpoint_store_revision ",
            "process_resident_memory_bytes ",
        ] {
            assert!(first.lines().any(|line| line.starts_with(expected)), "{expected}\n{first}");
        }
        page().await;
        let before = page().await.lines().count();
        for number in 0..50 {
            send(&server, "GET", &format!("/apis/g{number}/v1/r{number}"), "").await;
            send(&server, "GET", &format!("{PATH}/a/sub{number}"), "").await;
            send(&server, "GET", &format!("/p{number}"), "").await;
        }
        let after = page().await;
        assert!(after.lines().count() < before + 60, "{after}");
    });
    run.unwrap();
}
