//! What a database needs, and how far it is: pure functions.

use crate::v1::Database;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;
use operator::condition::Report;
use serde_json::json;

pub(crate) const READY: &str = "Ready";

/// The StatefulSet of a database.
pub(crate) fn stateful_set(database: &Database) -> StatefulSet {
    let name = database.name_any();
    let spec = &database.spec;
    let labels = json!({"app.kubernetes.io/name": "database", "app.kubernetes.io/instance": name});
    let storage = format!("{}Gi", spec.storage());
    let set = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": spec.replicas(),
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "engine",
                    "image": spec.engine.image(),
                    "volumeMounts": [{"name": "data", "mountPath": "/var/lib/data"}],
                }]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": storage}},
                },
            }],
        },
    });
    serde_json::from_value(set).expect("it has the fields of a StatefulSet")
}

/// How many replicas there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) ready: i32,
    pub(crate) wanted: i32,
}

impl Progress {
    pub(crate) fn of(database: &Database, running: Option<&StatefulSet>) -> Progress {
        let ready = running.and_then(|set| set.status.as_ref()?.ready_replicas).unwrap_or_default();
        Progress { ready, wanted: database.spec.replicas() }
    }

    pub(crate) fn is_ready(self) -> bool {
        self.ready >= self.wanted
    }

    pub(crate) fn report(self) -> Report {
        let Progress { ready, wanted } = self;
        let reason = if self.is_ready() { "AllUp" } else { "Starting" };
        Report::new(READY, self.is_ready(), reason, format!("{ready} of {wanted} replicas are ready"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{DatabaseSpec, Engine};
    use k8s_openapi::api::apps::v1::StatefulSetStatus;

    #[test]
    fn a_database_is_ready_with_all_its_replicas() {
        let spec = DatabaseSpec { engine: Engine::Postgres, storage_gib: None, replicas: Some(2) };
        let database = Database::new("orders", spec);
        for (ready, is_ready) in [(None, false), (Some(1), false), (Some(2), true)] {
            let status = StatefulSetStatus { ready_replicas: ready, ..StatefulSetStatus::default() };
            let set = StatefulSet { status: Some(status), ..stateful_set(&database) };
            let progress = Progress::of(&database, Some(&set));
            assert_eq!(progress, Progress { ready: ready.unwrap_or(0), wanted: 2 });
            assert_eq!(progress.is_ready(), is_ready);
        }
        assert!(!Progress::of(&database, None).is_ready());
    }
}
