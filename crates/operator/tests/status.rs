//! Status on a server: written when it differs, and only then.

use k8s_openapi::{
    api::core::v1::{Namespace, NamespaceCondition, NamespaceStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::Api;
use operator::{retry, status};
use serde_json::json;

fn told(message: &str) -> NamespaceStatus {
    let condition = NamespaceCondition {
        type_: "Ready".into(),
        status: "True".into(),
        reason: Some("Up".into()),
        message: Some(message.into()),
        last_transition_time: Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
    };
    NamespaceStatus { phase: Some("Active".into()), conditions: Some(vec![condition]) }
}

#[test]
fn a_status_is_written_only_when_it_differs() {
    testkit::run(|cluster| async move {
        let api: Api<Namespace> = Api::all(cluster.client());
        let before: Namespace = cluster.get(None, "default").await;
        let after = status::set(&api, &before, &told("a")).await.unwrap().expect("it differs");
        assert_eq!(after.status, Some(told("a")));
        assert_eq!(status::set(&api, &after, &told("a")).await.unwrap(), None);
        let writes = cluster.trace().of("patch", "namespaces/status").len();
        assert_eq!(writes, 1);
    });
}

#[test]
fn set_if_unchanged_conflicts_with_another_version() {
    testkit::run(|cluster| async move {
        let api: Api<Namespace> = Api::all(cluster.client());
        let stale: Namespace = cluster.get(None, "default").await;
        cluster.patch::<Namespace>(None, "default", &json!({ "metadata": { "labels": { "a": "b" } } })).await;
        let error = status::set_if_unchanged(&api, &stale, &told("a")).await.unwrap_err();
        assert!(retry::is_conflict(&error), "{error}");
        status::set(&api, &stale, &told("a")).await.unwrap().expect("it differs");
    });
}
