//! `setpoint why`: the story of an object, and what is wrong with it.

mod deletion;
mod history;
mod print;
mod story;
mod trouble;
mod writers;

use crate::client::{
    api::Api,
    catalog::Catalog,
    connect::ConnectOptions,
    failure::ClientResult,
    family,
    follow::{self, Selection},
    note, target,
};
use serde_json::Value;
use std::collections::BTreeSet;
use story::Evidence;
use world::World;

/// Tell the story of an object: what is wrong, who wrote what, what has happened.
///
/// What is wrong with it or with the deepest object below it comes first. Then its owners, its conditions, what holds
/// its deletion up, and its history: who wrote which fields, and its events.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint why deploy/web       why a rollout does not come to its end
  setpoint why pod/web-0        why a pod does not run
  setpoint why ns/old           why a deletion does not end")]
pub(crate) struct WhyOptions {
    /// TYPE/NAME
    object: String,
    #[command(flatten)]
    connect: ConnectOptions,
}

pub(crate) async fn run(world: &World, options: &WhyOptions) -> ClientResult<()> {
    let connection = options.connect.connect().await?;
    let catalog = Catalog::load(&connection.api).await?;
    let target = target::pair(&catalog, &connection.namespace, &options.object)?;
    let subject = connection.api.get(&target.path()).await?;
    let family = family::find(&connection.api, &catalog, &subject).await?;
    let mut evidence = Evidence { subject, owners: family.owners, below: family.below, events: Vec::new() };
    match events(&connection.api, &evidence).await {
        Ok(events) => evidence.events = events,
        Err(error) => note(&format!("Without events: {error}")),
    }
    if !family.unlisted.is_empty() {
        note(&format!(
            "You may not list {}: what is of these types is not seen.",
            family.unlisted.join(", ")
        ));
    }
    let now = world.wall();
    crate::client::print(&print::text(&story::story(&evidence, now), now))
}

/// The events about the object and everything below it.
async fn events(api: &Api, evidence: &Evidence) -> ClientResult<Vec<Value>> {
    let path = match evidence.subject["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/events"),
        None => "/api/v1/events".to_owned(),
    };
    let uids: BTreeSet<_> =
        evidence.all().filter_map(|object| object["metadata"]["uid"].as_str().map(str::to_owned)).collect();
    let mut events = follow::items(api, &path, &Selection::default()).await?;
    events.retain(|event| event["involvedObject"]["uid"].as_str().is_some_and(|uid| uids.contains(uid)));
    Ok(events)
}
