//! Setpoint's own `get`, `apply`, `wait` and `events` print byte for byte what the real kubectl prints.

use super::{DEFINITION, DISK, Kubectl, MANIFEST};
use crate::harness::SETPOINT;
use std::process::{Command, Output};

/// Ages go on while the two programs run: so often may they differ.
const ATTEMPTS: usize = 20;

impl Kubectl {
    fn ours(&self, line: &str) -> Output {
        let mut command = Command::new(SETPOINT);
        command.args(line.split(' ')).env("KUBECONFIG", &self.up.kubeconfig).env("HOME", self.scratch.path());
        command.current_dir(self.scratch.path()).output().unwrap()
    }

    /// Both programs print the same, on both streams, and end with the same code.
    fn agree(&self, line: &str) {
        self.agree_on(line, told);
    }

    /// As `agree`, with the lines in any order: kubectl's sorting mixes events of the same second.
    fn agree_in_any_order(&self, line: &str) {
        self.agree_on(line, |output| {
            let (text, errors, code) = told(output);
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            (lines.join("\n"), errors, code)
        });
    }

    fn agree_on(&self, line: &str, told: fn(Output) -> Told) {
        for _ in 1..ATTEMPTS {
            if told(self.ours(line)) == told(self.run(line)) {
                return;
            }
        }
        pretty(line, told(self.ours(line)), told(self.run(line)));
    }
}

type Told = (String, String, Option<i32>);

fn told(output: Output) -> Told {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

fn pretty(line: &str, ours: Told, theirs: Told) {
    let first = ours.0.lines().zip(theirs.0.lines()).find(|(ours, theirs)| ours != theirs);
    assert_eq!((&ours.1, ours.2), (&theirs.1, theirs.2), "{line}: errors and exit codes");
    if let Some((ours, theirs)) = first {
        assert_eq!(ours, theirs, "{line}: the first line that differs");
    }
    assert_eq!(ours.0, theirs.0, "{line}");
}

/// A cluster with a deployment that is available, and a custom resource.
fn cluster() -> Kubectl {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    kubectl.file("definition.yaml", DEFINITION);
    kubectl.file("disk.yaml", DISK);
    kubectl.output_of("apply -f web.yaml -f definition.yaml");
    kubectl.output_of("wait --for=condition=Established crd/disks.storage.example.com --timeout=10s");
    kubectl.output_of("apply -f disk.yaml");
    kubectl.output_of("wait --for=condition=Available deploy/web --timeout=20s");
    kubectl
}

#[test]
fn tables_are_the_same() {
    let kubectl = cluster();
    for line in [
        "get pods",
        "get pods -A",
        "get pods -o wide",
        "get po,deploy,rs",
        "get pods,disks -A",
        "get all",
        "get all -A",
        "get nodes",
        "get nodes -o wide",
        "get namespaces",
        "get crd",
        "get disks",
        "get dk data -o wide",
        "get deploy/web service/kubernetes",
        "get deploy web --show-kind",
        "get deployments.v1.apps",
        "get pods --show-labels",
        "get pods -L app,pod-template-hash",
        "get pods --no-headers",
        "get pods,rs --no-headers",
        "get pods -l app=web",
        "get pods --field-selector status.phase=Running",
        "get pods --sort-by=.metadata.name",
        "get clusterroles",
        "get services -A",
        "get -f web.yaml",
        "get secrets,configmaps",
    ] {
        kubectl.agree(line);
    }
}

#[test]
fn objects_are_the_same_in_every_form() {
    let kubectl = cluster();
    for line in [
        "get deploy web -o yaml",
        "get deploy web -o json",
        "get deploy web -o yaml --show-managed-fields",
        "get pods -o yaml",
        "get pods -A -o json",
        "get pods,deploy -o yaml",
        "get nodes -o yaml",
        "get disk data -o yaml",
        "get crd disks.storage.example.com -o yaml",
        "get configmaps -A -o yaml",
        "get clusterroles,clusterrolebindings -o yaml",
        "get flowschemas,prioritylevelconfigurations -o yaml",
        "get events -o yaml",
        "get pods -l app=none -o yaml",
        "get deploy web -o name",
        "get all -o name",
        "get deploy web -o jsonpath={.spec.replicas}",
        "get pods -o jsonpath={.items[*].metadata.name}",
        r#"get pods -o jsonpath={range.items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}"#,
        "get deploy web -o jsonpath={.metadata.labels}",
        "get deploy web -o jsonpath-as-json={.metadata.labels}",
        "get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image,X:.x,L:.metadata.labels",
        "get pods --no-headers -o custom-columns=NAME:metadata.name",
    ] {
        kubectl.agree(line);
    }
}

#[test]
fn refusals_and_empty_lists_are_the_same() {
    let kubectl = cluster();
    for line in [
        "get pods -l app=none",
        "get pods -l app=none -A",
        "get nodes -l app=none",
        "get pods missing",
        "get pods missing --ignore-not-found",
        "get deploy missing web other",
        "get deploy missing -o yaml",
        "get deploy missing web -o name",
        "get nosuch",
        "get pods.nosuch",
        "get pods -n missing",
        "wait --for=condition=Available deploy/web --timeout=5s",
        "wait --for=condition=Available=false deploy/web --timeout=0",
        "wait --for=jsonpath={.spec.replicas}=2 deploy/web",
        "wait --for=delete pod/missing",
        "wait --for=condition=Ready pod/missing",
        "wait --for=condition=Ready pods -l app=web",
        "wait --for=condition=Ready pods -l app=none",
        "wait --for=x pods --all",
        "events --for deploy/web",
        "events --types=Warning",
        "events --types=Other",
        "events --for web",
    ] {
        kubectl.agree(line);
    }
    kubectl.agree_in_any_order("events");
    kubectl.agree_in_any_order("events -A");
}

#[test]
fn apply_and_delete_say_the_same_about_the_same_files() {
    let ours = Kubectl::new(&["--ephemeral"]);
    let theirs = Kubectl::new(&["--ephemeral"]);
    for kubectl in [&ours, &theirs] {
        kubectl.file("web.yaml", &format!("{MANIFEST}---\n{}", MANIFEST.replace("name: web", "name: other")));
        kubectl.file("changed.yaml", &MANIFEST.replace("replicas: 2", "replicas: 3"));
        kubectl.file("broken.yaml", &MANIFEST.replace("replicas: 2", "replicas: -1"));
        kubectl.file("unknown.yaml", &MANIFEST.replace("kind: Deployment", "kind: Nothing"));
    }
    for line in [
        "apply -f web.yaml",
        "apply -f web.yaml",
        "apply -f changed.yaml",
        "apply -f changed.yaml -o name",
        "apply -f changed.yaml --dry-run=server",
        "apply -f broken.yaml",
        "apply -f unknown.yaml",
        "apply -f missing.yaml",
        "apply -f changed.yaml --server-side --force-conflicts",
        "delete deploy missing",
        "delete deploy missing --ignore-not-found",
        "delete deploy web -o name",
        "delete deploy -l app=none",
    ] {
        assert_eq!(told(ours.ours(line)), told(theirs.run(line)), "{line}");
    }
}
