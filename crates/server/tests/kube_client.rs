//! The crate `kube` directly on the server: no sockets, virtual time.

use futures::{StreamExt, TryStreamExt, pin_mut};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;
use server::{Caller, Config, Server};
use std::sync::Arc;
use store::{Limits, Memory};
use world::World;

/// A client of its own control plane.
async fn client(world: &World) -> Client {
    let store = Arc::new(Memory::with_limits(Limits { changes: 20, bytes: 1 << 20, live_bytes: u64::MAX }));
    let server = Server::start(world, store, Config::default()).await.unwrap();
    let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
        let server = server.clone();
        request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
        async move { Ok::<_, std::convert::Infallible>(server.handle(request).await) }
    });
    Client::new(service, "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).unwrap()
}

#[test]
fn kube_creates_patches_watches_resumes_and_gets_410() {
    let run = world::simulate(3, |world| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client(&world).await);
        let made = api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap();
        let first = made.metadata.resource_version.unwrap();
        let again = api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap_err();
        assert!(matches!(again, kube::Error::Api(status) if status.code == 409));
        let patch = Patch::Merge(json!({"data": {"k": "2"}}));
        api.patch("one", &PatchParams::default(), &patch).await.unwrap();
        let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"l": "3"}});
        let applied = api.patch("one", &PatchParams::apply("me"), &Patch::Apply(apply)).await.unwrap();
        assert_eq!(applied.data.unwrap().len(), 2);

        let seen = watch(&api, &first, 2).await.unwrap();
        api.delete("one", &DeleteParams::default()).await.unwrap();
        assert_eq!(
            watch(&api, &seen, 1).await.unwrap().parse::<u64>().unwrap(),
            seen.parse::<u64>().unwrap() + 1
        );

        for number in 0..30 {
            api.create(&PostParams::default(), &config_map(&format!("n{number}"), "")).await.unwrap();
        }
        let expired = watch(&api, &first, 1).await.unwrap_err();
        assert_eq!(expired, 410);
        let list = api.list(&ListParams::default().limit(10)).await.unwrap();
        assert_eq!((list.items.len(), list.metadata.remaining_item_count), (10, Some(20)));
    });
    run.unwrap();
}

/// Follows that many events; returns the last resourceVersion, or the error code.
async fn watch(api: &Api<ConfigMap>, from: &str, events: usize) -> Result<String, u16> {
    let events = api.watch(&WatchParams::default(), from).await.unwrap().take(events);
    pin_mut!(events);
    let mut seen = String::new();
    while let Some(event) = events.try_next().await.unwrap() {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                seen = object.metadata.resource_version.unwrap();
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(status.code),
        }
    }
    Ok(seen)
}
