//! Handlers that panic: a 500, an audit event, and the server goes on.

use crate::{
    audit::LogFile,
    client::send_with,
    slow_store::{Slow, StoreAccess},
    socket::{Lab, PATIENCE, request},
};
use serde_json::Value;
use server::{Audit, AuditPolicy, Config, Server, accept::Limits};
use std::{
    fmt::{self, Write},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::{
    Metadata,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_panic_is_a_500_that_is_audited_and_frees_its_seat() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(Slow::new(&world, |access: StoreAccess<'_>| match access {
            StoreAccess::Get(key) if key.ends_with(b"/explode") => panic!("a bug in a handler"),
            _ => Duration::ZERO,
        }));
        let paper = LogFile::default();
        let policy = b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
        let audit = Audit { policy: AuditPolicy::parse(policy).unwrap(), out: Box::new(paper.clone()) };
        let config = Config { seats: 2, audit: Some(audit), ..Config::default() };
        let server = Server::start(&world, store, config).await.unwrap();
        server.flush().await;
        paper.take();
        // More requests than seats: each seat is released.
        for _ in 0..20 {
            let (code, body) = send_with(&server, "GET", &format!("{MAPS}/explode"), "", "").await;
            let text = "This request caused apiserver to panic. Look in the logs for details.\n";
            assert_eq!((code, &*body), (500, text.as_bytes()));
        }
        let (code, _) = send_with(&server, "GET", &format!("{MAPS}/none"), "", "").await;
        assert_eq!(code, 404, "and it goes on");
        server.flush().await;
        let events: Vec<Value> =
            paper.take().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |stage: &str| events.iter().filter(|event| event["stage"] == stage).count();
        assert_eq!((of("RequestReceived"), of("Panic"), of("ResponseComplete")), (21, 20, 1));
        let event = events.iter().find(|event| event["stage"] == "Panic").unwrap();
        let expected = serde_json::json!({
            "metadata": {}, "status": "Failure", "message": "APIServer panic'd: a bug in a handler",
            "reason": "InternalError", "code": 500,
        });
        assert_eq!(event["responseStatus"], expected);
    });
    run.unwrap();
}

/// Log lines about panics from all threads: the socket is served by several.
#[derive(Debug, Default)]
struct PanicLog(Mutex<Vec<String>>);

impl PanicLog {
    /// One per process, since a process has one subscriber.
    fn of_process() -> &'static PanicLog {
        static LOG: OnceLock<&'static PanicLog> = OnceLock::new();
        LOG.get_or_init(|| {
            let log: &'static PanicLog = Box::leak(Box::default());
            tracing::subscriber::set_global_default(log).unwrap();
            log
        })
    }
}

/// Writes the fields of an event one after the other.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl tracing::Subscriber for &'static PanicLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR && metadata.target().ends_with("panics")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_panic_behind_a_socket_is_a_500_and_the_connection_stays_open() {
    let log = PanicLog::of_process();
    world::run(async |world| {
        let store = Arc::new(Slow::new(&world, |access: StoreAccess<'_>| match access {
            StoreAccess::Get(key) if key.ends_with(b"/explode-behind-a-socket") => {
                panic!("a bug in a handler")
            }
            _ => Duration::ZERO,
        }));
        let paper = LogFile::default();
        let policy = b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
        let audit = Audit { policy: AuditPolicy::parse(policy).unwrap(), out: Box::new(paper.clone()) };
        let lab = Lab::start_on(&world, Limits::default(), store, Some(audit)).await;
        let mut stream = lab.tls("http/1.1").await;
        let path = format!("{MAPS}/explode-behind-a-socket");
        for _ in 0..3 {
            let exploding = request("GET", &path, "", b"");
            let exploding = String::from_utf8(exploding).unwrap().replace("Connection: close\r\n", "");
            stream.write_all(exploding.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"Look in the logs for details.\n") {
                let mut piece = [0; 1024];
                let read = world.timeout(PATIENCE, stream.read(&mut piece)).await.unwrap().unwrap();
                assert!(read > 0, "the connection stays: {}", String::from_utf8_lossy(&answer));
                answer.extend_from_slice(&piece[..read]);
            }
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 500 Internal Server Error\r\n"), "{answer}");
            assert!(answer.ends_with(
                "\r\n\r\nThis request caused apiserver to panic. Look in the logs for details.\n"
            ));
        }
        // The same connection, and others, go on.
        stream.write_all(&request("GET", &format!("{MAPS}/none"), "", b"")).await.unwrap();
        let answer = lab.read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
        lab.assert_well("after panics").await;
        let audited = world.timeout(PATIENCE, async {
            let mut written = String::new();
            while written.matches("\"stage\":\"Panic\"").count() < 3 {
                written.push_str(&paper.take());
                tokio::task::yield_now().await;
            }
            written
        });
        let audited = audited.await.expect("the audit log records the panics");
        assert!(audited.contains("APIServer panic'd: a bug in a handler"), "{audited}");
    })
    .unwrap();
    let lines = log.0.lock().unwrap();
    let panics: Vec<_> = lines.iter().filter(|line| line.contains("explode-behind-a-socket")).collect();
    assert_eq!(panics.len(), 3, "{lines:?}");
    for part in ["request panicked", "method=GET", "panics.rs:", "a bug in a handler"] {
        assert!(panics[0].contains(part), "{part}: {}", panics[0]);
    }
}
