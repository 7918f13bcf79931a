//! What a failing test leaves behind.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

/// Set in the process whose test fails on purpose.
const FAILS: &str = "TESTKIT_FAILS";

#[test]
fn a_failing_test_prints_its_last_requests_its_seed_and_the_file_with_its_trace() {
    if let Some(how) = std::env::var_os(FAILS) {
        testkit::simulate(3, |cluster| async move {
            for _ in 0..60 {
                cluster.find::<ConfigMap>("default", "missing").await;
            }
            match how.to_str() {
                Some("panic") => panic!("on purpose"),
                _ => futures::future::pending::<()>().await,
            }
        });
    }
    for (how, message) in [("panic", "on purpose"), ("wait", "nothing can happen any more")] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "--nocapture"])
            .env(FAILS, how)
            .arg("failures::a_failing_test_prints_its_last_requests_its_seed_and_the_file_with_its_trace");
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(message), "{text}");
        assert_eq!(text.matches("configmaps/missing").count(), 50, "{text}");
        assert!(text.contains("SETPOINT_SEED=3"), "{text}");
        let file = text.lines().find_map(|line| line.strip_prefix("the whole trace: ")).unwrap();
        let trace = std::fs::read_to_string(file).unwrap();
        assert_eq!(trace.lines().count(), 60, "{trace}");
    }
}

#[test]
fn a_failing_test_pauses_if_the_environment_says_so() {
    if std::env::var_os(FAILS).is_some() {
        testkit::simulate(3, |cluster| async move {
            cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: b}}").await;
            panic!("on purpose");
        });
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture", "failures::a_failing_test_pauses_if_the_environment_says_so"])
        .env(FAILS, "panic")
        .env("SETPOINT_PAUSE", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut test = command.spawn().unwrap();
    let mut said = BufReader::new(test.stderr.take().unwrap());
    let path = said.by_ref().lines().map_while(Result::ok);
    let path = path.filter_map(|line| Some(line.trim().strip_prefix("export KUBECONFIG=")?.to_owned()));
    let path = path.take(1).next().expect("it says where the kubeconfig is");
    let seen = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let kubeconfig = Kubeconfig::read_from(&path).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
        maps.get("web").await.unwrap().data.unwrap()
    });
    assert_eq!(seen["a"], "b", "the cluster is as the test has left it");
    std::fs::remove_file(path).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(!test.wait().unwrap().success() && rest.contains("the simulation ran with seed 3"), "{rest}");
}
