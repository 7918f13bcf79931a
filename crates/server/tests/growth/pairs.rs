//! Two long lists in one object, one of which refers to the other: each is walked once.

use crate::{assert_none, compare_work, entries};
use api::time::Time;
use kinds::{
    strategy::{Circumstances, strategy},
    validate,
};
use serde_json::{Map, Value, json};

/// An object before and after a write.
struct Pair {
    about: &'static str,
    /// Group, resource, kind and subresource.
    of: [&'static str; 4],
    new: fn(usize) -> Value,
    old: fn(usize) -> Value,
}

fn list(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect::<Vec<_>>().into()
}

fn pod(containers: Value, annotations: Value, status: Value) -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "n", "annotations": annotations},
        "spec": {"containers": containers, "restartPolicy": "OnFailure"}, "status": status,
    })
}

fn containers(count: usize) -> Value {
    list(count, |at| json!({"name": format!("c{at}"), "image": "i"}))
}

fn statuses(count: usize, state: &Value) -> Value {
    json!({"containerStatuses": list(count, |at| json!({"name": format!("c{at}"), "state": state}))})
}

fn conditions(count: usize, more: &Value) -> Value {
    let condition = |at: usize| {
        let mut condition = json!({"type": format!("T{at}"), "status": "True"});
        condition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        condition
    };
    json!({"conditions": list(count, condition)})
}

fn service(count: usize, of_type: &str, node_port: impl Fn(usize) -> usize) -> Value {
    let port = |at: usize| json!({"name": format!("p{at}"), "port": 1, "nodePort": node_port(at)});
    json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"type": of_type, "ports": list(count, port)}})
}

fn devices(count: usize, field: &str, first: usize) -> Value {
    let device = |at: usize| json!({"driver": "d", "pool": "p", "device": format!("v{}", first + at)});
    match field {
        "allocation" => json!({"allocation": {"devices": {"results": list(count, device)}}}),
        _ => json!({"devices": list(count, device)}),
    }
}

fn claim(status: Value) -> Value {
    json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {"devices": {}}, "status": status})
}

fn pairs() -> Vec<Pair> {
    let pair = |about, of, new, old| Pair { about, of, new, old };
    vec![
        pair(
            "AppArmor annotations",
            ["", "pods", "Pod", ""],
            |count| {
                let annotation = |at| {
                    (format!("container.apparmor.security.beta.kubernetes.io/c{at}"), json!("unconfined"))
                };
                let annotations = (0..count).map(annotation).collect::<Map<_, _>>().into();
                pod(containers(count), annotations, Value::Null)
            },
            |_| Value::Null,
        ),
        pair(
            "container statuses",
            ["", "pods", "Pod", "status"],
            |count| pod(containers(count), Value::Null, statuses(count, &json!({"running": {}}))),
            |count| {
                pod(containers(count), Value::Null, statuses(count, &json!({"terminated": {"exitCode": 1}})))
            },
        ),
        pair(
            "pod conditions",
            ["", "pods", "Pod", "status"],
            |count| pod(containers(1), Value::Null, conditions(count, &json!({}))),
            |count| pod(containers(1), Value::Null, conditions(count, &json!({"observedGeneration": 1}))),
        ),
        pair(
            "ephemeral containers",
            ["", "pods", "Pod", "ephemeralcontainers"],
            |count| {
                let mut pod = pod(containers(1), Value::Null, Value::Null);
                pod["spec"]["ephemeralContainers"] = containers(count);
                pod
            },
            |count| {
                let mut pod = pod(containers(1), Value::Null, Value::Null);
                pod["spec"]["ephemeralContainers"] = containers(count);
                pod
            },
        ),
        pair(
            "node ports kept",
            ["", "services", "Service", ""],
            |count| service(count, "NodePort", |_| 0),
            |count| service(count, "NodePort", |at| 30_000 + at),
        ),
        pair(
            "node ports dropped",
            ["", "services", "Service", ""],
            |count| service(count, "ClusterIP", |at| 30_000 + at),
            |count| service(count, "NodePort", |at| 30_000 + at),
        ),
        pair(
            "requests for devices",
            ["resource.k8s.io", "resourceclaims", "ResourceClaim", ""],
            |count| {
                let name = |at: usize| json!(format!("r{at}"));
                let mut claim = claim(Value::Null);
                claim["spec"]["devices"] = json!({
                    "requests": list(count, |at| json!({"name": name(at)})),
                    "constraints": [{"requests": list(count, name), "matchAttribute": "a/b"}],
                });
                claim
            },
            |_| Value::Null,
        ),
        pair(
            "devices of a claim",
            ["resource.k8s.io", "resourceclaims", "ResourceClaim", "status"],
            |count| {
                let mut status = devices(count, "devices", 0);
                status["allocation"] = devices(count, "allocation", count)["allocation"].clone();
                claim(status)
            },
            |count| claim(devices(count, "allocation", 0)),
        ),
        pair(
            "rules of a job",
            ["batch", "jobs", "Job", ""],
            |count| {
                let codes =
                    |at: usize| json!({"containerName": format!("c{at}"), "operator": "In", "values": [1]});
                let rules = list(count, |at| json!({"action": "Ignore", "onExitCodes": codes(at)}));
                json!({"metadata": {"name": "j", "namespace": "n"}, "spec": {
                    "podFailurePolicy": {"rules": rules}, "template": {"spec": {"containers": containers(count)}},
                }})
            },
            |_| Value::Null,
        ),
        pair(
            "conditions of a certificate request",
            ["certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", "status"],
            |count| json!({"metadata": {"name": "c"}, "spec": {}, "status": conditions(count, &json!({}))}),
            |count| {
                let since = json!({"lastTransitionTime": "2026-01-01T00:00:00Z"});
                json!({"metadata": {"name": "c"}, "spec": {}, "status": conditions(count, &since)})
            },
        ),
    ]
}

#[test]
fn lists_that_refer_to_each_other_grow_with_their_size() {
    world::simulate(1, |_| async move {
        let mut worst = Vec::new();
        for Pair { about, of: [group, resource, kind, subresource], new, old } in pairs() {
            let version = "v1";
            let user = || json!({});
            let with = Circumstances { now: "2026-01-01T00:00:00Z".parse::<Time>().unwrap(), user: &user };
            let found = compare_work(about, entries(), async |count| {
                let (mut new, old) = (new(count), old(count));
                let strategy = strategy(group, resource);
                let errors = if old.is_null() {
                    strategy.prepare_create(&mut new, &with);
                    validate::create(group, version, kind, &new)
                } else if subresource.is_empty() {
                    strategy.prepare_update(&mut new, &old, &with);
                    validate::update(group, version, kind, &new, &old)
                } else {
                    strategy.prepare_subresource(subresource, &mut new, &old, &with);
                    validate::subresource_update(group, version, kind, subresource, &new, &old)
                };
                drop(errors);
            });
            worst.extend(found.await);
        }
        assert_none(&worst);
    })
    .unwrap();
}
