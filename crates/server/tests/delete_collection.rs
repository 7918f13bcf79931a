//! Deletes of collections: many commits at once, and in the order of the list.

use crate::{
    client::send,
    slow_store::{Slow, StoreAccess},
};
use serde_json::json;
use server::{Config, Server};
use std::{sync::Arc, time::Duration};
use world::World;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const COMMIT: Duration = Duration::from_millis(10);

/// A server whose commits take [`COMMIT`], with 200 ConfigMaps.
async fn start(world: &World) -> Server {
    let delay = |access: StoreAccess<'_>| match access {
        StoreAccess::Commit => COMMIT,
        StoreAccess::Get(_) => Duration::ZERO,
    };
    let server = Server::start(world, Arc::new(Slow::new(world, delay)), Config::default()).await.unwrap();
    for number in 0..200 {
        let body = json!({"metadata": {"name": format!("map-{number:03}")}}).to_string();
        assert_eq!(send(&server, "POST", MAPS, body).await.0, 201);
    }
    server
}

async fn names(server: &Server) -> Vec<String> {
    let (_, list) = send(server, "GET", MAPS, "").await;
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn simulate<F>(story: impl FnOnce(World) -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let () = world::simulate(7, story).unwrap().output;
}

#[test]
fn many_objects_are_deleted_at_once() {
    simulate(|world| async move {
        let server = start(&world).await;
        let before = world.now();
        let (status, list) = send(&server, "DELETE", MAPS, "").await;
        assert_eq!((status, list["items"].as_array().unwrap().len()), (200, 200));
        assert_eq!(names(&server).await, Vec::<String>::new());
        let took = world.now().since(before);
        assert!(took < COMMIT * 20, "200 commits, one after the other? {took:?}");
    });
}

#[test]
fn nothing_after_the_first_refused_object_is_deleted() {
    simulate(|world| async move {
        let server = start(&world).await;
        let policy = json!({"metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "oldObject.metadata.name != 'map-070'", "message": "not this one"}]}});
        let binding = json!({"metadata": {"name": "p"},
            "spec": {"policyName": "p", "validationActions": ["Deny"]}});
        for (resource, body) in [("policies", policy), ("policybindings", binding)] {
            let path = format!("{POLICIES}/validatingadmission{resource}");
            assert_eq!(send(&server, "POST", &path, body.to_string()).await.0, 201);
        }
        let (status, refusal) = send(&server, "DELETE", MAPS, "").await;
        assert_eq!(status, 422, "{refusal}");
        assert!(refusal["message"].as_str().unwrap().ends_with("not this one"), "{refusal}");
        let left: Vec<String> = (70..200).map(|number| format!("map-{number:03}")).collect();
        assert_eq!(names(&server).await, left);

        let other = json!({"preconditions": {"uid": "another"}}).to_string();
        assert_eq!(send(&server, "DELETE", MAPS, other).await.0, 409);
        assert_eq!(names(&server).await, left);
    });
}
