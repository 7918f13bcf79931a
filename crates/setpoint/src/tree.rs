//! `setpoint tree`: an object with its owners and with everything that it owns.

mod branch;

use crate::client::{
    age,
    catalog::Catalog,
    connect::ConnectOptions,
    failure::ClientResult,
    family::{self, Family},
    note, print,
    state::state,
    table::Layout,
    target,
};
use branch::{Branch, TreeLines};
use serde_json::Value;
use world::{Timestamp, World};

/// Show an object with its owners and with everything that it owns.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint tree deploy/web          its replica sets and pods, and how each is
  setpoint tree pod/web-5d9c-x2x    up to the deployment that wants it
  setpoint tree deploy/web --ascii  without box characters")]
pub(crate) struct TreeOptions {
    /// TYPE/NAME
    object: String,
    /// Draw with ASCII characters
    #[arg(long)]
    ascii: bool,
    #[command(flatten)]
    connect: ConnectOptions,
}

pub(crate) async fn run(world: &World, options: &TreeOptions) -> ClientResult<()> {
    let connection = options.connect.connect().await?;
    let catalog = Catalog::load(&connection.api).await?;
    let target = target::pair(&catalog, &connection.namespace, &options.object)?;
    let subject = connection.api.get(&target.path()).await?;
    let family = family::find(&connection.api, &catalog, &subject).await?;
    let lines = if options.ascii { TreeLines::ASCII } else { TreeLines::BOXES };
    print(&render(&subject, &family, lines, world.wall()))?;
    if family.is_cut {
        note("There is more below: only the first objects are shown.");
    }
    if !family.unlisted.is_empty() {
        note(&format!(
            "You may not list {}: what is of these types is not shown.",
            family.unlisted.join(", ")
        ));
    }
    Ok(())
}

fn render(subject: &Value, family: &Family, lines: TreeLines, now: Timestamp) -> String {
    let mut tree = Branch { object: subject, children: branch::below(subject, &family.below) };
    for owner in &family.owners {
        tree = Branch { object: owner, children: vec![tree] };
    }
    let mut rows = vec![["NAME", "STATE", "AGE"].map(str::to_owned).to_vec()];
    for (prefix, object) in tree.lines(lines) {
        let mark = if object["metadata"]["uid"] == subject["metadata"]["uid"] && !family.owners.is_empty() {
            format!(" {}", lines.mark)
        } else {
            String::new()
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = format!("{prefix}{}/{}{mark}", text(&object["kind"]), text(&object["metadata"]["name"]));
        let age = age::since(object["metadata"]["creationTimestamp"].as_str(), now);
        rows.push(vec![name, state(object), age]);
    }
    Layout::default().lines(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, name: &str, owner: Option<&str>, status: Value) -> Value {
        let owners: Vec<_> = owner.iter().map(|uid| json!({"uid": uid, "controller": true})).collect();
        json!({"kind": kind, "status": status, "metadata": {
            "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners}})
    }

    #[test]
    fn owners_stand_above_and_children_below() {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let web = object("Deployment", "web", None, json!({"readyReplicas": 1}));
        let set = object("ReplicaSet", "web-1", Some("web"), json!({}));
        let running = json!({"phase": "Running", "containerStatuses": [{"ready": true}]});
        let a = object("Pod", "web-1-a", Some("web-1"), running);
        let b = object("Pod", "web-1-b", Some("web-1"), json!({"phase": "Pending"}));
        let map = object("ConfigMap", "web-settings", Some("web"), Value::Null);
        let family = Family { below: vec![set.clone(), a.clone(), b, map], ..Family::default() };
        assert_eq!(
            render(&web, &family, TreeLines::BOXES, now),
            "\
NAME                         STATE         AGE
Deployment/web               1/1 ready     60s
├── ReplicaSet/web-1         0/1 ready     60s
│   ├── Pod/web-1-a          Running 1/1   60s
│   └── Pod/web-1-b          Pending       60s
└── ConfigMap/web-settings                 60s
"
        );
        let family = Family { owners: vec![set, web], ..Family::default() };
        assert_eq!(
            render(&a, &family, TreeLines::ASCII, now),
            "\
NAME                      STATE         AGE
Deployment/web            1/1 ready     60s
`-- ReplicaSet/web-1      0/1 ready     60s
    `-- Pod/web-1-a <--   Running 1/1   60s
"
        );
    }
}
