//! Controllers: what triggers a reconcile, what it reads, and how a manager stops.

use futures::{SinkExt, channel::mpsc};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use operator::{
    Context, Controller, Error, Failure, Key, Manager, Next, Running, all, owner, predicate, queue::Pace,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use testkit::{Cluster, Fault};

/// The keys that a reconciler was given, in their order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn note(&self, key: &Key) {
        self.0.lock().unwrap().push(key.to_string());
    }

    /// The keys since the last call, sorted and without duplicates.
    fn take(&self) -> Vec<String> {
        let mut calls = std::mem::take(&mut *self.0.lock().unwrap());
        calls.retain(|key| key.starts_with("default/") && key != "default/kube-root-ca.crt");
        calls.sort();
        calls.dedup();
        calls
    }
}

async fn note(context: Context<Calls>, key: Key) -> Result<Next, Failure> {
    context.state().note(&key);
    Ok(Next::Settled)
}

async fn start(cluster: &Cluster, controller: Controller) -> Running {
    let running = Manager::new("test", cluster.world(), cluster.client()).controller(controller).start();
    cluster.watch_idle("test", running.idle_probe());
    cluster.settle().await;
    running
}

async fn map(cluster: &Cluster, name: &str, value: &str) -> ConfigMap {
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"is": value}});
    cluster.apply(&manifest.to_string()).await;
    cluster.get("default", name).await
}

fn secret(name: &str, owned_by: Option<&ConfigMap>) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    if let Some(owner) = owned_by {
        owner::control(owner, &mut secret).unwrap();
    }
    secret
}

#[test]
fn a_controller_of_keys_reconciles_what_its_sources_name() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let handed = Arc::new(Mutex::new(None));
        let keep = Arc::clone(&handed);
        let controller = Controller::of_requests::<Key>("keys")
            .watches(all::<Secret>(), |_| vec![Key::parse("default/all-secrets")])
            .queue(move |queue| *keep.lock().unwrap() = Some(queue));
        let _running = start(&cluster, controller.reconcile(calls.clone(), note)).await;
        calls.take();
        cluster.create(&secret("one", None)).await;
        cluster.create(&secret("two", None)).await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/all-secrets"]);
        let queue: operator::queue::Queue = handed.lock().unwrap().take().expect("it was handed out");
        queue.add(&Key::parse("default/mine"), operator::queue::Reason::Asked);
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/mine"]);
    });
}

#[test]
fn a_child_triggers_its_owner_by_uid_and_not_by_name() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let controller = Controller::new("owner", all::<ConfigMap>()).owns(all::<Secret>());
        let _running = start(&cluster, controller.reconcile(calls.clone(), note)).await;
        let first = map(&cluster, "web", "first").await;
        cluster.settle().await;
        calls.take();

        cluster.create(&secret("child", Some(&first))).await;
        cluster.create(&secret("stranger", None)).await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/web"]);

        cluster.delete::<ConfigMap>("default", "web").await;
        map(&cluster, "web", "second").await;
        cluster.settle().await;
        calls.take();
        cluster.patch::<Secret>("default", "child", &json!({"stringData": {"a": "b"}})).await;
        cluster.settle().await;
        assert_eq!(calls.take(), [""; 0], "its owner is gone; a namesake is nobody to it");
    });
}

#[test]
fn mappings_streams_and_timers_trigger_reconciles() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let (mut news, stream) = mpsc::channel(4);
        let controller = Controller::new("woken", all::<ConfigMap>().when(predicate::labelled(&wanted())))
            .index("secret", |map: &ConfigMap| {
                map.data.iter().flatten().map(|(_, value)| value.clone()).collect()
            })
            .watches_through(all::<Secret>(), |maps, secret: &Secret| {
                let found = maps.indexed("secret", &secret.name_any()).unwrap_or_default();
                found.iter().map(|map| Key::of(map.as_ref())).collect()
            })
            .stream(stream)
            .every(Duration::from_secs(3600));
        let _running = start(&cluster, controller.reconcile(calls.clone(), note)).await;
        map(&cluster, "web", "password").await;
        map(&cluster, "other", "nothing").await;
        cluster.settle().await;
        assert_eq!(calls.take(), [""; 0], "neither has the label");

        cluster.create(&secret("password", None)).await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/web"]);

        news.send(Key::parse("default/told")).await.unwrap();
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/told"]);

        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(calls.take(), ["default/other", "default/web"]);
    });
}

#[test]
fn a_followed_kind_shows_each_object_before_and_after_a_change() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        cluster.create(&secret("early", None)).await;
        let controller = Controller::new("follower", all::<ConfigMap>().when(predicate::labelled(&wanted())))
            .follows(all::<Secret>(), |delta| {
                let seen = match (&delta.before, &delta.after) {
                    (None, Some(new)) => format!("default/new-{}", new.key().name()),
                    (Some(_), Some(changed)) => format!("default/changed-{}", changed.key().name()),
                    (Some(gone), None) => format!("default/gone-{}", gone.key().name()),
                    (None, None) => return Vec::new(),
                };
                vec![Key::parse(&seen)]
            });
        let _running = start(&cluster, controller.reconcile(calls.clone(), note)).await;
        assert_eq!(calls.take(), ["default/new-early"]);
        cluster.patch::<Secret>("default", "early", &json!({"stringData": {"a": "b"}})).await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/changed-early"]);
        cluster.delete::<Secret>("default", "early").await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/gone-early"]);
    });
}

#[test]
fn a_controller_retries_at_its_own_pace() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let longest_pause = Duration::from_secs(10);
        let pace = Pace { longest_pause, dead_after: 3, jitter: 0.0, ..Pace::default() };
        let controller = Controller::new("failing", all::<ConfigMap>().labelled("fails=yes")).pace(pace);
        let controller = controller.reconcile(calls.clone(), |context: Context<Calls>, key| async move {
            context.state().note(&key);
            Err(Failure::transient("it fails"))
        });
        let _running = Manager::new("test", cluster.world(), cluster.client()).controller(controller).start();
        cluster
            .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {fails: 'yes'}}}")
            .await;
        cluster.world().sleep(Duration::from_secs(100)).await;
        let calls = calls.0.lock().unwrap().len();
        assert!((12..=13).contains(&calls), "three within a second, then every ten seconds: {calls}");
    });
}

fn wanted() -> kube::core::Selector {
    kube::core::Selector::from_iter([("wanted".to_owned(), "yes".to_owned())])
}

#[test]
fn the_generation_predicate_ignores_status_writes() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let source = all::<k8s_openapi::api::apps::v1::Deployment>().when(predicate::generation());
        let controller = Controller::new("generations", source).reconcile(calls.clone(), note);
        let _running = start(&cluster, controller).await;
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]}}}});
        cluster.apply(&manifest.to_string()).await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/web"]);
        type Deployment = k8s_openapi::api::apps::v1::Deployment;
        cluster
            .patch_status::<Deployment>("default", "web", &json!({"status": {"observedGeneration": 1}}))
            .await;
        cluster.patch::<Deployment>("default", "web", &json!({"metadata": {"labels": {"a": "b"}}})).await;
        cluster.settle().await;
        assert_eq!(calls.take(), [""; 0]);
        cluster.patch::<Deployment>("default", "web", &json!({"spec": {"replicas": 3}})).await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/web"]);
        cluster.advance(Duration::from_secs(12 * 3600)).await;
        assert_eq!(calls.take(), ["default/web"], "a resync leaves nobody out");
    });
}

/// Writes, and then reads its write from the cache while the watch is held back.
async fn write_and_read(context: Context<Calls>, key: Key) -> Result<Next, Failure> {
    if key.name() != "web" {
        return Ok(Next::Settled);
    }
    let secrets: Api<Secret> = Api::namespaced(context.client(), "default");
    let child = Key::parse("default/child");
    let made = secrets.create(&PostParams::default(), &secret("child", None)).await?;
    assert_eq!(context.get::<Secret>(&child)?.and_then(|seen| seen.uid()), made.uid());
    let changed = json!({"metadata": {"labels": {"a": "b"}}});
    secrets.patch("child", &Default::default(), &kube::api::Patch::Merge(&changed)).await?;
    assert_eq!(context.get::<Secret>(&child)?.map(|seen| seen.labels().len()), Some(1));
    secrets.delete("child", &DeleteParams::default()).await?;
    assert!(context.get::<Secret>(&child)?.is_none());
    context.state().note(&key);
    Ok(Next::Settled)
}

#[test]
fn a_reconcile_reads_its_own_writes_while_the_watch_is_held_back() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let controller = Controller::new("reader", all::<ConfigMap>()).reads(all::<Secret>());
        let _running = start(&cluster, controller.reconcile(calls.clone(), write_and_read)).await;
        let held = cluster.hold_watches("secrets");
        map(&cluster, "web", "first").await;
        cluster.settle().await;
        assert_eq!(calls.take(), ["default/web"]);
        drop(held);
        cluster.settle().await;
        assert!(cluster.find::<Secret>("default", "child").await.is_none());
    });
}

async fn misbehave(context: Context<Calls>, key: Key) -> Result<Next, Failure> {
    if key.namespace() != Some("default") || key.name().starts_with("kube") {
        return Ok(Next::Settled);
    }
    context.state().note(&key);
    match key.name() {
        "panics" => unreachable!("what a day"),
        "hangs" => std::future::pending().await,
        "undeclared" => context.get::<Secret>(&Key::parse("default/a")).map(|_| Next::Settled),
        "terminal" => Err(Failure::terminal("BadSpec", "the spec makes no sense")),
        "fails" => Err(std::io::Error::other("no luck").into()),
        _ => Ok(Next::Settled),
    }
}

#[test]
fn one_failing_object_does_not_delay_the_others() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let controller =
            Controller::new("guarded", all::<ConfigMap>()).deadline(Duration::from_secs(10)).workers(2);
        let manager = Manager::new("test", cluster.world(), cluster.client());
        let running = manager.controller(controller.reconcile(calls.clone(), misbehave)).start();
        for name in ["fails", "hangs", "panics", "terminal", "undeclared", "well"] {
            map(&cluster, name, "bad").await;
        }
        cluster.world().sleep(Duration::from_secs(3600)).await;
        assert_eq!(calls.take().len(), 6, "all had their turn");
        let queue = running.queue("guarded").expect("the controller");
        let dead: Vec<String> = queue.dead_letters().iter().map(|letter| letter.key.to_string()).collect();
        assert_eq!(dead, ["default/fails", "default/hangs", "default/panics"]);
        let page = running.metrics().render();
        for line in [
            r#"controller_runtime_terminal_reconcile_errors_total{controller="guarded"} 2"#,
            r#"controller_runtime_max_concurrent_reconciles{controller="guarded"} 2"#,
        ] {
            assert!(page.contains(line), "{line} is not in\n{page}");
        }
        assert!(page.contains(r#"controller_runtime_reconcile_panics_total{controller="guarded"}"#));
        assert!(page.contains(r#"workqueue_adds_total{"#));

        let told: Vec<Event> = cluster.list("default").await;
        let told: Vec<_> = told.iter().filter(|event| event.reason.as_deref() == Some("BadSpec")).collect();
        assert_eq!(told.len(), 1, "the user is told once");
        assert_eq!(told[0].regarding.as_ref().and_then(|about| about.name.as_deref()), Some("terminal"));

        // A change gives the dead a new life.
        calls.take();
        map(&cluster, "fails", "better").await;
        cluster.world().sleep(Duration::from_secs(1)).await;
        assert_eq!(calls.take(), ["default/fails"]);
    });
}

async fn slow(context: Context<Calls>, key: Key) -> Result<Next, Failure> {
    if key.name() == "web" {
        context.world().sleep(Duration::from_secs(5)).await;
        context.state().note(&key);
    }
    Ok(Next::Settled)
}

#[test]
fn a_stopped_manager_waits_for_reconciles_up_to_the_grace_period() {
    testkit::run(|cluster| async move {
        for (grace, finished) in [(10, 1), (2, 0)] {
            let calls = Calls::default();
            let controller = Controller::new("slow", all::<ConfigMap>()).reconcile(calls.clone(), slow);
            let manager = Manager::new("test", cluster.world(), cluster.client());
            let running = manager.controller(controller).grace(Duration::from_secs(grace)).start();
            map(&cluster, "web", "slow").await;
            cluster.world().sleep(Duration::from_secs(1)).await;
            let begun = cluster.world().now();
            running.stop().await.expect("a clean end");
            assert!(cluster.world().now().since(begun) <= Duration::from_secs(grace));
            assert_eq!(calls.take().len(), finished, "with {grace} seconds");
        }
    });
}

#[test]
fn the_error_names_the_kind_that_may_not_be_listed() {
    testkit::run(|cluster| async move {
        cluster.inject(Fault::on("*", "secrets").always().error(403, "Forbidden"));
        let controller = Controller::new("blind", all::<ConfigMap>()).reads(all::<Secret>());
        let manager = Manager::new("test", cluster.world(), cluster.client());
        let ended = manager.controller(controller.reconcile(Calls::default(), note)).start().ended().await;
        let Err(Error::NotSynced { controller, kind, .. }) = ended else { panic!("{ended:?}") };
        assert_eq!((controller.as_str(), kind.as_str()), ("blind", "Secret"));
    });
}

#[test]
fn a_thousand_changes_of_one_object_need_few_reconciles() {
    testkit::run(|cluster| async move {
        let calls = Calls::default();
        let controller = Controller::new("counter", all::<ConfigMap>()).reconcile(calls.clone(), slow);
        let _running = start(&cluster, controller).await;
        for round in 0..100 {
            map(&cluster, "web", &round.to_string()).await;
        }
        cluster.world().sleep(Duration::from_secs(30)).await;
        let count = calls.0.lock().unwrap().len();
        assert!((1..=3).contains(&count), "{count} reconciles");
    });
}
