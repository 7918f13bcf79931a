//! Each fault does what its name says, to the requests that its rule names.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde_json::json;
use std::time::Duration;
use testkit::{Cluster, Fault, simulate};

const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {count: '0'}}";

fn run<F: Future<Output = ()>>(story: impl FnOnce(Cluster) -> F) {
    simulate(3, story).output
}

async fn set(cluster: &Cluster, n: u32) -> kube::Result<ConfigMap> {
    cluster.try_patch("default", "web", &json!({"data": {"count": n.to_string()}})).await
}

async fn n(cluster: &Cluster) -> String {
    cluster.get::<ConfigMap>("default", "web").await.data.unwrap()["count"].clone()
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[test]
fn faults_affect_the_requests_that_match() {
    run(|cluster| async move {
        cluster.apply(MAP).await;
        for (fault, struck) in [
            (Fault::on("patch", "configmaps").conflict(), [true, false, false, false]),
            (Fault::on("patch", "*").nth(3).conflict(), [false, false, true, false]),
            (Fault::on("write", "configmaps").from(2).conflict(), [false, true, true, true]),
            (Fault::on("*", "configmaps").named("web").times(2).conflict(), [true, true, false, false]),
            (Fault::on("patch", "configmaps").in_namespace("default").always().conflict(), [true; 4]),
            (Fault::on("patch", "configmaps").by("admin").always().conflict(), [true; 4]),
            (Fault::on("patch", "configmaps").by("eve").always().conflict(), [false; 4]),
            (Fault::on("patch", "configmaps").named("other").always().conflict(), [false; 4]),
            (Fault::on("update", "configmaps").always().conflict(), [false; 4]),
            (Fault::on("patch", "configmaps/status").always().conflict(), [false; 4]),
        ] {
            let told = format!("{fault:?}");
            let injected = cluster.inject(fault);
            for (index, struck) in struck.into_iter().enumerate() {
                let result = set(&cluster, 1).await;
                assert_eq!(result.as_ref().err().map(code), struck.then_some(409), "{told} at {index}");
            }
            assert_eq!(injected.hits(), struck.iter().filter(|it| **it).count() as u64);
            cluster.lift_faults();
        }
        set(&cluster, 2).await.unwrap();
    });
}

#[test]
fn requests_and_responses_are_lost_and_delayed() {
    run(|cluster| async move {
        cluster.apply(MAP).await;
        cluster.inject(Fault::on("patch", "configmaps").lose_request());
        assert_eq!(code(&set(&cluster, 1).await.unwrap_err()), 0);
        assert_eq!(n(&cluster).await, "0");
        cluster.inject(Fault::on("patch", "configmaps").lose_answer());
        assert_eq!(code(&set(&cluster, 1).await.unwrap_err()), 0);
        assert_eq!(n(&cluster).await, "1");
        cluster.inject(Fault::on("patch", "configmaps").error(429, "TooManyRequests"));
        assert_eq!(code(&set(&cluster, 2).await.unwrap_err()), 429);
        cluster.inject(Fault::on("patch", "configmaps").delay(Duration::from_secs(40)));
        let begun = cluster.world().now();
        set(&cluster, 3).await.unwrap();
        assert_eq!(cluster.world().now().since(begun), Duration::from_secs(40));
        let trace = cluster.trace();
        let faults: Vec<_> =
            trace.of("patch", "configmaps").iter().skip(1).map(|it| it.fault.clone().unwrap()).collect();
        assert_eq!(
            faults,
            ["request lost", "answer lost", "refused with 429 TooManyRequests", "delayed by 40s"]
        );
    });
}

#[test]
fn reads_can_be_stale() {
    run(|cluster| async move {
        cluster.apply(MAP).await;
        for value in 1..=3 {
            set(&cluster, value).await.unwrap();
        }
        cluster.inject(Fault::on("get", "configmaps").stale(2));
        assert_eq!(n(&cluster).await, "1");
        assert_eq!(n(&cluster).await, "3");
        cluster.inject(Fault::on("list", "configmaps").stale(1));
        let list: Vec<ConfigMap> = cluster.list("default").await;
        let web = list.iter().find(|map| map.metadata.name.as_deref() == Some("web")).unwrap();
        assert_eq!(web.data.as_ref().unwrap()["count"], "2");
        cluster.inject(Fault::on("get", "configmaps").stale(4));
        assert!(cluster.find::<ConfigMap>("default", "web").await.is_none());
    });
}

/// Follows a watch to its end: values of events, and how it ended.
async fn follow(api: &Api<ConfigMap>, from: &str) -> (Vec<String>, String) {
    let watch = api.watch(&WatchParams::default().timeout(100), from).await;
    let mut events = match watch {
        Ok(events) => events.boxed(),
        Err(error) => return (Vec::new(), format!("refused {}", code(&error))),
    };
    let mut seen = Vec::new();
    loop {
        match events.try_next().await {
            Ok(Some(WatchEvent::Modified(map))) => seen.push(map.data.unwrap()["count"].clone()),
            Ok(Some(WatchEvent::Error(status))) => return (seen, format!("told {}", status.code)),
            Ok(Some(_)) => {}
            Ok(None) => return (seen, "closed".to_owned()),
            Err(_) => return (seen, "broken".to_owned()),
        }
    }
}

#[test]
fn watches_break_close_and_expire() {
    run(|cluster| async move {
        let from = cluster.apply(MAP).await[0]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        for value in 1..=3 {
            set(&cluster, value).await.unwrap();
        }
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let on = || Fault::on("watch", "configmaps");
        for (fault, events, end) in [
            (on().cut_after(2), 2, "broken"),
            (on().cut_after(0), 0, "broken"),
            (on().close_after(1), 1, "closed"),
            (on().expire_after(1), 1, "told 410"),
            (on().expired(), 0, "refused 410"),
            (on().lose_request(), 0, "refused 0"),
            (on().cut_after(9), 3, "closed"),
        ] {
            let told = format!("{fault:?}");
            cluster.inject(fault);
            let (seen, ended) = follow(&maps, &from).await;
            assert_eq!((seen.len(), &*ended), (events, end), "{told}");
            cluster.lift_faults();
        }
        cluster.compact().await;
        assert_eq!(follow(&maps, &from).await.1, "told 410");
    });
}

#[test]
fn open_watches_are_disconnected_held_back_and_delayed() {
    run(|cluster| async move {
        let from = cluster.apply(MAP).await[0]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let mut watch = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
        let held = cluster.hold_watches("configmaps");
        set(&cluster, 1).await.unwrap();
        let waited = cluster.world().timeout(Duration::from_secs(10), watch.next()).await;
        assert!(waited.is_err(), "held back");
        drop(held);
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Modified(_)))));
        assert_eq!(cluster.drop_watches("pods"), 0);
        assert_eq!(cluster.drop_watches("configmaps"), 1);
        assert!(matches!(watch.next().await, Some(Err(_))));

        cluster.inject(Fault::on("watch", "configmaps").lag(Duration::from_secs(7)));
        let mut watch = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
        let begun = cluster.world().now();
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Modified(_)))));
        assert_eq!(cluster.world().now().since(begun), Duration::from_secs(7));
    });
}

#[test]
fn a_star_holds_back_the_watches_of_all_resources() {
    run(|cluster| async move {
        let from = cluster.apply(MAP).await[0]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let mut watch = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
        let (all, configmaps) = (cluster.hold_watches("*"), cluster.hold_watches("configmaps"));
        set(&cluster, 1).await.unwrap();
        let seconds = Duration::from_secs(10);
        assert!(cluster.world().timeout(seconds, watch.next()).await.is_err(), "both hold it back");
        drop(configmaps);
        assert!(cluster.world().timeout(seconds, watch.next()).await.is_err(), "`*` holds it back");
        drop(all);
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Modified(_)))));
    });
}

#[test]
fn lists_are_affected_like_any_request() {
    run(|cluster| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        cluster.inject(Fault::on("list", "configmaps").expired());
        assert_eq!(code(&maps.list(&ListParams::default()).await.unwrap_err()), 410);
        maps.list(&ListParams::default()).await.unwrap();
    });
}
