//! The commands for people: everything that kubectl is used for every day, and the stories of objects.

mod assets;
mod busy_object;

use crate::harness::{SETPOINT, Up};
use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

const WEB: &str = "\
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

/// A cluster in a folder of its own, which commands in that folder find.
struct Folder {
    up: Up,
    scratch: tempfile::TempDir,
}

impl Folder {
    fn new() -> Folder {
        let scratch = tempfile::tempdir().unwrap();
        Folder { up: Up::start(&["--ephemeral"], scratch.path()), scratch }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(SETPOINT);
        command.args(line.split(' ')).env_remove("KUBECONFIG").env("HOME", self.scratch.path());
        command.current_dir(self.scratch.path());
        command
    }

    /// What a command that succeeds prints.
    fn says(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What a command that fails prints on standard error.
    fn refuses(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    /// With a deployment whose pods run.
    fn with_web(self) -> Folder {
        self.file("web.yaml", WEB);
        assert_eq!(self.says("apply -f web.yaml"), "deployment.apps/web created\n");
        assert_eq!(
            self.says("wait --for=condition=Available deploy/web --timeout=30s"),
            "deployment.apps/web condition met\n"
        );
        self
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn objects_are_applied_shown_and_deleted() {
    let folder = Folder::new().with_web();
    assert_eq!(folder.says("apply -f web.yaml"), "deployment.apps/web unchanged\n");
    folder.file("web.yaml", &WEB.replace("replicas: 2", "replicas: 3"));
    assert_eq!(
        folder.says("apply -f web.yaml --dry-run=server"),
        "deployment.apps/web configured (server dry run)\n"
    );
    assert_eq!(folder.says("apply -f web.yaml"), "deployment.apps/web configured\n");
    assert_eq!(
        folder.says("wait --for=jsonpath={.status.readyReplicas}=3 deploy/web"),
        "deployment.apps/web condition met\n"
    );
    let table = folder.says("get deploy web");
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert_eq!(rows[1][..4], ["web", "3/3", "3", "3"]);
    assert_eq!(folder.says("get deploy,rs -o name").lines().next(), Some("deployment.apps/web"));
    assert_eq!(folder.says("get deploy web -o jsonpath={.spec.replicas}"), "3");
    assert_eq!(
        folder.says("delete -f web.yaml --cascade=foreground"),
        "deployment.apps \"web\" deleted from default namespace\n"
    );
    assert_eq!(folder.says("get pods -o name"), "", "foreground: the pods went first");
    assert_eq!(
        folder.refuses("get deploy web"),
        "Error from server (NotFound): deployments.apps \"web\" not found\n"
    );
    assert_eq!(folder.says("get deploy web --ignore-not-found"), "");
}

#[test]
fn manifests_come_from_standard_input_and_folders_and_a_definition_before_its_objects() {
    let folder = Folder::new();
    let definition = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: disks, singular: disk, kind: Disk}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";
    std::fs::create_dir(folder.scratch.path().join("all")).unwrap();
    folder.file("all/1.yaml", definition);
    folder.file("all/notes.txt", "not a manifest");
    let mut apply =
        folder.command("apply -f -").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";
    apply.stdin.take().unwrap().write_all(map.as_bytes()).unwrap();
    assert_eq!(text(&apply.wait_with_output().unwrap().stdout), "configmap/one created\n");
    folder.says("apply -f all");
    folder.says("wait --for=condition=Established crd/disks.example.com");
    folder.file("all/2.yaml", "apiVersion: example.com/v1\nkind: Disk\nmetadata: {name: data}\n");
    assert_eq!(
        folder.says("apply -f all"),
        "customresourcedefinition.apiextensions.k8s.io/disks.example.com unchanged\ndisk.example.com/data created\n"
    );
    for (line, expected) in [
        ("apply -f https://example.com/x.yaml", "only files are read here: fetch it first"),
        ("apply -k .", "kustomizations are not read here"),
        ("apply -f all --prune", "--prune is not done here"),
        ("apply -f all/2.yaml -n other", "namespaces \"other\" not found"),
    ] {
        let said = folder.refuses(line);
        assert!(said.contains(expected), "{line}: {said}");
    }
}

#[test]
fn server_side_apply_reports_conflicts_and_plain_apply_wins_them() {
    let folder = Folder::new().with_web();
    folder.file("five.yaml", &WEB.replace("replicas: 2", "replicas: 5"));
    folder.says("apply -f five.yaml --server-side --field-manager=scaler --force-conflicts");
    let said = folder.refuses("apply -f web.yaml --server-side");
    assert!(said.contains("conflict with \"scaler\": .spec.replicas"), "{said}");
    assert!(said.contains("--force-conflicts"), "{said}");
    assert_eq!(folder.says("apply -f web.yaml"), "deployment.apps/web configured\n");
    assert_eq!(folder.says("get deploy web -o jsonpath={.spec.replicas}"), "2");
}

#[test]
fn waiting_ends_with_the_object_or_the_time() {
    let folder = Folder::new();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, finalizers: [example.com/hold]}\n";
    folder.file("one.yaml", map);
    let mut wait = folder.command("wait --for=create cm/one --timeout=30s");
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    folder.says("apply -f one.yaml");
    assert_eq!(text(&wait.wait_with_output().unwrap().stdout), "configmap/one condition met\n");
    assert_eq!(
        folder.refuses("delete cm one --timeout=100ms"),
        "error: timed out waiting for the condition on configmaps/one\n"
    );
    let mut wait = folder.command("wait --for=delete cm/one --timeout=30s");
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    folder.file("one.yaml", &map.replace(", finalizers: [example.com/hold]", ""));
    folder.says("apply -f one.yaml");
    // It prints nothing if the object was gone before it looked.
    assert!(wait.wait_with_output().unwrap().status.success());
    assert_eq!(folder.says("get cm one --ignore-not-found"), "");
}

/// A command that goes on, and the lines that it prints.
struct Watching {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(folder: &Folder, line: &str) -> Watching {
        let mut process = folder.command(line).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Watching { process, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn a_watch_shows_what_there_is_and_then_changes() {
    let folder = Folder::new();
    let map = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one, labels: {{a: b}}}}\ndata: {{k: {value}}}\n"
        )
    };
    folder.file("one.yaml", &map("x"));
    folder.says("apply -f one.yaml");
    let mut table = Watching::start(&folder, "watch cm -l a=b");
    let mut names = Watching::start(&folder, "get cm -l a=b -w -o jsonpath={.data.k}{\"\\n\"}");
    assert!(table.next().starts_with("NAME   DATA   AGE"));
    assert!(table.next().starts_with("one    1      "));
    assert_eq!(names.next(), "x");
    folder.file("one.yaml", &map("z"));
    folder.says("apply -f one.yaml");
    assert_eq!(names.next(), "z");
    assert!(table.next().starts_with("one    1      "));
    let said = folder.refuses("get cm,pods -w");
    assert_eq!(said, "error: you may only specify a single resource type\n");
}

#[test]
fn logs_of_pods_and_deployments_are_printed() {
    let folder = Folder::new();
    let pod = "\
apiVersion: v1
kind: Pod
metadata: {name: talker, labels: {app: talker}}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: busybox, command: [sh, -c, 'echo one; echo two']}
  - {name: side, image: busybox, command: [sh, -c, 'echo three']}
";
    folder.file("pod.yaml", pod);
    folder.says("apply -f pod.yaml");
    folder.says("wait --for=jsonpath={.status.phase}=Succeeded pod/talker --timeout=30s");
    assert_eq!(folder.says("logs talker"), "one\ntwo\n");
    assert_eq!(folder.says("logs talker -c side"), "three\n");
    assert_eq!(folder.says("logs talker --tail=1"), "two\n");
    assert_eq!(folder.says("logs -f pod/talker side"), "three\n");
    let said = folder.says("logs -l app=talker --all-containers --prefix");
    assert_eq!(said, "[pod/talker/main] one\n[pod/talker/main] two\n[pod/talker/side] three\n");
    assert_eq!(
        folder.refuses("logs missing"),
        "error: error from server (NotFound): pods \"missing\" not found in namespace \"default\"\n"
    );
    assert!(folder.refuses("logs talker -c none").contains("container none is not valid for pod talker"));
    let folder = folder.with_web();
    let output = folder.command("logs deploy/web").output().unwrap();
    assert!(text(&output.stderr).starts_with("Found 2 pods, using pod/web-"), "{}", text(&output.stderr));
}

#[test]
fn events_kubeconfig_and_completions() {
    let folder = Folder::new().with_web();
    let said = folder.says("events --for deploy/web");
    assert!(
        said.starts_with("LAST SEEN   TYPE     REASON              OBJECT           MESSAGE\n"),
        "{said}"
    );
    assert!(
        said.contains("Normal   ScalingReplicaSet   Deployment/web   Scaled up replica set web-"),
        "{said}"
    );
    let printed = folder.says("kubeconfig");
    assert_eq!(printed, std::fs::read_to_string(folder.scratch.path().join(".setpoint/kubeconfig")).unwrap());
    let said = folder.says("kubeconfig --merge");
    assert!(said.ends_with("context \"setpoint\" added, and current\n"), "{said}");
    std::fs::remove_file(folder.scratch.path().join(".setpoint/kubeconfig")).unwrap();
    assert_eq!(folder.says("get deploy -o name"), "deployment.apps/web\n", "through ~/.kube/config");
    assert!(folder.refuses("kubeconfig").contains("start a cluster with `setpoint up`"));
    assert!(folder.refuses("get pods --kubeconfig none").contains("stat none: no such file"));
    assert!(folder.refuses("get pods --context none").contains("none"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(folder.says(&format!("completion {shell}")).contains("setpoint"), "{shell}");
    }
}

#[test]
fn why_and_tree_tell_of_a_deployment_that_does_not_progress() {
    let folder = Folder::new();
    folder.says("wait --for=create --for=condition=Ready nodes --all --timeout=30s");
    folder
        .file("web.yaml", &WEB.replace("spec: {containers", "spec: {nodeSelector: {disk: fast}, containers"));
    folder.says("apply -f web.yaml");
    folder.says("wait --for=create pods -l app=web --timeout=30s");
    folder.says("wait --for=condition=PodScheduled=false pods -l app=web --timeout=30s");
    let said = folder.says("why deploy/web");
    assert!(said.starts_with("why: pod web-"), "{said}");
    assert!(said.lines().next().unwrap().contains("cannot be scheduled: 0/1 nodes are available"), "{said}");
    assert!(said.contains("kubectl applied "), "{said}");
    let tree = folder.says("tree deploy/web");
    let lines: Vec<_> = tree.lines().collect();
    assert!(lines[1].starts_with("Deployment/web "), "{tree}");
    assert!(lines[2].starts_with("└── ReplicaSet/web-"), "{tree}");
    assert!(
        lines[3].starts_with("    ├── Pod/web-") && lines[3].contains("Pending (Unschedulable)"),
        "{tree}"
    );
    assert_eq!(lines.len(), 5, "{tree}");
    let pod = folder.says("get pods -o jsonpath={.items[0].metadata.name}");
    let tree = folder.says(&format!("tree pod/{pod} --ascii"));
    assert!(tree.contains(&format!("    `-- Pod/{pod} <--")), "{tree}");
    let said = folder.says(&format!("why pod/{pod}"));
    assert!(
        said.contains("owned by ReplicaSet/web-") && said.contains("which is owned by Deployment/web"),
        "{said}"
    );
    assert!(said.contains("Warning FailedScheduling: 0/1 nodes are available"), "{said}");
}

#[test]
fn why_tells_what_holds_a_deletion_up() {
    let folder = Folder::new();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, finalizers: [example.com/hold]}\n";
    folder.file("one.yaml", map);
    folder.says("apply -f one.yaml");
    folder.says("delete cm one --wait=false");
    let said = folder.says("why cm/one");
    assert!(
        said.starts_with(
            "why: configmap one is being deleted: finalizer example.com/hold, which \"kubectl\" has set and has to remove"
        ),
        "{said}"
    );
}

#[test]
fn without_a_cluster_the_remedy_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(SETPOINT);
    command
        .args(["get", "pods"])
        .env_remove("KUBECONFIG")
        .env("HOME", scratch.path())
        .current_dir(scratch.path());
    let said = text(&command.output().unwrap().stderr);
    assert!(said.contains("start one with `setpoint up`"), "{said}");
    let refused = "get pods --server http://127.0.0.1:1";
    let mut command = Command::new(SETPOINT);
    command
        .args(refused.split(' '))
        .env_remove("KUBECONFIG")
        .env("HOME", scratch.path())
        .current_dir(scratch.path());
    assert_eq!(
        text(&command.output().unwrap().stderr),
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
    );
}
