//! An unmodified kubectl against the running binary: the most common commands.
//!
//! `cargo xtask test` finds the program and sets `SETPOINT_KUBECTL` to it.

mod everyday;
mod logs;
mod ports;
mod testing_guide;
mod workloads;

use crate::harness::Up;
use serde_json::Value;
use std::{
    ffi::OsStr,
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

const NO_KUBECTL: &str = "SETPOINT_KUBECTL names no kubectl";

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
        let mut command = self.program(&std::env::var_os("SETPOINT_KUBECTL").expect(NO_KUBECTL));
        command.args(line.split(' '));
        command
    }

    fn program(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", &self.up.kubeconfig).env("HOME", self.scratch.path());
        command.current_dir(self.scratch.path());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// The output of a command that succeeds.
    fn output_of(&self, line: &str) -> String {
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
        serde_json::from_str(&self.output_of(&format!("{line} -o json"))).unwrap()
    }
}

#[test]
fn create_read_change_and_delete() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    assert_eq!(kubectl.output_of("apply -f web.yaml"), "deployment.apps/web created");
    assert_eq!(kubectl.output_of("apply -f web.yaml"), "deployment.apps/web unchanged");
    kubectl.file("web.yaml", &MANIFEST.replace("nginx:1", "nginx:2"));
    let difference = kubectl.run("diff -f web.yaml");
    assert_eq!(difference.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&difference.stdout).contains("+      - image: nginx:2"));
    assert_eq!(kubectl.output_of("apply -f web.yaml"), "deployment.apps/web configured");
    assert_eq!(kubectl.output_of("scale deployment web --replicas=5"), "deployment.apps/web scaled");
    assert_eq!(kubectl.output_of("label deployment web tier=front"), "deployment.apps/web labeled");
    assert_eq!(kubectl.output_of("annotate deployment web note=x"), "deployment.apps/web annotated");
    assert_eq!(
        kubectl.output_of(r#"patch deployment web -p {"spec":{"replicas":3}}"#),
        "deployment.apps/web patched"
    );
    assert_eq!(
        kubectl.output_of("wait --for=jsonpath={.spec.replicas}=3 deployment/web --timeout=20s"),
        "deployment.apps/web condition met"
    );
    let web = kubectl.json("get deployment web");
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(web["metadata"]["labels"]["tier"], "front");
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:2");
    kubectl.output_of("create configmap one --from-literal=a=1");
    let mut one = kubectl.json("get configmap one");
    one["data"]["a"] = "2".into();
    kubectl.file("one.json", &one.to_string());
    assert_eq!(kubectl.output_of("replace -f one.json"), "configmap/one replaced");
    assert!(kubectl.refuses("replace -f one.json").contains("the object has been modified"));
    assert_eq!(kubectl.output_of("delete deployment web"), "deployment.apps \"web\" deleted");
    assert!(kubectl.refuses("get deployment web").contains("deployments.apps \"web\" not found"));
}

#[test]
fn every_form_of_output() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.output_of("create configmap one --from-literal=a=1");
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
        let said = kubectl.output_of(line);
        assert!(said.contains(expected), "kubectl {line}: {said}");
    }
    assert!(kubectl.output_of("config view").contains(&format!("server: {}", kubectl.up.url)));
}

#[test]
fn server_side_apply_with_conflicts_and_force() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    assert_eq!(
        kubectl.output_of("apply --server-side -f web.yaml"),
        "deployment.apps/web serverside-applied"
    );
    kubectl.output_of("scale deployment web --replicas=5");
    let refused = kubectl.refuses("apply --server-side -f web.yaml");
    assert!(
        refused.contains("Apply failed with 1 conflict") && refused.contains(".spec.replicas"),
        "{refused}"
    );
    kubectl.output_of("apply --server-side --force-conflicts -f web.yaml");
    assert_eq!(kubectl.json("get deployment web")["spec"]["replicas"], 2);
}

#[test]
fn kill_9_loses_nothing_and_a_watch_resumes() {
    let mut kubectl = Kubectl::new(&[]);
    kubectl.output_of("create configmap one --from-literal=a=1");
    let seen = kubectl.json("get configmap one")["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    kubectl.output_of("create configmap two --from-literal=a=1");
    kubectl.up.process.kill().unwrap(); // SIGKILL
    kubectl.up.process.wait().unwrap();
    kubectl.up = Up::start(&[], kubectl.scratch.path());
    let two = kubectl.json("get configmap two");
    let watch = format!(
        "get --raw /api/v1/namespaces/default/configmaps?watch=1&resourceVersion={seen}&timeoutSeconds=1"
    );
    let events = kubectl.output_of(&watch);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["type"], "ADDED");
    for field in ["uid", "resourceVersion"] {
        assert_eq!(events[0]["object"]["metadata"][field], two["metadata"][field]);
    }
    kubectl.output_of("create configmap three --from-literal=a=1");
    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(version(&kubectl.json("get configmap three")) > version(&two), "versions go on rising");
}

#[test]
fn stopping_ends_open_watches_cleanly() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    let mut command = kubectl.command("get --raw /api/v1/namespaces?watch=1&timeoutSeconds=600");
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(events.next().unwrap().unwrap().starts_with("{\"type\":\"ADDED\""));
    assert_eq!(kubectl.up.stop(), Some(0));
    assert!(events.all(|line| line.unwrap().ends_with('}')), "no event is cut off");
    assert!(watch.wait().unwrap().success());
}

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.storage.example.com}
spec:
  group: storage.example.com
  scope: Namespaced
  names: {plural: disks, singular: disk, kind: Disk, shortNames: [dk], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}}
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        description: A disk somewhere.
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: quantity(self.size).isGreaterThan(quantity('1Gi')), message: too small}
            properties:
              size: {type: string, description: How much fits in.}
              copies: {type: integer, default: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const DISK: &str = "\
apiVersion: storage.example.com/v1
kind: Disk
metadata: {name: data}
spec: {size: 5Gi}
";

#[test]
fn kubectl_handles_custom_resources() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("definition.yaml", DEFINITION);
    kubectl.file("disk.yaml", DISK);
    let made = kubectl.output_of("apply -f definition.yaml");
    assert_eq!(made, "customresourcedefinition.apiextensions.k8s.io/disks.storage.example.com created");
    kubectl.output_of("wait --for=condition=Established crd/disks.storage.example.com --timeout=10s");
    assert_eq!(kubectl.output_of("apply -f disk.yaml"), "disk.storage.example.com/data created");
    let table = kubectl.output_of("get dk");
    assert_eq!(table.split_whitespace().collect::<Vec<_>>(), ["NAME", "SIZE", "data", "5Gi"]);
    let explained = kubectl.output_of("explain disks.spec.size");
    assert!(explained.contains("How much fits in."), "{explained}");
    assert!(explained.contains("FIELD: size <string>"), "{explained}");
    kubectl.output_of("scale disk data --replicas=3");
    assert_eq!(kubectl.json("get disk data")["spec"]["copies"], 3);
    kubectl.file("disk.yaml", &DISK.replace("5Gi", "1Mi"));
    let refused = kubectl.refuses("apply -f disk.yaml");
    assert!(refused.contains("spec: Invalid value: too small"), "{refused}");
    kubectl.file("disk.yaml", &DISK.replace("size", "sise"));
    let refused = kubectl.refuses("apply -f disk.yaml");
    assert!(refused.contains(r#"unknown field "spec.sise""#), "{refused}");
    kubectl.output_of("delete -f definition.yaml");
    let refused = kubectl.refuses("get disks");
    // It has cached the discovery, and requests the resource.
    assert!(refused.contains("the server could not find the requested resource"), "{refused}");
}

/// What `kubectl explain` prints, with each run of spaces and line breaks as one space.
fn explained(kubectl: &Kubectl, path: &str) -> String {
    let said = kubectl.output_of(&format!("explain {path}"));
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn explain_describes_fields_of_built_in_and_custom_kinds() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("definition.yaml", DEFINITION);
    kubectl.output_of("apply -f definition.yaml");
    kubectl.output_of("wait --for=condition=Established crd/disks.storage.example.com --timeout=10s");
    for (path, expected) in [
        ("pod", "DESCRIPTION: Containers that run together on one node"),
        ("pod.spec.containers.image", "FIELD: image <string> DESCRIPTION: The image to run, such as"),
        (
            "deployment.spec.strategy",
            "DESCRIPTION: How old pods are replaced by new ones. A way to replace pods: step by step, or all at once. \
             FIELDS: rollingUpdate <RollingUpdateDeployment> How large the steps are.",
        ),
        ("disks", "apiVersion <string> APIVersion defines the versioned schema"),
        ("disks.metadata", "FIELD: metadata <ObjectMeta> DESCRIPTION: Standard object's metadata."),
        // Kubernetes: the conformance suite looks for these words.
        ("disks.metadata", "creationTimestamp <string> CreationTimestamp is a timestamp"),
        ("disks.metadata.labels", "DESCRIPTION: Keys and values that selectors find the object by."),
    ] {
        let said = explained(&kubectl, path);
        assert!(said.contains(expected), "kubectl explain {path}: {said}");
    }
    for path in
        ["pod", "pod.spec", "pod.spec.volumes", "service.spec", "crd.spec.versions.schema", "hpa.status"]
    {
        let said = kubectl.output_of(&format!("explain {path}"));
        assert!(!said.contains("<no description>") && !said.contains("<empty>"), "explain {path}: {said}");
    }
}

#[test]
fn server_side_apply_reports_conflicts_and_can_force() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("definition.yaml", DEFINITION);
    kubectl.file("web.yaml", MANIFEST);
    kubectl.file("disk.yaml", DISK);
    kubectl.output_of("apply --server-side -f definition.yaml");
    for (file, name, from, to, field) in [
        ("web.yaml", "deployment.apps/web", "replicas: 2", "replicas: 3", ".spec.replicas"),
        ("disk.yaml", "disk.storage.example.com/data", "5Gi", "6Gi", ".spec.size"),
    ] {
        let apply = format!("apply --server-side -f {file}");
        assert_eq!(kubectl.output_of(&apply), format!("{name} serverside-applied"));
        let text = std::fs::read_to_string(kubectl.scratch.path().join(file)).unwrap();
        kubectl.file(file, &text.replace(from, to));
        let refused = kubectl.refuses(&format!("{apply} --field-manager=other"));
        assert!(refused.contains("conflict with \"kubectl\": "), "{refused}");
        assert!(refused.contains(field), "{refused}");
        let forced = kubectl.output_of(&format!("{apply} --field-manager=other --force-conflicts"));
        assert_eq!(forced, format!("{name} serverside-applied"));
    }
    assert_eq!(kubectl.json("get deploy web")["spec"]["replicas"], 3);
    assert_eq!(kubectl.json("get disk data")["spec"]["size"], "6Gi");
}

/// The claims of a token.
fn claims(token: &str) -> Value {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[test]
fn tokens_are_created_with_every_option() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.output_of("create serviceaccount bot");
    kubectl.output_of("create secret generic anchor");
    kubectl.output_of("create clusterrolebinding bot --clusterrole=view --serviceaccount=default:bot");
    let spec = "spec: {serviceAccountName: bot, containers: [{name: c, image: i}]}";
    kubectl.file("pod.yaml", &format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\n{spec}\n"));
    kubectl.output_of("create -f pod.yaml");
    let uid = |what: &str| kubectl.json(what)["metadata"]["uid"].as_str().unwrap().to_owned();
    let (pod, anchor) = (uid("get pod web"), uid("get secret anchor"));
    let lifetime = |said: &Value| said["exp"].as_i64().unwrap() - said["iat"].as_i64().unwrap();

    let plain = kubectl.output_of("create token bot");
    let said = claims(&plain);
    assert_eq!(said["sub"], "system:serviceaccount:default:bot");
    assert_eq!(
        (&said["aud"], lifetime(&said)),
        (&serde_json::json!(["https://kubernetes.default.svc"]), 3600)
    );
    let allowed = format!(
        "--token={plain} --kubeconfig=/dev/null --server={} --insecure-skip-tls-verify",
        kubectl.up.url
    );
    assert!(kubectl.output_of(&format!("get configmaps {allowed}")).contains("kube-root-ca.crt"));
    assert!(
        kubectl.output_of(&format!("auth whoami {allowed}")).contains("system:serviceaccount:default:bot")
    );

    let said = claims(&kubectl.output_of("create token bot --audience=vault --audience=ci --duration=20m"));
    assert_eq!((&said["aud"], lifetime(&said)), (&serde_json::json!(["vault", "ci"]), 1200));
    let bound =
        format!("create token bot --bound-object-kind=Pod --bound-object-name=web --bound-object-uid={pod}");
    let said = claims(&kubectl.output_of(&bound));
    assert_eq!(said["kubernetes.io"]["pod"], serde_json::json!({"name": "web", "uid": pod}));
    let said =
        claims(&kubectl.output_of("create token bot --bound-object-kind=Secret --bound-object-name=anchor"));
    assert_eq!(said["kubernetes.io"]["secret"], serde_json::json!({"name": "anchor", "uid": anchor}));
    let whole = kubectl.json("create token bot");
    assert_eq!((&whole["kind"], &whole["spec"]["expirationSeconds"]), (&"TokenRequest".into(), &3600.into()));

    for (line, expected) in [
        ("create token nobody", "serviceaccounts \"nobody\" not found"),
        ("create token bot --duration=1m", "may not specify a duration less than 10 minutes"),
        ("create token bot --bound-object-kind=Pod --bound-object-name=none", "pods \"none\" not found"),
        (
            "create token bot --bound-object-kind=Pod --bound-object-name=web --bound-object-uid=x",
            "does not match the UID",
        ),
        (
            "create token default --bound-object-kind=Pod --bound-object-name=web",
            "cannot bind token for serviceaccount",
        ),
    ] {
        let refused = kubectl.refuses(line);
        assert!(refused.contains(expected), "kubectl {line}: {refused}");
    }
}
