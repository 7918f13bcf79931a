//! Time in which nothing happens costs almost nothing.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Secret, Service},
};
use operator::{Context, Controller, Failure, Key, Manager, Next, all};
use std::time::Duration;

/// Watches of the operator: one for each kind.
const WATCHES: u64 = 5;
const HOURS: u64 = 25;
/// A bookmark a minute for each watch, and the requests of a watch that ends every half hour.
const TURNS_OF_A_WATCH_IN_AN_HOUR: u64 = 60 + 20;

async fn reconcile(_: Context<()>, _: Key) -> Result<Next, Failure> {
    Ok(Next::Settled)
}

#[test]
fn an_idle_day_is_bookmarks_and_nothing_else() {
    let run = testkit::simulate(1, |cluster| async move {
        let controller = Controller::new("idle", all::<ConfigMap>());
        let controller = controller.owns(all::<Secret>()).owns(all::<Service>());
        let controller = controller.owns(all::<Deployment>()).owns(all::<StatefulSet>());
        let client = cluster.client_as("idle", &["system:masters"]);
        let manager = Manager::new("idle", cluster.world(), client);
        let _running = cluster.run(manager.controller(controller.reconcile((), reconcile)));
        cluster.settle().await;
        cluster.advance(Duration::from_secs(HOURS * 3600)).await;
    });
    let most = WATCHES * HOURS * TURNS_OF_A_WATCH_IN_AN_HOUR;
    assert!(run.turns < most, "{} turns, at most {most}", run.turns);
}
