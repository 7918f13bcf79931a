//! Restores that their client does not wait for.

use super::{Tested, create, maps, put_map, with_cluster};
use futures::{StreamExt, future::select, pin_mut};
use kube::{
    ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde_json::json;

/// Enough for the restore to take a while.
const OBJECTS: usize = 100;

#[test]
fn a_restore_whose_client_leaves_is_carried_out() {
    // On a disk, each step takes a moment.
    with_cluster(&["--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        for number in 0..OBJECTS {
            put_map(client, &format!("kept-{number}"), "1").await;
        }
        create(client, "Snapshot", "before", json!({})).await;
        let watched = maps(client);
        watched.delete_collection(&Default::default(), &ListParams::default()).await.unwrap();
        let version = put_map(client, "new", "1").await.resource_version().unwrap();
        let events = watched.watch(&WatchParams::default(), &version).await.unwrap();
        pin_mut!(events);
        {
            let restore = std::pin::pin!(create(client, "Restore", "", json!({"snapshot": "before"})));
            // The client leaves at the first change, or has its answer by then.
            let deleted = async { while !matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))) {} };
            drop(select(restore, std::pin::pin!(deleted)).await);
        }
        // It waits for the end of the restore.
        create(client, "Settle", "", json!({})).await;
        let names: Vec<String> = watched
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        let kept = names.iter().filter(|name| name.starts_with("kept-")).count();
        assert_eq!((kept, names.iter().any(|name| name == "new")), (OBJECTS, false), "{names:?}");
    });
}
