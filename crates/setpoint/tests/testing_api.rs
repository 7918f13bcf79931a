//! `setpoint up --testing`: the testing API over the wire, with the crate `kube` as the client.

mod commands;
mod faults;
mod forks;
mod http2;
mod restores;
mod time;
mod trace;
mod web_sockets;

use crate::harness::Up;
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, Namespace},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

const CRON_JOB: &str = r#"{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "minutely"}, "spec": {
    "schedule": "* * * * *", "successfulJobsHistoryLimit": 100, "jobTemplate": {"spec": {"template": {"spec": {
    "restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}}}}}}"#;

/// A cluster with the testing API, stopped when it is dropped.
struct Tested {
    up: Up,
    scratch: tempfile::TempDir,
    client: Client,
}

async fn client_of(kubeconfig: Kubeconfig) -> Client {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn with_cluster(arguments: &[&str], act: impl AsyncFnOnce(&Tested)) {
    let scratch = tempfile::tempdir().unwrap();
    let arguments: Vec<&str> = ["--testing"].iter().chain(arguments).copied().collect();
    let up = Up::start(&arguments, scratch.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client_of(Kubeconfig::read_from(&up.kubeconfig).unwrap()).await;
        act(&Tested { up, scratch, client }).await;
    });
}

fn kind(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("testing.setpoint.dev", "v1", kind))
}

fn objects(client: &Client, of: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind(of))
}

/// Creates an object of the testing API, and returns its status.
async fn try_create(client: &Client, of: &str, name: &str, spec: Value) -> kube::Result<Value> {
    let mut object = DynamicObject::new(name, &kind(of));
    object.data = json!({"spec": spec});
    if name.is_empty() {
        object.metadata.name = None;
        object.metadata.generate_name = Some(format!("{}-", of.to_lowercase()));
    }
    let created = objects(client, of).create(&PostParams::default(), &object).await?;
    Ok(created.data["status"].clone())
}

async fn create(client: &Client, of: &str, name: &str, spec: Value) -> Value {
    try_create(client, of, name, spec).await.unwrap()
}

async fn fork(client: &Client, name: &str) -> Client {
    let status = create(client, "Fork", name, json!({})).await;
    client_of(Kubeconfig::from_yaml(status["kubeconfig"].as_str().unwrap()).unwrap()).await
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).unwrap()
}

async fn put_map(client: &Client, name: &str, value: &str) -> ConfigMap {
    let patch = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value},
    }));
    maps(client).patch(name, &PatchParams::apply("test").force(), &patch).await.unwrap()
}

/// Sends a request as it is.
async fn raw(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> http::Response<Body> {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request.body(Body::from(body.as_bytes().to_vec())).unwrap()).await.unwrap()
}

fn code(error: &kube::Error) -> u16 {
    let kube::Error::Api(status) = error else { return 0 };
    status.code
}

#[test]
fn discovery_lists_the_testing_api_beside_all_others() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let groups = tested.client.list_api_groups().await.unwrap().groups;
        assert!(groups.iter().any(|group| group.name == "testing.setpoint.dev"));
        assert!(groups.iter().any(|group| group.name == "apps"));
        let resources = tested.client.list_api_group_resources("testing.setpoint.dev/v1").await.unwrap();
        assert!(
            resources.resources.iter().any(|it| it.name == "forks" && it.kind == "Fork" && !it.namespaced)
        );
        let request = http::Request::get("/openapi/v3").body(Vec::new()).unwrap();
        let index: Value = tested.client.request(request).await.unwrap();
        assert!(index["paths"]["apis/testing.setpoint.dev/v1"].is_object(), "{index}");
        let request =
            http::Request::get("/openapi/v3/apis/testing.setpoint.dev/v1").body(Vec::new()).unwrap();
        let document: Value = tested.client.request(request).await.unwrap();
        assert!(document["components"]["schemas"].to_string().contains("endWatch"));
    });
}

#[test]
fn forks_go_their_own_way_until_they_are_deleted() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        put_map(&tested.client, "web", "original").await;
        let (one, two) = (fork(&tested.client, "one").await, fork(&tested.client, "two").await);
        put_map(&one, "web", "changed").await;
        maps(&two).delete("web", &Default::default()).await.unwrap();
        let value = async |client: &Client| {
            maps(client).get_opt("web").await.unwrap().map(|map| map.data.unwrap()["k"].clone())
        };
        assert_eq!(value(&tested.client).await.as_deref(), Some("original"));
        assert_eq!(value(&one).await.as_deref(), Some("changed"));
        assert_eq!(value(&two).await, None);
        // A fork has a testing API of its own, and control loops.
        let child = fork(&one, "child").await;
        assert_eq!(value(&child).await.as_deref(), Some("changed"));
        let space: Namespace = serde_json::from_value(json!({"metadata": {"name": "space"}})).unwrap();
        Api::<Namespace>::all(one.clone()).create(&PostParams::default(), &space).await.unwrap();
        Api::<Namespace>::all(one.clone()).delete("space", &Default::default()).await.unwrap();
        // Kubernetes: the namespace controller waits five seconds before it begins.
        create(&one, "Advance", "", json!({"by": "10s"})).await;
        assert!(
            Api::<Namespace>::all(one.clone()).get_opt("space").await.unwrap().is_none(),
            "it was removed"
        );
        objects(&tested.client, "Fork").delete("two", &Default::default()).await.unwrap();
        assert_eq!(
            objects(&tested.client, "Fork").list(&ListParams::default()).await.unwrap().items.len(),
            1
        );
    });
}

#[test]
fn a_restore_reaches_watches_as_ordinary_changes_with_rising_versions() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = &tested.client;
        let kept = put_map(client, "kept", "original").await;
        let gone = put_map(client, "gone", "original").await;
        let snapshot = create(client, "Snapshot", "before", json!({})).await;
        put_map(client, "kept", "changed").await;
        maps(client).delete("gone", &Default::default()).await.unwrap();
        let last = put_map(client, "new", "1").await;
        let version = last.resource_version().unwrap();
        let watched = maps(client);
        let events = watched.watch(&WatchParams::default().timeout(20), &version).await.unwrap().take(3);
        pin_mut!(events);
        let restored = create(client, "Restore", "", json!({"snapshot": "before"})).await;
        assert!(restored["revision"].as_u64() > snapshot["revision"].as_u64());
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            let (what, object) = match event.unwrap() {
                WatchEvent::Added(object) => ("added", object),
                WatchEvent::Modified(object) => ("modified", object),
                WatchEvent::Deleted(object) => ("deleted", object),
                other => panic!("{other:?}"),
            };
            let number: u64 = object.resource_version().unwrap().parse().unwrap();
            assert!(number > version.parse().unwrap());
            seen.push((what, object.name_any(), object.uid().unwrap()));
        }
        seen.sort();
        let expected = [
            ("added", "gone".to_owned(), gone.uid().unwrap()),
            ("deleted", "new".to_owned(), last.uid().unwrap()),
            ("modified", "kept".to_owned(), kept.uid().unwrap()),
        ];
        assert_eq!(seen, expected);
        create(client, "Reset", "", json!({})).await;
        assert!(maps(client).get_opt("kept").await.unwrap().is_none(), "back at the start");
        let missing = try_create(client, "Restore", "", json!({"snapshot": "none"})).await.unwrap_err();
        assert_eq!(code(&missing), 404);
    });
}

#[test]
fn faults_hit_the_requests_that_match_and_count_them() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = &tested.client;
        let on = |verb: &str| json!({"verb": verb, "resource": "configmaps", "user": "kubernetes-admin"});
        let refuse = json!({"match": on("create"), "skip": 1, "times": 1, "refuse": {"code": 409, "reason": "Conflict"}});
        create(client, "Fault", "refuse", refuse).await;
        let lose = json!({"match": on("delete"), "times": 1, "lose": "Answer"});
        create(client, "Fault", "lose", lose).await;
        let results: Vec<Option<u16>> = {
            let mut results = Vec::new();
            for name in ["a", "b", "c"] {
                let created = maps(client).create(&PostParams::default(), &map(name, "1")).await;
                results.push(created.err().as_ref().map(code));
            }
            results
        };
        assert_eq!(results, [None, Some(409), None]);
        maps(client).delete("a", &Default::default()).await.unwrap_err();
        assert!(maps(client).get_opt("a").await.unwrap().is_none(), "it was carried out");
        let faults = objects(client, "Fault").list(&ListParams::default()).await.unwrap().items;
        let hits: Vec<u64> =
            faults.iter().map(|fault| fault.data["status"]["hits"].as_u64().unwrap()).collect();
        assert_eq!(hits, [1, 1]);
        let trace = create(client, "Trace", "", json!({"verb": "delete", "resource": "configmaps"})).await;
        assert_eq!(trace["requests"][0]["fault"], "answer lost", "{trace}");
        assert_eq!(trace["requests"][0]["user"], "kubernetes-admin");
        // Two effects, or none, are refused.
        for spec in
            [json!({"delay": "1s", "lose": "Answer"}), json!({"match": on("get")}), json!({"delay": "soon"})]
        {
            assert_eq!(code(&try_create(client, "Fault", "bad", spec).await.unwrap_err()), 422);
        }
        let cut = json!({"match": on("watch"), "times": 1, "endWatch": {"after": 0, "how": "Expire"}});
        create(client, "Fault", "cut", cut).await;
        let watched = maps(client);
        let events = watched.watch(&WatchParams::default().timeout(20), "0").await.unwrap();
        pin_mut!(events);
        let Some(Ok(WatchEvent::Error(status))) = events.next().await else { panic!("no error") };
        assert_eq!(status.code, 410);
    });
}

#[test]
fn only_administrators_may_use_the_testing_api() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let kubeconfig = Kubeconfig::read_from(&tested.up.kubeconfig).unwrap();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.auth_info.impersonate = Some("system:serviceaccount:default:default".to_owned());
        let other = Client::try_from(config).unwrap();
        let refused = try_create(&other, "Fork", "stolen", json!({})).await.unwrap_err();
        assert_eq!(code(&refused), 403, "{refused}");
        assert_eq!(code(&objects(&other, "Fork").list(&ListParams::default()).await.unwrap_err()), 403);
    });
}

#[test]
fn an_hour_of_cron_jobs_passes_in_an_advance() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = fork(&tested.client, "cron").await;
        let patch = Patch::Merge(json!({"spec": {"frozen": true}}));
        objects(&client, "Clock").patch("cluster", &PatchParams::default(), &patch).await.unwrap();
        let cron: CronJob = serde_json::from_str(CRON_JOB).unwrap();
        Api::<CronJob>::namespaced(client.clone(), "default")
            .create(&PostParams::default(), &cron)
            .await
            .unwrap();
        let clock =
            async || objects(&client, "Clock").get("cluster").await.unwrap().data["status"]["now"].clone();
        let before = clock().await;
        create(&client, "Settle", "", json!({})).await;
        let advanced = create(&client, "Advance", "", json!({"by": "1h"})).await;
        let jobs = Api::<Job>::namespaced(client.clone(), "default")
            .list(&ListParams::default())
            .await
            .unwrap()
            .items;
        let done = jobs
            .iter()
            .filter(|job| job.status.as_ref().and_then(|status| status.succeeded) == Some(1))
            .count();
        assert!((59..=61).contains(&jobs.len()), "{} jobs; {advanced}", jobs.len());
        assert!(done >= 59, "{done} of {} are done", jobs.len());
        let passed = {
            let time = |value: &Value| value.as_str().unwrap().parse::<world::Timestamp>().unwrap();
            time(&clock().await).duration_since(time(&before)).as_secs()
        };
        assert!((3600..3700).contains(&passed), "{passed}");
        let past =
            try_create(&client, "Advance", "", json!({"to": "2020-01-01T00:00:00Z"})).await.unwrap_err();
        assert_eq!(code(&past), 422, "{past}");
    });
}

#[test]
fn a_settle_waits_for_clients_outside_and_says_who_is_busy() {
    with_cluster(&["--ephemeral"], async |tested: &Tested| {
        let client = &tested.client;
        let slow = json!({"match": {"verb": "create", "resource": "configmaps"}, "delay": "20s"});
        create(client, "Fault", "slow", slow).await;
        let (maps, late) = (maps(client), map("late", "1"));
        let params = PostParams::default();
        let creating = maps.create(&params, &late);
        let settling = async {
            let quick = json!({"timeout": "2s"});
            let error = try_create(client, "Settle", "", quick).await.unwrap_err().to_string();
            assert!(
                error.contains("create /api/v1/namespaces/default/configmaps")
                    && error.contains("kubernetes-admin"),
                "{error}"
            );
            create(client, "Advance", "", json!({"by": "21s"})).await;
        };
        let (created, ()) = futures::future::join(creating, settling).await;
        created.unwrap();
    });
}

/// Prints what forks cost: `cargo test -p setpoint --test up many_forks -- --nocapture`.
#[test]
fn many_forks_of_a_large_cluster_are_cheap_until_they_are_used() {
    const OBJECTS: usize = 2_000;
    const FORKS: usize = 200;
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        let creates = (0..OBJECTS).map(|number| {
            let (maps, map) = (maps(client), map(&format!("map-{number}"), &"x".repeat(500)));
            async move { maps.create(&PostParams::default(), &map).await.unwrap() }
        });
        futures::stream::iter(creates).buffer_unordered(16).for_each(|_| async {}).await;
        let memory = || resident_kilobytes(tested.up.process.id());
        let (before, real) = (memory(), world::World::real());
        let begun = real.now();
        for number in 0..FORKS {
            create(client, "Fork", &format!("fork-{number}"), json!({})).await;
        }
        let (each, kilobytes) = (real.now().since(begun) / FORKS as u32, memory().saturating_sub(before));
        let begun = real.now();
        let last = fork(client, "used").await;
        maps(&last).get("map-7").await.unwrap();
        let first_answer = real.now().since(begun);
        println!(
            "{FORKS} forks of {OBJECTS} objects: {each:?} and {} KB each; a fork's first answer after {first_answer:?}",
            kilobytes / FORKS
        );
        assert!(kilobytes / FORKS < 100, "{kilobytes} KB for {FORKS} forks");
    });
}

/// The memory of a process.
fn resident_kilobytes(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
