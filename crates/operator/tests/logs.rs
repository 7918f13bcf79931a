//! The lines of a manager's log, at the level info: one for each thing that happens to the process.

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, all,
    webhook::{Address, Certificates, Hook, Request, Site, Webhooks},
};
use serde_json::json;
use std::{
    fmt::{Debug, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::with_default,
};

/// Collects the lines of the operator crate: message and fields.
#[derive(Clone, Default)]
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
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

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.spans.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
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
    let left_out = lines.with("message=reconciled").last().unwrap().clone();
    assert!(!left_out.contains("left_out=0"), "{left_out}");
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
