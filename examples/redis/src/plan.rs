//! What a cache consists of, and how far it is: pure functions.

use crate::v1alpha1::Redis;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Service},
};
use kube::ResourceExt;
use operator::condition::Report;
use serde_json::{Value, json};

pub(crate) const READY: &str = "Ready";
const PORT: u16 = 6379;
const CONFIG_FILE: &str = "redis.conf";
/// The config as an annotation of the pods, so that a change of it replaces them.
const MAX_MEMORY: &str = "cache.acme.io/max-memory";

/// The children of a cache. All have its name.
#[derive(Debug)]
pub(crate) struct Children {
    pub(crate) config: ConfigMap,
    pub(crate) service: Service,
    pub(crate) members: StatefulSet,
}

pub(crate) fn children(redis: &Redis) -> Children {
    Children { config: config(redis), service: service(redis), members: members(redis) }
}

fn config(redis: &Redis) -> ConfigMap {
    let max_memory = max_memory(redis);
    let text = format!("maxmemory {max_memory}\nmaxmemory-policy allkeys-lru\nsave \"\"\n");
    from_json(json!({"metadata": metadata(redis), "data": {(CONFIG_FILE): text}}))
}

/// A headless Service: clients find each member under a name of its own, `NAME-0.NAME`.
fn service(redis: &Redis) -> Service {
    from_json(json!({
        "metadata": metadata(redis),
        "spec": {
            "clusterIP": "None",
            "selector": labels(redis),
            "ports": [{"name": "redis", "port": PORT}],
        },
    }))
}

/// A StatefulSet and no Deployment: a member that is replaced keeps its name, and with it its keys.
fn members(redis: &Redis) -> StatefulSet {
    let (name, spec) = (redis.name_any(), &redis.spec);
    let container = json!({
        "name": "redis",
        "image": format!("redis:{}", spec.version()),
        "command": ["redis-server", format!("/etc/redis/{CONFIG_FILE}")],
        "ports": [{"name": "redis", "containerPort": PORT}],
        "resources": {"limits": {"memory": format!("{}Mi", spec.memory_mib())}},
        "readinessProbe": {
            "exec": {"command": ["redis-cli", "ping"]}, "initialDelaySeconds": 2, "periodSeconds": 5,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/redis"}],
    });
    from_json(json!({
        "metadata": metadata(redis),
        "spec": {
            "replicas": spec.size(),
            "serviceName": name,
            "selector": {"matchLabels": labels(redis)},
            "template": {
                "metadata": {"labels": labels(redis), "annotations": {(MAX_MEMORY): max_memory(redis)}},
                "spec": {
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": name}}],
                },
            },
        },
    }))
}

/// Redis itself needs memory beside its keys: a quarter of the container's.
fn max_memory(redis: &Redis) -> String {
    format!("{}mb", redis.spec.memory_mib() * 3 / 4)
}

fn metadata(redis: &Redis) -> Value {
    json!({"name": redis.name_any(), "labels": labels(redis)})
}

fn labels(redis: &Redis) -> Value {
    json!({"app.kubernetes.io/name": "redis", "app.kubernetes.io/instance": redis.name_any()})
}

fn from_json<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("it has the fields of its kind")
}

/// How far the members are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) ready: i32,
    pub(crate) size: i32,
    pub(crate) stage: Stage,
}

/// What is being done to the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Starting,
    Shrinking,
    Updating,
    AllReady,
}

impl Progress {
    pub(crate) fn of(redis: &Redis, members: Option<&StatefulSet>) -> Progress {
        let size = redis.spec.size();
        let status = members.and_then(|members| members.status.as_ref());
        let Some((members, status)) = members.zip(status) else {
            return Progress { ready: 0, size, stage: Stage::Starting };
        };
        let ready = status.ready_replicas.unwrap_or_default();
        // Of an earlier generation, the other numbers say nothing about this one.
        let is_current = status.observed_generation >= members.metadata.generation;
        let stage = match is_current {
            _ if ready < size => Stage::Starting,
            _ if status.replicas > size => Stage::Shrinking,
            true if status.updated_replicas.unwrap_or_default() >= size => Stage::AllReady,
            _ => Stage::Updating,
        };
        Progress { ready, size, stage }
    }

    pub(crate) fn is_ready(self) -> bool {
        self.stage == Stage::AllReady
    }

    pub(crate) fn report(self) -> Report {
        let Progress { ready, size, stage } = self;
        let reason = format!("{stage:?}");
        Report::new(READY, self.is_ready(), reason, format!("{ready} of {size} members are ready"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::RedisSpec;

    fn cache(size: i32) -> Redis {
        Redis::new("web", RedisSpec { size: Some(size), ..RedisSpec::default() })
    }

    #[test]
    fn the_stage_follows_from_the_numbers_of_the_members() {
        for (status, ready, stage) in [
            (json!(null), 0, Stage::Starting),
            (json!({"observedGeneration": 2, "replicas": 0}), 0, Stage::Starting),
            (json!({"observedGeneration": 2, "replicas": 2, "readyReplicas": 1}), 1, Stage::Starting),
            (json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3}), 3, Stage::Shrinking),
            (json!({"observedGeneration": 2, "replicas": 2, "readyReplicas": 2}), 2, Stage::Updating),
            (
                json!({"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}),
                2,
                Stage::AllReady,
            ),
            // All of the generation before.
            (
                json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}),
                2,
                Stage::Updating,
            ),
        ] {
            let mut members = members(&cache(2));
            members.metadata.generation = Some(2);
            members.status = serde_json::from_value(status.clone()).unwrap();
            let expected = Progress { ready, size: 2, stage };
            assert_eq!(Progress::of(&cache(2), Some(&members)), expected, "{status}");
        }
        assert_eq!(Progress::of(&cache(2), None).stage, Stage::Starting);
    }

    #[test]
    fn more_memory_is_in_the_config_and_replaces_the_members() {
        let (small, mut large) = (cache(1), cache(1));
        large.spec.memory_mib = Some(128);
        assert!(children(&large).config.data.unwrap()[CONFIG_FILE].contains("maxmemory 96mb\n"));
        let template = |redis: &Redis| members(redis).spec.unwrap().template.metadata;
        assert_ne!(template(&small), template(&large));
    }
}
