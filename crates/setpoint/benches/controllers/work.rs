//! The pieces of work: a large Deployment, its rollout, a full namespace that is deleted, many Jobs.

use futures::{StreamExt, future::try_join_all, stream};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, Namespace},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    core::ObjectMeta,
    runtime::wait::{await_condition, conditions},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt, fmt::Debug};
use world::World;

const WRITERS: usize = 64;
const PODS_OF_JOB: usize = 10;

/// A piece of work, with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// From the apply until all replicas are ready.
    Deployment(usize),
    /// Of the deployment before, to another image.
    Rollout(usize),
    /// From the delete until it is gone.
    Namespace(usize),
    /// From the first create until all are complete.
    Jobs(usize),
}

impl fmt::Display for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Deployment(size) => write!(out, "a Deployment of {size} replicas"),
            Work::Rollout(size) => write!(out, "a rollout of {size} replicas"),
            Work::Namespace(size) => write!(out, "deletion of a namespace with {size} objects"),
            Work::Jobs(size) => write!(out, "{size} Jobs of {PODS_OF_JOB} pods"),
        }
    }
}

impl Work {
    pub(crate) fn all(percent: usize) -> [Work; 4] {
        let size = |full: usize| (full * percent / 100).max(1);
        [
            Work::Deployment(size(1_000)),
            Work::Rollout(size(1_000)),
            Work::Namespace(size(10_000)),
            Work::Jobs(size(500)),
        ]
    }

    fn namespace(self) -> &'static str {
        match self {
            Work::Deployment(_) | Work::Rollout(_) => "rollouts",
            Work::Namespace(_) => "full",
            Work::Jobs(_) => "jobs",
        }
    }

    /// What must be there before the work begins.
    pub(crate) async fn prepare(self, world: &World, client: &Client, namespaces: &Api<Namespace>) {
        if !matches!(self, Work::Rollout(_)) {
            namespaces.create(&PostParams::default(), &named(self.namespace())).await.unwrap();
        }
        if let Work::Namespace(size) = self {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), self.namespace());
            create_all(&maps, (0..size).map(|number| named(&format!("object-{number}"))).collect()).await;
        }
        world.sleep(std::time::Duration::from_secs(1)).await;
    }

    pub(crate) async fn perform(self, client: &Client) {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), self.namespace());
        match self {
            Work::Deployment(size) => {
                let apply = PatchParams::apply("bench").force();
                deployments.patch("web", &apply, &Patch::Apply(&deployment(size, "nginx:1"))).await.unwrap();
                await_condition(deployments, "web", is_rolled_out(size)).await.unwrap();
            }
            Work::Rollout(size) => {
                let apply = PatchParams::apply("bench").force();
                deployments.patch("web", &apply, &Patch::Apply(&deployment(size, "nginx:2"))).await.unwrap();
                await_condition(deployments, "web", is_rolled_out(size)).await.unwrap();
            }
            Work::Namespace(_) => {
                delete_and_wait(&Api::<Namespace>::all(client.clone()), self.namespace()).await;
            }
            Work::Jobs(size) => {
                let jobs: Api<Job> = Api::namespaced(client.clone(), self.namespace());
                let objects = (0..size).map(|number| job(&format!("job-{number}"))).collect();
                let ((), ()) = futures::join!(create_all(&jobs, objects), all_complete(&jobs, size));
            }
        }
    }

    /// Removes what the next piece of work does not need, so that its cost is its own.
    pub(crate) async fn clean(self, client: &Client) {
        if matches!(self, Work::Rollout(_) | Work::Jobs(_)) {
            delete_and_wait(&Api::<Namespace>::all(client.clone()), self.namespace()).await;
        }
    }
}

fn named<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str) -> K {
    serde_json::from_value(
        json!({"metadata": ObjectMeta { name: Some(name.to_owned()), ..Default::default() }}),
    )
    .unwrap()
}

fn deployment(size: usize, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": size, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": image}]}}}})
}

fn is_rolled_out(size: usize) -> impl Fn(Option<&Deployment>) -> bool {
    move |deployment| {
        let Some((generation, status)) =
            deployment.and_then(|it| Some((it.metadata.generation, it.status.as_ref()?)))
        else {
            return false;
        };
        let wanted = Some(size as i32);
        status.observed_generation == generation
            && [status.replicas, status.updated_replicas, status.ready_replicas]
                .iter()
                .all(|it| *it == wanted)
    }
}

/// Its pods end with 0 as soon as they have started.
fn job(name: &str) -> Job {
    let spec = json!({"completions": PODS_OF_JOB, "parallelism": PODS_OF_JOB, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

async fn create_all<K>(api: &Api<K>, objects: Vec<K>)
where
    K: Resource + Clone + Debug + serde::Serialize + DeserializeOwned,
{
    let create = |object: K| async move { api.create(&PostParams::default(), &object).await.map(drop) };
    let created: Vec<_> = stream::iter(objects).map(create).buffer_unordered(WRITERS).collect().await;
    try_join_all(created.into_iter().map(std::future::ready)).await.unwrap();
}

/// Follows the Jobs until all of them are complete.
async fn all_complete(jobs: &Api<Job>, size: usize) {
    let mut complete = BTreeSet::new();
    while complete.len() < size {
        let events = jobs.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
        let mut events = std::pin::pin!(events);
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Added(job) | WatchEvent::Modified(job) = event
                && job.status.is_some_and(|status| status.completion_time.is_some())
            {
                complete.extend(job.metadata.name);
            }
            if complete.len() == size {
                return;
            }
        }
    }
}

pub(crate) async fn delete_and_wait<K>(api: &Api<K>, name: &str)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let deleted = api.delete(name, &DeleteParams::background()).await.unwrap();
    if let Some(object) = deleted.left() {
        let uid = object.meta().uid.clone().unwrap();
        await_condition(api.clone(), name, conditions::is_deleted(&uid)).await.unwrap();
    }
}
