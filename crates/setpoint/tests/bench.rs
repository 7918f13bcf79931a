//! `setpoint bench` against the running binary: the numbers have the right form, and nothing is left behind.

use crate::harness::{SETPOINT, Up};
use futures::{TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The namespaces that every cluster has.
const ALWAYS: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
const BRIEF: [&str; 10] =
    ["--seconds", "0.05", "--rounds", "1", "--clients", "1,3", "--objects", "20", "--watchers", "7"];

/// Runs `act` with the namespaces of `up`.
fn with_namespaces<T, F: Future<Output = T>>(up: &Up, act: impl FnOnce(Api<Namespace>) -> F) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(&up.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        act(Api::all(Client::try_from(config).unwrap())).await
    })
}

async fn names(namespaces: Api<Namespace>) -> Vec<String> {
    namespaces.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

fn check_server(server: &Value, is_own: bool) {
    assert_eq!(server["coldStartMilliseconds"].as_f64().is_some(), is_own, "{server}");
    let lines: Vec<_> = server["measurements"].as_array().unwrap().iter().collect();
    let found: Vec<_> =
        lines.iter().map(|line| (line["operation"].as_str().unwrap(), &line["clients"])).collect();
    let operations = ["create", "delete", "get", "list", "update", "patch", "apply"];
    let expected = [1, 3].iter().flat_map(|clients| operations.iter().map(move |name| (*name, *clients)));
    assert_eq!(found.len(), 2 * operations.len());
    assert!(
        found
            .into_iter()
            .zip(expected)
            .all(|(found, (name, clients))| found.0 == name && *found.1 == clients)
    );
    for line in lines {
        assert_eq!(line["errors"], 0, "{line}");
        assert!(
            line["requests"].as_u64().unwrap() > 0 && line["perSecond"].as_f64().unwrap() > 0.0,
            "{line}"
        );
        let at = |name: &str| line["milliseconds"][name].as_f64().unwrap();
        assert!(at("p50") <= at("p90") && at("p90") <= at("p99") && at("p99") <= at("max"), "{line}");
    }
    assert!(server["fanOut"]["max"].as_f64().unwrap() > 0.0, "{server}");
}

#[test]
fn two_servers_are_measured_side_by_side_and_left_as_they_were() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let output = Command::new(SETPOINT)
        .args(["bench", "--json", "-", "--against"])
        .arg(&up.kubeconfig)
        .args(BRIEF)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    check_server(&report["servers"][0], true);
    check_server(&report["servers"][1], false);
    assert_eq!(report["servers"][1]["url"], up.url);
    assert_eq!(report["ratios"].as_array().unwrap().len(), 15);
    assert_eq!(with_namespaces(&up, names), ALWAYS);
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn an_interrupted_benchmark_cleans_up() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let mut bench = Command::new(SETPOINT)
        .args(["bench", "--seconds", "1000", "--kubeconfig"])
        .arg(&up.kubeconfig)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    with_namespaces(&up, async |namespaces| {
        let events = namespaces.watch(&WatchParams::default(), "0").await.unwrap();
        pin_mut!(events);
        while let Some(event) = events.try_next().await.unwrap() {
            if matches!(event, WatchEvent::Added(namespace) if namespace.name_any().starts_with("setpoint-bench-"))
            {
                break;
            }
        }
    });
    #[expect(unsafe_code, reason = "the standard library sends no SIGINT")]
    // SAFETY: the process is our child and has not been waited for.
    unsafe {
        libc::kill(bench.id().cast_signed(), libc::SIGINT);
    }
    assert_eq!(bench.wait().unwrap().code(), Some(1));
    let said = std::io::read_to_string(bench.stderr.take().unwrap()).unwrap();
    assert_eq!(said, "setpoint: interrupted\n");
    assert_eq!(with_namespaces(&up, names), ALWAYS);
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn numbers_are_printed_even_if_the_cleanup_fails() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let policy = json!({
        "metadata": {"name": "keep"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["namespaces"]},
            ]},
            "validations": [{"expression": "false", "message": "namespaces stay"}],
        },
    });
    let binding =
        json!({"metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]}});
    with_namespaces(&up, |namespaces| async move {
        let client = namespaces.into_client();
        for (resource, object) in
            [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
        {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
            let request = http::Request::post(path).header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes()).unwrap();
            client.request::<Value>(request).await.unwrap();
        }
    });
    let mut bench = Command::new(SETPOINT);
    let output = bench
        .args(["bench", "--json", "-", "--kubeconfig"])
        .arg(&up.kubeconfig)
        .args(BRIEF)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("namespaces stay"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the numbers are printed");
    check_server(&report["servers"][0], false);
}
