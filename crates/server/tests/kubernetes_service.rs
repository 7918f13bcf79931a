//! The service `kubernetes`: created at the start, corrected at a restart, recreated when deleted.

use crate::client::send;
use serde_json::json;
use server::{Config, Server};
use std::sync::Arc;

const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

#[test]
fn endpoints_have_the_servers_address() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let start = async |address: &str| {
            let config = Config {
                service_range: "10.7.0.0/24".parse().unwrap(),
                advertised: Some(address.parse().unwrap()),
                ..Config::default()
            };
            Server::start(&world, store.clone(), config).await.unwrap()
        };
        for (address, kind) in [
            ("192.0.2.7:6443", "IPv4"),
            ("192.0.2.7:6443", "IPv4"),
            ("192.0.2.8:7443", "IPv4"),
            ("[2001:db8::1]:6443", "IPv6"),
        ] {
            let server = start(address).await;
            let at: std::net::SocketAddr = address.parse().unwrap();
            let (_, service) = send(&server, "GET", SERVICE, "").await;
            assert_eq!(service["spec"]["clusterIP"], "10.7.0.1", "{service}");
            let port = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]);
            assert_eq!(service["spec"]["ports"], port, "it stays as it was made");
            assert_eq!(service["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
            let (_, endpoints) = send(&server, "GET", ENDPOINTS, "").await;
            let port = json!([{"name": "https", "port": at.port(), "protocol": "TCP"}]);
            let subsets = json!([{"addresses": [{"ip": at.ip().to_string()}], "ports": port}]);
            assert_eq!(endpoints["subsets"], subsets, "{endpoints}");
            let (_, slice) = send(&server, "GET", SLICE, "").await;
            assert_eq!((&slice["addressType"], &slice["ports"]), (&json!(kind), &port), "{slice}");
            assert_eq!(slice["endpoints"][0]["addresses"], json!([at.ip().to_string()]), "{slice}");
        }
    });
    run.unwrap();
}

#[test]
fn deleted_service_and_endpoints_are_recreated() {
    world::run(async |world| {
        let lab = crate::socket::Lab::start(&world, server::accept::Limits::default()).await;
        let ask = async |method: &str| lab.ask(&crate::socket::request(method, SERVICE, "", b"")).await;
        let before = ask("GET").await;
        assert!(before.starts_with("HTTP/1.1 200 "), "{before}");
        assert!(ask("DELETE").await.starts_with("HTTP/1.1 200 "));
        let back = async { while !ask("GET").await.starts_with("HTTP/1.1 200 ") {} };
        world.timeout(std::time::Duration::from_secs(10), back).await.unwrap();
    })
    .unwrap();
}
