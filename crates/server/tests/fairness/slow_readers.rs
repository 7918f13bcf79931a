//! Large unread responses keep their seat until another request needs it.

use super::{ask, start, text, tighten, user};
use crate::client::send;
use http_body_util::BodyExt;
use serde_json::json;
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn an_unread_response_is_cut_off_when_others_wait() {
    world::simulate(9, |world| async move {
        let server = start(&world, 60, Duration::ZERO).await;
        let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(300_000)}});
        assert_eq!(send(&server, "POST", MAPS, large.to_string()).await.0, 201);
        let everybody = json!({"kind": "Group", "group": {"name": "system:authenticated"}});
        tighten(&server, &everybody, json!({"type": "Queue", "queuing": {}})).await;
        let asking = |name: &'static str, path: &'static str| {
            let (world, server) = (world.clone(), server.clone());
            world.clone().spawn("ask", async move {
                let since = world.now();
                let response = ask(&server, user(name), path).await;
                (response, world.now().since(since).as_secs())
            })
        };
        // No other request waits: there is time to read.
        let (response, _) = asking("ann", MAPS).await.unwrap();
        world.sleep(Duration::from_secs(50)).await;
        assert!(text(response).await.len() > 300_000);
        // The unread response holds the single seat; a small response holds none.
        let (mut unread, _) = asking("ann", MAPS).await.unwrap();
        assert!(unread.body_mut().frame().await.is_some(), "a piece is taken");
        let (response, waited) = asking("bob", super::OBJECT).await.unwrap();
        assert_eq!((response.status().as_u16(), waited), (200, 5));
        let rest = unread.into_body().collect().await.unwrap().to_bytes();
        assert!(rest.is_empty(), "it was cut off, not kept: {}", rest.len());
        // At the latest after the time limit of any response.
        let (unread, _) = asking("ann", MAPS).await.unwrap();
        world.sleep(Duration::from_secs(61)).await;
        assert!(text(unread).await.is_empty());
        // A client that hangs up releases the seat.
        drop(asking("ann", MAPS).await.unwrap());
        assert_eq!(asking("bob", super::OBJECT).await.unwrap().1, 0);
    })
    .unwrap();
}
