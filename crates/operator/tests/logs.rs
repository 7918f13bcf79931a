//! The lines of a manager's log, at the level info: one for each thing that happens to the process.

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, all,
    webhook::{Address, Certificates, Hook, Request, Site, Webhooks},
};
use serde_json::json;
use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
    time::Duration,
};
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::with_default,
};

/// Collects the lines of the operator crate: the fields of the spans around them, message and fields.
#[derive(Clone, Default)]
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    /// The fields of each span; its id is its place, counted from one.
    spans: Arc<Mutex<Vec<String>>>,
    /// The spans that are entered, on the one thread of a simulation.
    entered: Arc<Mutex<Vec<span::Id>>>,
}

impl Lines {
    fn with(&self, text: &str) -> Vec<String> {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("operator") && *metadata.level() <= Level::INFO
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = Line(String::new());
        attributes.record(&mut fields);
        let mut spans = self.spans.lock().unwrap();
        spans.push(fields.0);
        span::Id::from_u64(spans.len().try_into().unwrap())
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let (spans, entered) = (self.spans.lock().unwrap(), self.entered.lock().unwrap());
        let fields = |id: &span::Id| spans[usize::try_from(id.into_u64()).unwrap() - 1].as_str();
        let mut line = Line(entered.iter().map(fields).collect());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, id: &span::Id) {
        self.entered.lock().unwrap().push(id.clone());
    }

    fn exit(&self, id: &span::Id) {
        self.entered.lock().unwrap().retain(|entered| entered != id);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

async fn reconcile(_: Context<()>, _: Key) -> Result<Next, Failure> {
    Ok(Next::Settled)
}

#[test]
fn a_manager_logs_how_it_starts_syncs_leads_and_reconciles() {
    let lines = Lines::default();
    // With a single subscriber, `tracing` asks that of the thread that comes to a line first: another test's.
    let _second = Dispatch::new(lines.clone());
    with_default(lines.clone(), || {
        testkit::simulate(1, |cluster| async move {
            for n in 0..20 {
                let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{n}}}}}");
                cluster.apply(&map).await;
            }
            let controller = Controller::new("copier", all::<ConfigMap>()).reconcile((), reconcile);
            let manager = Manager::new("copy", cluster.world(), cluster.client());
            let running = manager.elect_in("default").controller(controller).start();
            cluster.advance(Duration::from_secs(5)).await;
            cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: last}}").await;
            cluster.advance(Duration::from_secs(5)).await;
            running.stop().await.unwrap();
        });
    });
    let objects = lines.with("message=synced")[0].clone();
    assert!(
        objects.contains("controller=\"copier\" kind=\"ConfigMap\" objects=") && objects.contains("took=")
    );
    for (text, count) in [
        ("message=started manager=\"copy\" controllers=\"copier\"", 1),
        ("message=leading manager=\"copy\" identity=", 1),
        // Ten of the first list, and the one that was created later.
        ("message=reconciled result=Success took=", 11),
    ] {
        assert_eq!(lines.with(text).len(), count, "{text}");
    }
    let last = lines.with("message=reconciled").last().unwrap().clone();
    assert!(!last.contains("left_out=0"), "{last}");
    let expected =
        "controller=\"copier\" object=\"default/last\" cause=\"changed\" failures=0 message=reconciled";
    assert!(last.starts_with(expected), "{last}");
}

#[test]
fn a_failed_reconcile_is_one_line_that_tells_why() {
    let lines = Lines::default();
    let _second = Dispatch::new(lines.clone());
    with_default(lines.clone(), || {
        testkit::simulate(1, |cluster| async move {
            for name in ["transient", "terminal", "blocked", "panics"] {
                cluster
                    .apply(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}"))
                    .await;
            }
            let reconcile = |_: Context<()>, key: Key| async move {
                match key.name() {
                    "transient" => Err(Failure::from(std::io::Error::other("the disk is full"))),
                    "terminal" => Err(Failure::terminal("NoSize", "the size is missing")),
                    "blocked" => Err(Failure::blocked("Taken", "the name is taken")),
                    "panics" => panic!("out of range"),
                    _ => Ok(Next::Settled),
                }
            };
            let controller = Controller::new("failing", all::<ConfigMap>()).reconcile((), reconcile);
            let _running =
                Manager::new("failing", cluster.world(), cluster.client()).controller(controller).start();
            cluster.world().sleep(Duration::from_millis(1)).await;
        });
    });
    for (name, told) in [
        ("transient", "message=failed result=Error took=0ns error=\"the disk is full\""),
        ("terminal", "message=failed, and is not retried"),
        ("blocked", "message=another object is in the way"),
        ("panics", "message=panicked"),
    ] {
        let of_object = lines.with(&format!("object=\"default/{name}\""));
        assert_eq!(of_object.len(), 1, "{of_object:#?}");
        assert!(of_object[0].contains(told), "{}", of_object[0]);
    }
}

#[test]
fn a_manager_logs_that_its_webhooks_are_registered_and_that_it_has_lost_its_lease() {
    let lines = Lines::default();
    let _second = Dispatch::new(lines.clone());
    with_default(lines.clone(), || {
        testkit::simulate(1, |cluster| async move {
            let webhooks = Webhooks::new("sizes").hook(Hook::defaulter(|_: &mut ConfigMap, _: &Request| {}));
            let certificates = Certificates::Shared { namespace: "default".into(), secret: "sizes".into() };
            let site = Site { address: Address::Url("https://hooks.example.com".into()), certificates };
            let manager = Manager::new("copy", cluster.world(), cluster.client()).elect_in("default");
            let running = cluster.run(manager.webhooks(webhooks, ([127, 0, 0, 1], 0), site));
            cluster.advance(Duration::from_secs(5)).await;
            let other = json!({"spec": {"holderIdentity": "another"}});
            cluster.patch::<Lease>("default", "copy", &other).await;
            running.ended().await.unwrap_err();
        });
    });
    for text in [
        "message=registered webhooks=\"sizes\" hooks=1 conversions=0",
        "problem=another process holds the lease",
    ] {
        assert_eq!(lines.with(text).len(), 1, "{text}");
    }
    assert_eq!(lines.with("message=lost the lease").len(), 1);
}
