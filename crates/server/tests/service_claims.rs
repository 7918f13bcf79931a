//! Addresses and node ports of services: never shared, never leaked.

use crate::client::send;
use serde_json::{Value, json};
use server::{Config, Server};
use std::{collections::BTreeSet, sync::Arc};
use store::{Embedded, Options};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: Value) -> String {
    let mut service =
        json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    spec.as_object().unwrap().iter().for_each(|(key, value)| service["spec"][key] = value.clone());
    service.to_string()
}

fn claims(service: &Value) -> [String; 2] {
    let spec = &service["spec"];
    [spec["clusterIP"].as_str().unwrap().to_owned(), spec["ports"][0]["nodePort"].to_string()]
}

#[test]
fn concurrent_creates_share_no_address_and_a_restart_keeps_all() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let start = async || {
            let store = Embedded::open(&world, scratch.path(), Options::default()).await.unwrap();
            // So few addresses that choices often collide.
            let service_range = "10.96.0.0/25".parse().unwrap();
            Server::start(&world, Arc::new(store), Config { service_range, ..Config::default() })
                .await
                .unwrap()
        };
        let server = start().await;
        let creators = (0..64).map(|number| {
            let server = server.clone();
            world.spawn("creator", async move {
                let body = service(&format!("s{number}"), json!({}));
                send(&server, "POST", SERVICES, body).await
            })
        });
        let mut seen = BTreeSet::new();
        for creator in creators.collect::<Vec<_>>() {
            let (status, service) = creator.await.unwrap();
            assert_eq!(status, 201, "{service}");
            seen.extend(claims(&service));
        }
        assert_eq!(seen.len(), 128, "64 addresses and 64 ports, all different");
        drop(server);

        let server = start().await;
        let (_, first) = send(&server, "GET", &format!("{SERVICES}/s0"), "").await;
        let [address, port] = claims(&first);
        let wanted = |name: &str| service(name, json!({"clusterIP": address}));
        let (status, refused) = send(&server, "POST", SERVICES, wanted("thief")).await;
        assert_eq!(status, 422, "{refused}");
        assert!(
            refused["message"].as_str().unwrap().contains("provided IP is already allocated"),
            "{refused}"
        );
        let ports = json!({"ports": [{"port": 80, "nodePort": port.parse::<i64>().unwrap()}]});
        let (status, refused) = send(&server, "POST", SERVICES, service("thief", ports)).await;
        assert!(
            refused["message"].as_str().unwrap().contains("provided port is already allocated"),
            "{refused}"
        );
        assert_eq!(status, 422);
        assert_eq!(send(&server, "DELETE", &format!("{SERVICES}/s0"), "").await.0, 200);
        let (status, heir) = send(&server, "POST", SERVICES, wanted("heir")).await;
        assert_eq!(
            (status, claims(&heir)[0].as_str()),
            (201, address.as_str()),
            "what is given back can be had"
        );
    })
    .unwrap();
}

#[test]
fn a_service_that_waits_for_its_finalizer_stays_when_the_write_without_it_is_refused() {
    let run = world::simulate(5, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), Config::default()).await.unwrap();
        let held = |spec: Value, finalizers: Value| {
            let mut service: Value = serde_json::from_str(&service("held", spec)).unwrap();
            service["metadata"]["finalizers"] = finalizers;
            service.to_string()
        };
        let (_, other) = send(&server, "POST", SERVICES, service("other", json!({}))).await;
        let taken = other["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
        let (status, first) =
            send(&server, "POST", SERVICES, held(json!({}), json!(["example.com/hold"]))).await;
        assert_eq!(status, 201, "{first}");
        let path = format!("{SERVICES}/held");
        assert_eq!(send(&server, "DELETE", &path, "").await.0, 200);
        let address = json!(first["spec"]["clusterIP"]);
        for port in [80, taken] {
            let spec = json!({"clusterIP": address, "ports": [{"port": 80, "nodePort": port}]});
            let (status, refused) = send(&server, "PUT", &path, held(spec, json!([]))).await;
            assert_eq!(status, 422, "{refused}");
            let (status, kept) = send(&server, "GET", &path, "").await;
            assert_eq!((status, &kept["metadata"]["finalizers"][0]), (200, &json!("example.com/hold")));
            assert_eq!(kept["spec"], first["spec"]);
        }
        let spec = json!({"clusterIP": address, "ports": first["spec"]["ports"]});
        assert_eq!(send(&server, "PUT", &path, held(spec, json!([]))).await.0, 200);
        assert_eq!(send(&server, "GET", &path, "").await.0, 404);
    });
    run.unwrap();
}
