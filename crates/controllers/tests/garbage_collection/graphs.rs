//! Random graphs of owners: after the deletions, exactly what should be left is left.

use super::{COLLECTOR, delete, make, maps, object};
use crate::rig;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{ResourceExt, api::DeleteParams};
use std::collections::{BTreeMap, BTreeSet};
use testkit::Cluster;

const OBJECTS: u64 = 14;
const DELETIONS: u64 = 4;

/// The owners of each object, by name: predicts which objects are left after garbage collection.
#[derive(Debug, Default)]
struct Model(BTreeMap<String, BTreeSet<String>>);

impl Model {
    fn delete(&mut self, name: &str) {
        self.0.remove(name);
        loop {
            let alive: BTreeSet<String> = self.0.keys().cloned().collect();
            let is_garbage = |owners: &BTreeSet<String>| !owners.is_empty() && owners.is_disjoint(&alive);
            let before = self.0.len();
            self.0.retain(|_, owners| !is_garbage(owners));
            if self.0.len() == before {
                self.0.values_mut().for_each(|owners| owners.retain(|owner| alive.contains(owner)));
                return;
            }
        }
    }

    fn orphan(&mut self, name: &str) {
        self.0.remove(name);
        self.0.values_mut().for_each(|owners| owners.retain(|owner| owner != name));
    }
}

async fn names(cluster: &Cluster) -> Vec<String> {
    let secrets: Vec<Secret> = cluster.list("default").await;
    let mut names: Vec<String> = secrets.iter().map(ResourceExt::name_any).collect();
    names.extend(maps(cluster).await);
    names.sort();
    names
}

/// Creates objects that are owned by up to three of those before them.
async fn grow(cluster: &Cluster, model: &mut Model) -> BTreeMap<String, OwnerReference> {
    let world = cluster.world();
    let mut made: BTreeMap<String, OwnerReference> = BTreeMap::new();
    for number in 0..OBJECTS {
        let name = format!("o{number:02}");
        let count = if number == 0 { 0 } else { world.pick(0..4).min(number) };
        let owners: BTreeSet<String> = (0..count).map(|_| format!("o{:02}", world.pick(0..number))).collect();
        let references: Vec<OwnerReference> = owners
            .iter()
            .map(|owner| OwnerReference {
                block_owner_deletion: Some(world.chance(0.7)),
                ..made[owner].clone()
            })
            .collect();
        let kind = if world.chance(0.5) { "ConfigMap" } else { "Secret" };
        let references: Vec<&OwnerReference> = references.iter().collect();
        made.insert(name.clone(), make(cluster, object("v1", kind, &name), &references).await);
        model.0.insert(name, owners);
    }
    made
}

/// One of the objects that are left.
fn choose(cluster: &Cluster, model: &Model) -> Option<String> {
    let count = u64::try_from(model.0.len()).unwrap();
    (count > 0).then(|| {
        model.0.keys().nth(usize::try_from(cluster.world().pick(0..count)).unwrap()).unwrap().clone()
    })
}

#[test]
fn deletions_one_after_the_other_leave_what_they_should() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let mut model = Model::default();
        let made = grow(&cluster, &mut model).await;
        cluster.settle().await;
        for _ in 0..DELETIONS {
            let Some(name) = choose(&cluster, &model) else { break };
            let options = match cluster.world().pick(0..3) {
                0 => DeleteParams::background(),
                1 => DeleteParams::foreground(),
                _ => DeleteParams::orphan(),
            };
            if options == DeleteParams::orphan() {
                model.orphan(&name)
            } else {
                model.delete(&name)
            }
            delete(&cluster, &made[&name], &options).await;
            cluster.settle().await;
            let expected: Vec<String> = model.0.keys().cloned().collect();
            assert_eq!(names(&cluster).await, expected, "after {options:?} of {name}");
        }
    });
}

#[test]
fn deletions_at_the_same_time_leave_what_they_should() {
    testkit::run(|cluster| async move {
        let running = rig::start(&cluster, &[COLLECTOR]);
        let mut model = Model::default();
        let made = grow(&cluster, &mut model).await;
        let mut chosen = BTreeSet::new();
        for _ in 0..DELETIONS {
            chosen.extend(choose(&cluster, &model));
        }
        // A collector that has not heard of everything, or that starts anew, comes to the same result.
        let _running = if cluster.world().chance(0.5) {
            drop(running);
            rig::start(&cluster, &[COLLECTOR])
        } else {
            running
        };
        for name in &chosen {
            let is_foreground = cluster.world().chance(0.5);
            let options = if is_foreground { DeleteParams::foreground() } else { DeleteParams::background() };
            // An owner of it may be gone already.
            let _ = super::api(&cluster, &made[name]).delete(name, &options).await;
            model.delete(name);
        }
        cluster.settle().await;
        let expected: Vec<String> = model.0.keys().cloned().collect();
        assert_eq!(names(&cluster).await, expected, "after {chosen:?}");
    });
}
