//! Requests that would end the task that answers them: a 500, an audit event, and the server goes on.

use crate::{
    audit::Paper,
    client::send_with,
    slow_store::{Asked, Slow},
};
use serde_json::Value;
use server::{Audit, AuditPolicy, Config, Server};
use std::{sync::Arc, time::Duration};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_panic_is_a_500_that_is_audited_and_frees_its_seat() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(Slow::new(&world, |asked: Asked<'_>| match asked {
            Asked::Get(key) if key.ends_with(b"/explode") => panic!("a bug in a handler"),
            _ => Duration::ZERO,
        }));
        let paper = Paper::default();
        let policy = b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
        let audit = Audit { policy: AuditPolicy::parse(policy).unwrap(), out: Box::new(paper.clone()) };
        let config = Config { seats: 2, audit: Some(audit), ..Config::default() };
        let server = Server::start(&world, store, config).await.unwrap();
        server.flush().await;
        paper.take();
        // More often than there are seats: each is given back.
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
        let told = events.iter().find(|event| event["stage"] == "Panic").unwrap();
        let expected = serde_json::json!({
            "metadata": {}, "status": "Failure", "message": "APIServer panic'd: a bug in a handler",
            "reason": "InternalError", "code": 500,
        });
        assert_eq!(told["responseStatus"], expected);
    });
    run.unwrap();
}
