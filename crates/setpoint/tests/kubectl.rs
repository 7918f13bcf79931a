//! An unmodified kubectl against the running binary: what people type first.
//!
//! `cargo xtask test` finds the program and names it in `SETPOINT_KUBECTL`.

use crate::harness::Up;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Output, Stdio},
};

const MANIFEST: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'nginx:1'}]}
";

struct Kubectl {
    up: Up,
    scratch: tempfile::TempDir,
}

impl Kubectl {
    fn new(arguments: &[&str]) -> Kubectl {
        let scratch = tempfile::tempdir().unwrap();
        Kubectl { up: Up::start(arguments, scratch.path()), scratch }
    }

    fn command(&self, line: &str) -> Command {
        let program = std::env::var_os("SETPOINT_KUBECTL").expect("SETPOINT_KUBECTL names no kubectl");
        let mut command = Command::new(program);
        command.args(line.split(' ')).env("KUBECONFIG", &self.up.kubeconfig).env("HOME", self.scratch.path());
        command.current_dir(self.scratch.path());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// What a command that succeeds says.
    fn says(&self, line: &str) -> String {
        let output = self.run(line);
        let said = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {line}: {said}{complaint}");
        said.trim_end().to_owned()
    }

    fn refuses(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(!output.status.success(), "kubectl {line}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.says(&format!("{line} -o json"))).unwrap()
    }
}

#[test]
fn create_read_change_and_delete() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    assert_eq!(kubectl.says("apply -f web.yaml"), "deployment.apps/web created");
    assert_eq!(kubectl.says("apply -f web.yaml"), "deployment.apps/web unchanged");
    kubectl.file("web.yaml", &MANIFEST.replace("nginx:1", "nginx:2"));
    let difference = kubectl.run("diff -f web.yaml");
    assert_eq!(difference.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&difference.stdout).contains("+      - image: nginx:2"));
    assert_eq!(kubectl.says("apply -f web.yaml"), "deployment.apps/web configured");
    assert_eq!(kubectl.says("scale deployment web --replicas=5"), "deployment.apps/web scaled");
    assert_eq!(kubectl.says("label deployment web tier=front"), "deployment.apps/web labeled");
    assert_eq!(kubectl.says("annotate deployment web note=x"), "deployment.apps/web annotated");
    assert_eq!(
        kubectl.says(r#"patch deployment web -p {"spec":{"replicas":3}}"#),
        "deployment.apps/web patched"
    );
    assert_eq!(
        kubectl.says("wait --for=jsonpath={.spec.replicas}=3 deployment/web --timeout=20s"),
        "deployment.apps/web condition met"
    );
    let web = kubectl.json("get deployment web");
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(web["metadata"]["labels"]["tier"], "front");
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:2");
    kubectl.says("create configmap one --from-literal=a=1");
    let mut one = kubectl.json("get configmap one");
    one["data"]["a"] = "2".into();
    kubectl.file("one.json", &one.to_string());
    assert_eq!(kubectl.says("replace -f one.json"), "configmap/one replaced");
    assert!(kubectl.refuses("replace -f one.json").contains("the object has been modified"));
    assert_eq!(kubectl.says("delete deployment web"), "deployment.apps \"web\" deleted");
    assert!(kubectl.refuses("get deployment web").contains("deployments.apps \"web\" not found"));
}

#[test]
fn every_form_of_output() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.says("create configmap one --from-literal=a=1");
    for (line, expected) in [
        ("get configmap", "one"),
        ("get configmap -o wide", "DATA"),
        ("get configmap -A", "NAMESPACE"),
        ("get configmap one -o yaml", "kind: ConfigMap"),
        ("get configmap one -o json", "\"kind\": \"ConfigMap\""),
        ("get configmap -o name", "configmap/one"),
        ("get configmap one -o jsonpath={.data.a}", "1"),
        ("get configmap one -o go-template={{.data.a}}", "1"),
        ("get configmap -o custom-columns=N:.metadata.name", "one"),
        ("describe configmap one", "Name:         one"),
        ("get namespaces", "kube-system"),
        ("get --raw /healthz", "ok"),
        ("api-resources", "deployments"),
        ("api-versions", "apps/v1"),
        ("explain deployment.spec.replicas", "replicas <integer>"),
        ("version -o json", "\"minor\": \"36\""),
    ] {
        let said = kubectl.says(line);
        assert!(said.contains(expected), "kubectl {line}: {said}");
    }
    assert!(kubectl.says("config view").contains(&format!("server: {}", kubectl.up.url)));
}

#[test]
fn server_side_apply_with_conflicts_and_force() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    assert_eq!(kubectl.says("apply --server-side -f web.yaml"), "deployment.apps/web serverside-applied");
    kubectl.says("scale deployment web --replicas=5");
    let refused = kubectl.refuses("apply --server-side -f web.yaml");
    assert!(
        refused.contains("Apply failed with 1 conflict") && refused.contains(".spec.replicas"),
        "{refused}"
    );
    kubectl.says("apply --server-side --force-conflicts -f web.yaml");
    assert_eq!(kubectl.json("get deployment web")["spec"]["replicas"], 2);
}

#[test]
fn kill_9_loses_nothing_and_a_watch_resumes() {
    let mut kubectl = Kubectl::new(&[]);
    kubectl.says("create configmap one --from-literal=a=1");
    let seen = kubectl.json("get configmap one")["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    kubectl.says("create configmap two --from-literal=a=1");
    kubectl.up.process.kill().unwrap(); // SIGKILL
    kubectl.up.process.wait().unwrap();
    kubectl.up = Up::start(&[], kubectl.scratch.path());
    let two = kubectl.json("get configmap two");
    let watch = format!(
        "get --raw /api/v1/namespaces/default/configmaps?watch=1&resourceVersion={seen}&timeoutSeconds=1"
    );
    let told = kubectl.says(&watch);
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["type"], "ADDED");
    for field in ["uid", "resourceVersion"] {
        assert_eq!(told[0]["object"]["metadata"][field], two["metadata"][field]);
    }
    kubectl.says("create configmap three --from-literal=a=1");
    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(version(&kubectl.json("get configmap three")) > version(&two), "versions go on rising");
}

#[test]
fn stopping_ends_open_watches_cleanly() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    let mut command = kubectl.command("get --raw /api/v1/namespaces?watch=1&timeoutSeconds=600");
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().starts_with("{\"type\":\"ADDED\""));
    assert_eq!(kubectl.up.stop(), Some(0));
    assert!(told.all(|line| line.unwrap().ends_with('}')), "no event is cut off");
    assert!(watch.wait().unwrap().success());
}
